"""``dupwatch show``: one article, its history, its verdict, and the articles it duplicates."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer
from rich.table import Column, Table
from rich.text import Text

from consumer.cli import render
from consumer.cli.articles.difference_view import plain_passages, print_passages
from consumer.cli.options import ConfigOption, JsonOption, LastingStoreOption, SetOption, VersionOption, configured
from consumer.cli.results import results, write_json
from consumer.judge.events import shared_keywords, version_name
from consumer.model.verdict import Released, decode_verdict
from consumer.store_tools.explanation import passages_of
from consumer.store_tools.inspection import (
    History,
    Link,
    StoredArticle,
    arrival_of,
    chain,
    how_it_ended,
    origin_of,
    stored_article,
)
from consumer.text.counts import counted
from consumer.text.timestamps import rfc3339
from consumer.wiring.stores import opened_store
from storage.records import Stored, Tombstone


def show(
    article_id: Annotated[str, typer.Argument(metavar="ID", help="The article's id.")],
    store: LastingStoreOption = None,
    version: VersionOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Show an article's versions and retractions, the verdict of the latest, and the chain to the kept article."""
    chosen = configured(config, settings, store__url=store)
    with opened_store(chosen, readonly=True) as opened:
        found = stored_article(opened, chosen.store.url, article_id, version)
        links = chain(opened, found.stored)
        histories = [found.history, *(opened.history(link.stored.record.id_hash) for link in links[1:])]
        shared = passages_of(opened, found.stored, links[0].verdict)
    with results():
        if json:
            plain = [_plain(link, history) for link, history in zip(links, histories, strict=True)]
            plain[0]["passages"] = [plain_passages(each) for each in shared]
            write_json(plain)
        else:
            print_article(found, links, histories)
            for each in shared:
                print_passages(each)


def print_article(found: StoredArticle, links: Sequence[Link], histories: Sequence[History]) -> None:
    """Print an article with its history, and the chain of articles that it duplicates."""
    if len(found.history) > 1:
        render.console().print(_history_table(found))
        render.console().print()
    print_links(links, histories)


def print_links(links: Sequence[Link], histories: Sequence[History]) -> None:
    """Print a version and the chain of articles that it duplicates; ``histories`` belong to the ids of the links."""
    console = render.console()
    for depth, (link, history) in enumerate(zip(links, histories, strict=True)):
        if depth:
            console.print(Text("\nwhich is a duplicate of\n" if depth > 1 else "\nduplicate of\n", "bold"))
        print_link(link, history)
    verdict = links[0].verdict
    if verdict is not None and verdict.outcome == "duplicate":
        other = links[1].stored.record if len(links) > 1 else links[0].stored.record
        console.print(
            f"\ndistance {counted(verdict.distance or 0, 'bit')}, {render.similarity_text(verdict.similarity)}"
        )
        console.print(render.keywords_line(shared_keywords(links[0].stored.record, other)))


def print_link(link: Link, history: History) -> None:
    """Print one version and its verdict."""
    render.console().print(render.record_table(link.stored.record, link.verdict, _in_force(link.stored, history)))


def _in_force(stored: Stored, history: History) -> str:
    """Return since when a version is in force, or what ended it."""
    ended = how_it_ended(stored, history)
    arrived = rfc3339(stored.record.time_ms)
    return f"since {arrived}" if ended is None else f"no: arrived {arrived}, {ended}"


def _history_table(found: StoredArticle) -> Table:
    columns = (
        "",
        Column("arrived", overflow="fold"),
        Column("came from", overflow="fold"),
        Column("version", style="dim", overflow="fold"),
        Column("outcome", overflow="fold"),
    )
    rows = []
    for entry in found.history:
        arrival = arrival_of(entry)
        mark = "▸" if isinstance(entry, Stored) and arrival == found.stored.record.arrival else ""
        arrived, version = rfc3339(arrival.time_ms), version_name(arrival.reference)
        rows.append((mark, arrived, render.plain(origin_of(entry) or ""), version, _outcome(entry)))
    return render.table(columns, rows, "History")


def _outcome(entry: Stored | Tombstone) -> str:
    if isinstance(entry, Tombstone):
        return "retraction"
    verdict, again = _verdict_fields(entry), "returned, " if entry.record.stretch else ""
    if verdict["outcome"] == "duplicate":
        return render.plain(f"{again}duplicate of {verdict['duplicate_of']}")
    return f"{again}{verdict['outcome'] or 'pending'}{' by a release' if verdict['released'] else ''}"


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
        "verdict": None if link.stored.verdict is None else msgspec.Raw(link.stored.verdict),
        "version": version_name(record.reference),
        "retracted": bool(history) and isinstance(history[-1], Tombstone),
        "history": [_plain_entry(entry) for entry in history],
    }


def _plain_entry(entry: Stored | Tombstone) -> dict[str, object]:
    arrival = arrival_of(entry)
    fields: dict[str, object] = {
        "kind": "version" if isinstance(entry, Stored) else "retraction",
        "version": version_name(arrival.reference),
        "arrived_at": rfc3339(arrival.time_ms),
        "sequence": arrival.sequence,
        "origin": origin_of(entry),
    }
    if isinstance(entry, Stored):
        fields |= {
            "stretch": entry.record.stretch or 0,
            "ends_at": _ends_at(entry),
            "title": entry.record.title,
            **_verdict_fields(entry),
        }
    return fields


def _ends_at(stored: Stored) -> str | None:
    return None if stored.ends_at is None else rfc3339(stored.ends_at.time_ms)
