"""``dupwatch show``: one article, its history, its verdict, and what it goes back to."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SetOption, StoreOption, configured
from consumer.cli.results import results, write_json
from consumer.cli.stored_article import History, StoredArticle, VersionOption, arrival_of, how_it_ended, stored_article
from consumer.judge.events import rfc3339, shared_keywords, version_name
from consumer.model.verdict import Released, decode_verdict
from consumer.store_tools.inspection import Link, chain
from consumer.wiring.stores import opened_store
from storage.records import Stored, Tombstone


def show(
    article_id: Annotated[str, typer.Argument(metavar="ID", help="The article's id.")],
    store: StoreOption = None,
    version: VersionOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Show an article's versions and retractions, the last version's verdict, and the chain to the kept one."""
    chosen = configured(config, settings, store__url=store)
    with opened_store(chosen, readonly=True) as opened:
        found = stored_article(opened, chosen.store.url, article_id, version)
        links = chain(opened, found.stored)
        histories = [found.history, *(opened.history(link.stored.record.id_hash) for link in links[1:])]
    with results():
        if json:
            write_json([_plain(link, history) for link, history in zip(links, histories, strict=True)])
        else:
            print_article(found, links, histories)


def print_article(found: StoredArticle, links: Sequence[Link], histories: Sequence[History]) -> None:
    """An article with its history, and what it goes back to step by step."""
    if len(found.history) > 1:
        render.console().print(_history_table(found))
        render.console().print()
    print_links(links, histories)


def print_links(links: Sequence[Link], histories: Sequence[History]) -> None:
    """A version, and what it goes back to step by step; ``histories`` are of the ids of the links."""
    console = render.console()
    for depth, (link, history) in enumerate(zip(links, histories, strict=True)):
        if depth:
            console.print(Text("\nwhich repeats\n" if depth > 1 else "\nit repeats\n", "bold"))
        print_link(link, history)
    verdict = links[0].verdict
    if verdict is not None and verdict.outcome == "duplicate":
        other = links[1].stored.record if len(links) > 1 else links[0].stored.record
        console.print(f"\ndistance {verdict.distance} bits, {render.similarity_text(verdict.similarity)}")
        console.print(render.keywords_line(shared_keywords(links[0].stored.record, other)))


def print_link(link: Link, history: History) -> None:
    """One version and its verdict."""
    render.console().print(render.record_table(link.stored.record, link.verdict, _in_force(link.stored, history)))


def _in_force(stored: Stored, history: History) -> str:
    """Since when a version is in force, or what ended that."""
    ended = how_it_ended(stored, history)
    began = rfc3339(stored.record.time_ms)
    return f"since {began}" if ended is None else f"no: it came {began}, and was {ended}"


def _history_table(found: StoredArticle) -> Table:
    table = Table(title="History", box=None, title_justify="left", title_style="bold", pad_edge=False)
    table.add_column("")
    table.add_column("came", overflow="fold")
    table.add_column("version", style="dim", overflow="fold")
    table.add_column("what it is", overflow="fold")
    for one in found.history:
        arrival = arrival_of(one)
        shown = isinstance(one, Stored) and arrival == found.stored.record.arrival
        table.add_row(
            Text("▸" if shown else ""), rfc3339(arrival.time_ms), version_name(arrival.reference), _what_it_is(one)
        )
    return table


def _what_it_is(one: Stored | Tombstone) -> str:
    if isinstance(one, Tombstone):
        return "retraction"
    said = _verdict_fields(one)
    if said["outcome"] == "duplicate":
        return render.plain(f"duplicate of {said['duplicate_of']}")
    return f"{said['outcome'] or 'pending'}{' by a release' if said['released'] else ''}"


def _verdict_fields(stored: Stored) -> dict[str, object]:
    verdict = None if stored.verdict is None else decode_verdict(stored.verdict)
    return {
        "outcome": None if verdict is None else verdict.outcome,
        "duplicate_of": None if verdict is None else verdict.duplicate_of,
        "released": verdict is not None and isinstance(verdict.released, Released),
    }


def _plain(link: Link, history: History) -> dict[str, object]:
    record = link.stored.record
    return {
        "id": record.id,
        "title": record.title,
        "source": record.source,
        "url": record.url,
        "lang": record.lang,
        "arrived_at": rfc3339(record.time_ms),
        "ends_at": _ends_at(link.stored),
        "fingerprint": record.fingerprint.hex(),
        "keywords": record.keywords,
        "verdict": link.verdict,
        "version": version_name(record.reference),
        "retracted": bool(history) and isinstance(history[-1], Tombstone),
        "history": [_plain_item(one) for one in history],
    }


def _plain_item(one: Stored | Tombstone) -> dict[str, object]:
    arrival = arrival_of(one)
    item: dict[str, object] = {
        "kind": "version" if isinstance(one, Stored) else "retraction",
        "version": version_name(arrival.reference),
        "arrived_at": rfc3339(arrival.time_ms),
        "sequence": arrival.sequence,
    }
    if isinstance(one, Stored):
        item |= {"ends_at": _ends_at(one), "title": one.record.title, **_verdict_fields(one)}
    return item


def _ends_at(stored: Stored) -> str | None:
    return None if stored.ends_at is None else rfc3339(stored.ends_at.time_ms)
