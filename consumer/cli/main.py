"""Runs a command, and turns its errors into a message and an exit code."""

import logging
import os
import sys
from contextlib import suppress
from signal import SIGINT
from typing import Annotated, Final

import typer
from typer.exceptions import TyperException

from consumer.cli import render
from consumer.cli.commands import CommandGroup
from consumer.cli.results import guard_streams, results
from consumer.config.config import ENV_PREFIX
from consumer.config.loading import plain_pydantic_message
from consumer.lifecycle.stopping import SIGNAL_EXIT_BASE, accept_signals
from consumer.model.errors import ConfigError, DupwatchError, Fatal, SinkError, StoppedBeforeStart
from consumer.model.program_version import program_version
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
    cls=CommandGroup,
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help=(
        "Find near-duplicate articles in a feed.\n\n"
        "Start with:  dupwatch run --source articles.jsonl --sink verdicts.jsonl --store lmdb:store --show\n\n"
        "Exit codes:\n\n"
        "0  every record was answered, by a verdict or a dead letter\n\n"
        "1  a bug, a run that did not stop when told to, a removal that was not confirmed, or an article of stress "
        "without a verdict\n\n"
        "2  an invalid option or configuration, or an unknown id\n\n"
        "3  the input cannot be read\n\n"
        "4  the store was created with other settings, is damaged, or is not a dupwatch store\n\n"
        "5  the store failed\n\n"
        "6  the output cannot be written\n\n"
        "7  too many records of a file or a stream cannot be judged\n\n"
        "130, 143  stopped by a signal, after the work in progress; a run over topics, serve, console and demo exit "
        "with 0, and so does top on Ctrl-C"
    ),
)


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Handle the options that come before a command."""
    if version:
        with results():
            sys.stdout.write(f"dupwatch {program_version()}\n")
        raise typer.Exit


def main() -> None:
    """Run a command and exit. An error prints a message and decides the exit code; a bug prints its traceback."""
    if None in {sys.stdout, sys.stderr}:
        # The next file opened would get the free descriptor, and printed text would be written into that file.
        with suppress(OSError):
            os.write(2, b"dupwatch: standard output and standard error must be open; redirect them to /dev/null\n")
        sys.exit(SinkError.exit_code)
    accept_signals()
    with guard_streams():
        try:
            # This logging applies until the command has read its configuration and sets up logging again.
            logs.set_up("json" if os.environ.get(_LOG_FORMAT) == "json" else "auto")
            code = _run()
        except KeyboardInterrupt:
            # This happens only before a command starts: a running command turns Ctrl-C into an exit code.
            code = SIGNAL_EXIT_BASE + SIGINT
    sys.exit(code)


def _run() -> int:
    """Run the command named on the command line and return its exit code."""
    try:
        # In standalone mode, Typer would handle usage errors and closed pipes itself.
        code: int | None = app(standalone_mode=False)
    except TyperException as error:
        return _report_usage(error)
    except StoreError as error:
        return _report(stores.fatal_error(error))
    except StoppedBeforeStart as stopped:
        # Stopping a run over topics is a success, even before it starts.
        log.warning("%s", stopped)
        return 0
    except DupwatchError as error:
        return _report(error)
    except Exception:
        # The interpreter would print secrets and control characters that the error quotes; the log redacts them.
        log.critical("A bug ended the command; report it with this traceback", exc_info=True)
        return 1
    return code or 0


def _report_usage(error: TyperException) -> int:
    """Report a usage error together with the usage line, and return the exit code."""
    message = plain_pydantic_message(error.format_message())
    ctx = getattr(error, "ctx", None)
    if not message:
        # A command group without a command has already printed its help.
        return error.exit_code
    usage = "" if ctx is None else f"\n{' '.join(ctx.get_usage().split())} (see --help)"
    # A shell may expand one pattern to hundreds of arguments.
    return _report(ConfigError(f"{cut(message, _USAGE_CHARS_MAX)}{usage}"))


def _report(error: DupwatchError) -> int:
    """Report an error on standard error or in the log, and return its exit code."""
    code = error.exit_code if isinstance(error, Fatal) else 1
    if logs.tells_people():
        sentence = escaped(redacted(str(error)), logs.MESSAGE_CHARS_MAX, "\n")
        render.console(stderr=True).print(f"dupwatch: {sentence}")
    else:
        log.critical("%s", error, extra={"error": type(error).__name__, "exit_code": code})
    return code
