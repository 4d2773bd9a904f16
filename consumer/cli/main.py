"""Commands, and what becomes of errors."""

import logging
import os
import sys
from contextlib import suppress
from importlib import metadata
from signal import SIGINT
from typing import Annotated, Final

import typer
from typer.exceptions import TyperException

from consumer.cli import render
from consumer.cli.commands import Commands
from consumer.cli.results import guarded_streams, results
from consumer.config.config import ENV_PREFIX
from consumer.lifecycle.inherited_signals import accept_signals
from consumer.lifecycle.stopping import SIGNALLED
from consumer.model.errors import ConfigError, DupwatchError, Fatal, NotBegun, SinkError
from consumer.telemetry import logs
from consumer.text.redaction import redacted
from consumer.text.visible import cut, escaped
from consumer.wiring import stores
from storage.errors import StoreError

log = logging.getLogger("dupwatch")

_LOG_FORMAT: Final = f"{ENV_PREFIX}LOG__FORMAT"
_USAGE_CHARS_MAX: Final = 140

app = typer.Typer(
    name="dupwatch",
    cls=Commands,
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help=(
        "Tells whether an article is nearly the same as one that came before.\n\n"
        "Begin with:  dupwatch run --source articles.jsonl --sink verdicts.jsonl --store lmdb:store --show\n\n"
        "Exit codes: 0 all input was answered (dead letters included), 1 a defect, or something hung at the end, "
        "2 a wrong option or configuration, 3 the input cannot be read, 4 the store was made with other settings, is "
        "damaged or is none, 5 the store failed, "
        "6 the output cannot be written, 7 too many records of a file or a stream cannot be judged, "
        "130 or 143 stopped by a signal after finishing what was begun; "
        "a run over topics, demo and top then end with 0."
    ),
)


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Options that stand before a command."""
    if version:
        with results():
            sys.stdout.write(f"dupwatch {metadata.version('dupwatch')}\n")
        raise typer.Exit


def main() -> None:
    """Run a command. An error is told in a sentence and ends with its own code, a defect with its traceback."""
    if None in {sys.stdout, sys.stderr}:
        # The first files that are opened would take their place, and get what is printed.
        with suppress(OSError):
            os.write(2, b"dupwatch: standard output and standard error have to be open; /dev/null will do\n")
        sys.exit(SinkError.exit_code)
    accept_signals()
    with guarded_streams():
        try:
            # Until a command has read its configuration; only what that finds wrong is told so.
            logs.set_up("json" if os.environ.get(_LOG_FORMAT) == "json" else "auto")
            code = _run()
        except KeyboardInterrupt:
            # While no command was at work: within one it is an exit code.
            code = SIGNALLED + SIGINT
    sys.exit(code)


def _run() -> int:
    """Run the command that is named on the command line; its exit code."""
    try:
        # Not standalone: Typer would end a wrong command line, and a reader that has gone, in ways of its own.
        code: int | None = app(standalone_mode=False)
    except TyperException as error:
        return _tell_usage(error)
    except StoreError as error:
        return _tell(stores.fatal(error))
    except NotBegun as ended:
        # A run over topics that is asked to stop ends well, whenever that is.
        log.warning("%s", ended)
        return 0
    except DupwatchError as error:
        return _tell(error)
    except Exception:
        # Not by the interpreter: it would show whatever secrets and control characters the error quotes.
        log.critical("A defect has ended the run", exc_info=True)
        return 1
    return code or 0


def _tell_usage(error: TyperException) -> int:
    """Say what is wrong with a command line, and how it is written."""
    wrong = error.format_message()
    ctx = getattr(error, "ctx", None)
    if not wrong:
        # A group of commands that was named alone has written its help already.
        return error.exit_code
    usage = "" if ctx is None else f"\n{' '.join(ctx.get_usage().split())} (--help lists them)"
    # A shell may make hundreds of arguments of one.
    return _tell(ConfigError(f"{cut(wrong, _USAGE_CHARS_MAX)}{usage}"))


def _tell(error: DupwatchError) -> int:
    """Say what is wrong; the exit code that follows."""
    code = error.exit_code if isinstance(error, Fatal) else 1
    if logs.tells_people():
        sentence = escaped(redacted(str(error)), logs.MESSAGE_CHARS_MAX, "\n")
        render.console(stderr=True).print(f"dupwatch: {sentence}", highlight=False)
    else:
        log.critical("%s", error, extra={"error": type(error).__name__, "exit_code": code})
    return code
