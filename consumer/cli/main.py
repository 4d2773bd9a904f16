"""Commands, and what becomes of errors."""

import logging
import os
import sys
from contextlib import suppress
from importlib import metadata
from typing import Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler

from consumer import app as wiring
from consumer.cli import (
    backfill,
    compare,
    demo,
    evaluate,
    explain,
    fingerprint,
    idf,
    migrate,
    query,
    release,
    replay,
    run,
    show,
)
from consumer.cli import config as config_commands
from consumer.cli import dead_letters as dead_letter_commands
from consumer.cli import store as store_commands
from consumer.cli import topics as topics_commands
from consumer.cli.results import results
from consumer.errors import DupwatchError, Fatal, SinkError
from storage.errors import StoreError

app = typer.Typer(
    name="dupwatch",
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help=(
        "Tells whether an article is nearly the same as one that came before.\n\n"
        "Begin with:  dupwatch run --source articles.jsonl --sink verdicts.jsonl --store lmdb:store --show\n\n"
        "Exit codes: 0 all input was answered (dead letters included), 1 a defect, 2 a wrong option or configuration, "
        "3 the input cannot be read, 4 the store was made with other settings or is none, 5 the store failed, "
        "6 the output cannot be written, 130 or 143 stopped by a signal after finishing what was begun."
    ),
)
app.command("run")(run.run)
app.command("backfill")(backfill.backfill)
app.command("demo")(demo.demo)
app.command("replay")(replay.replay)
app.command("migrate")(migrate.migrate)
app.command("show")(show.show)
app.command("explain")(explain.explain)
app.command("query")(query.query)
app.command("release")(release.release)
app.command("evaluate")(evaluate.evaluate)
app.command("fingerprint")(fingerprint.fingerprint)
app.command("compare")(compare.compare)
app.add_typer(idf.app, name="idf")
app.add_typer(store_commands.app, name="store")
app.add_typer(dead_letter_commands.app, name="dead-letters")
app.add_typer(topics_commands.app, name="topics")
app.add_typer(config_commands.app, name="config")


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
    """Run a command; what is wrong is told in one sentence, a defect with its traceback."""
    if None in {sys.stdout, sys.stderr}:
        # The first files that are opened would take their place, and get what is printed.
        with suppress(OSError):
            os.write(2, b"dupwatch: standard output and standard error have to be open; /dev/null will do\n")
        sys.exit(SinkError.exit_code)
    console = Console(stderr=True)
    logging.basicConfig(
        level=logging.WARNING,
        format="%(message)s",
        handlers=[RichHandler(console=console, show_path=False, show_time=False)],
    )
    try:
        app()
    except StoreError as error:
        _exit(wiring.fatal(error))
    except DupwatchError as error:
        _exit(error)


def _exit(error: DupwatchError) -> None:
    sys.stderr.write(f"dupwatch: {error}\n")
    sys.exit(error.exit_code if isinstance(error, Fatal) else 1)
