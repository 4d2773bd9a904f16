"""``dupwatch release``: undo a flag."""

import sys
from collections.abc import Sequence
from signal import SIGINT
from typing import Annotated

import typer
from rich.text import Text

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SetOption, StoreOption, configured, id_hash_of
from consumer.cli.results import results, write
from consumer.cli.show import print_article, print_link
from consumer.cli.stored_article import History, StoredArticle
from consumer.config.config import Config
from consumer.kafka.client_settings import is_kafka
from consumer.lifecycle.stopping import SIGNALLED
from consumer.model.errors import ConfigError
from consumer.model.record import RawRecord
from consumer.model.verdict import decode_verdict
from consumer.store_tools.inspection import Link, chain
from consumer.store_tools.releases import Words, planned, releasable
from consumer.store_tools.releases import release as release_version
from consumer.wiring.kafka_parts import sink_topics
from consumer.wiring.release_run import NoWayBack, send_release, way_back
from consumer.wiring.stores import opened_store
from storage.clock import now_ms
from storage.interface import Store
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

    Articles that come later may be flagged for repeating it. With a sink that has a clean feed (kafka.unique) the
    article goes back to it, if its record is still in its topic and nothing newer of it has come. Done again it changes
    nothing, and tells what stands; to a sink that is named the event is sent again.
    """
    if json and not (yes or dry_run):
        raise ConfigError("--json asks nobody: say --yes with it, or --dry-run")
    if not (yes or dry_run) and not sys.stdin.isatty():
        raise ConfigError("nobody is there to be asked, and nothing was done: say --yes, or --dry-run")
    chosen = configured(config, settings, store__url=store, sink__url=sink)
    words = Words(by, reason)
    id_hash_of(article_id)
    with opened_store(chosen, readonly=True) as opened:
        one = releasable(opened, article_id, version)
        links = chain(opened, one)
        histories = [opened.history(link.stored.record.id_hash) for link in links]
    back = way_back(chosen, one)
    if not json:
        with results():
            _announce(links, histories)
    _tell_way_back(chosen, back, json=json)
    if dry_run:
        plan = planned(one, words, now_ms)
        event = one.verdict if plan is None else plan.event
    elif yes or _agreed():
        event = _release(chosen, one, words, back)
    else:
        return
    _tell(one, histories[0], event or b"", json=json, dry_run=dry_run)


def _release(config: Config, one: Stored, words: Words, back: RawRecord | NoWayBack | None) -> bytes:
    """Release it, and tell its readers; the event."""
    reference = one.record.reference
    with opened_store(config) as opened:
        event = release_version(opened, reference, words, now_ms)
        last = _is_last(opened, reference)
    if not is_kafka(config.sink.url):
        return event
    record = back if isinstance(back, RawRecord) else None
    send_release(config, event, record if last else None)
    if record is not None:
        with opened_store(config, readonly=True) as opened:
            stayed = last and _is_last(opened, reference)
        if not stayed:
            _warn(
                f"Something newer of {render.plain(one.record.id)} came while it was released. Compare its last message"
                f" in {sink_topics(config).unique_topic} with its source, and have it sent again if they differ."
            )
    return event


def _is_last(store: Store, reference: bytes) -> bool:
    found = store.read([reference])[0]
    return found is not None and found.ends_at is None


def _announce(links: Sequence[Link], histories: Sequence[History]) -> None:
    """What is there, and what a release makes of it."""
    print_article(StoredArticle(links[0].stored, histories[0]), links, histories)
    verdict = links[0].verdict
    if verdict is None or verdict.duplicate_of is None:
        return
    name, other = render.plain(verdict.id), render.plain(verdict.duplicate_of)
    render.console().print(
        f"\nA release makes {name} unique. It and {other} will not be flagged for each other again. "
        f"Articles that come later may be flagged for repeating {name}."
    )


def _tell_way_back(config: Config, back: RawRecord | NoWayBack | None, *, json: bool) -> None:
    """What becomes of the clean feed; where standard output is for a program, only what goes wrong with it."""
    if back is None:
        return
    topic = sink_topics(config).unique_topic
    if isinstance(back, NoWayBack):
        _warn(f"It stays missing from {topic}: {render.plain(back.why)}.")
    elif back.message is not None and not json:
        origin = f"{back.message.topic} [{back.message.partition}] offset {back.message.offset}"
        with results():
            render.console().print(f"It goes back to {topic}, from {origin}.")


def _warn(sentence: str) -> None:
    render.console(stderr=True).print(sentence)


def _agreed() -> bool:
    """Ask the person at the terminal, who may end it there."""
    try:
        return typer.confirm("Release it?", err=True)
    except typer.Abort as stopped:
        render.console(stderr=True).print("\nNothing was changed.")
        raise typer.Exit(SIGNALLED + SIGINT) from stopped


def _tell(one: Stored, history: History, event: bytes, *, json: bool, dry_run: bool) -> None:
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
            print_link(Link(one, decode_verdict(event)), history)
