"""``dupwatch release``: undo a flag."""

import sys
from collections.abc import Sequence
from signal import SIGINT
from typing import Annotated

import typer
from rich.text import Text

from consumer.app import opened_store
from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SetOption, StoreOption, configured, id_hash_of
from consumer.cli.results import results, write
from consumer.cli.show import print_link, print_links
from consumer.config import is_kafka
from consumer.errors import ConfigError
from consumer.inspection import Link, chain
from consumer.releases import Words, planned, releasable
from consumer.releases import release as release_version
from consumer.stopping import SIGNALLED
from consumer.stream import send_release
from consumer.verdict import decode_verdict
from storage.clock import now_ms
from storage.records import Stored


def release(
    article_id: Annotated[str, typer.Argument(metavar="ID", help="The article's id.")],
    store: StoreOption = None,
    version: Annotated[
        str | None,
        typer.Option(help="Which of its versions, as events name it; the last when left out.", metavar="HEX"),
    ] = None,
    by: Annotated[str | None, typer.Option(help="Who releases it, for the event.", metavar="NAME")] = None,
    reason: Annotated[str | None, typer.Option(help="Why, for the event.", metavar="TEXT")] = None,
    sink: Annotated[
        str | None,
        typer.Option(help="Where readers of the flags hear of it: kafka://HOST:PORT/PREFIX.", metavar="PREFIX"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Undo a flag: the article is unique from now on, and the pair is remembered and not flagged again.

    Articles that come later may be flagged for repeating it. Done again it changes nothing, and tells what stands; to a
    sink that is named the event is sent again.
    """
    if json and not (yes or dry_run):
        raise ConfigError("--json asks nobody: say --yes with it, or --dry-run")
    chosen = configured(config, settings, store__url=store, sink__url=sink)
    words = Words(by, reason)
    id_hash_of(article_id)
    with opened_store(chosen, readonly=True) as opened:
        one = releasable(opened, article_id, version)
        links = chain(opened, one)
    if not json:
        with results():
            _announce(links)
    if dry_run:
        plan = planned(one, words, now_ms)
        event = one.verdict if plan is None else plan.event
    elif yes or _agreed():
        with opened_store(chosen) as opened:
            event = release_version(opened, one.record.reference, words, now_ms)
        if is_kafka(chosen.sink.url):
            send_release(chosen, event)
    else:
        return
    _tell(one, event or b"", json=json, dry_run=dry_run)


def _announce(links: Sequence[Link]) -> None:
    """What is there, and what a release makes of it."""
    print_links(links)
    verdict = links[0].verdict
    if verdict is None or verdict.duplicate_of is None:
        return
    name, other = render.plain(verdict.id), render.plain(verdict.duplicate_of)
    render.console().print(
        f"\nReleased, {name} is unique. It and {other} are not flagged for each other again. "
        f"Articles that come later may be flagged for repeating {name}."
    )


def _agreed() -> bool:
    """Ask the person at the terminal, who may end it there; ``ConfigError`` where there is none."""
    if not sys.stdin.isatty():
        raise ConfigError("nobody is there to be asked: say --yes, or --dry-run")
    try:
        return typer.confirm("Release it?", err=True)
    except typer.Abort as stopped:
        render.console(stderr=True).print("\nNothing was changed.")
        raise typer.Exit(SIGNALLED + SIGINT) from stopped


def _tell(one: Stored, event: bytes, *, json: bool, dry_run: bool) -> None:
    with results():
        if json:
            write(event + b"\n")
            return
        console = render.console()
        if one.released_from is not None:
            console.print("\nIt was released before, and nothing was changed.")
        elif dry_run:
            console.print("\nNothing was changed: this was a dry run.")
        else:
            console.print(Text("\nIt is now\n", "bold"))
            print_link(Link(one, decode_verdict(event)))
