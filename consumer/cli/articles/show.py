"""``dupwatch show``: one article, its history, its verdict, and the articles it duplicates."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer
from rich.table import Column, Table
from rich.text import Text

from consumer.cli import render
from consumer.cli.articles.difference_view import passages_json, print_passages
from consumer.cli.options import ConfigOption, JsonOption, LastingStoreOption, SetOption, VersionOption, command_config
from consumer.cli.results import results, write_json
from consumer.judge.events import version_name
from consumer.store_tools.article_facts import ArticleHistoryEntry, article_facts, history_entry, keywords_of
from consumer.store_tools.inspection import DuplicateLink, History, how_it_ended, missing_version_error
from consumer.text.counts import counted
from consumer.text.timestamps import rfc3339
from consumer.wiring.stores import opened_store
from storage.records import Arrival, StoredVersion, Tombstone


def show(
    article_id: Annotated[str, typer.Argument(metavar="ID", help="The article's id.")],
    store: LastingStoreOption = None,
    version: VersionOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Show an article's versions and retractions, the verdict of the latest, and the chain to the kept article."""
    chosen = command_config(config, overrides, store__url=store)
    with opened_store(chosen, readonly=True) as opened:
        facts = article_facts(opened, article_id, version)
    if not facts.links:
        raise missing_version_error(facts.history, chosen.store.url, article_id, version)
    with results():
        if json:
            plain = [_json_fields(link, history) for link, history in zip(facts.links, facts.histories, strict=True)]
            plain[0]["passages"] = [passages_json(each) for each in facts.passages]
            write_json(plain)
        else:
            print_article(facts.links, facts.histories)
            for each in facts.passages:
                print_passages(each)


def print_article(links: Sequence[DuplicateLink], histories: Sequence[History]) -> None:
    """Print an article with its history, and the chain of articles that it duplicates."""
    if len(histories[0]) > 1:
        render.console().print(_history_table(links[0].stored, histories[0]))
        render.console().print()
    print_links(links, histories)


def print_links(links: Sequence[DuplicateLink], histories: Sequence[History]) -> None:
    """Print a version and the chain of articles that it duplicates; ``histories`` are those of the links."""
    console = render.console()
    for depth, (link, history) in enumerate(zip(links, histories, strict=True)):
        if depth:
            console.print(Text("\nwhich is a duplicate of\n" if depth > 1 else "\nduplicate of\n", "bold"))
        print_link(link, history)
    verdict = links[0].verdict
    if verdict is not None and verdict.outcome == "duplicate":
        console.print(
            f"\ndistance {counted(verdict.distance or 0, 'bit')}, {render.similarity_text(verdict.similarity)}"
        )
        console.print(render.keywords_line(keywords_of(links)))


def print_link(link: DuplicateLink, history: History) -> None:
    """Print one version and its verdict."""
    render.console().print(render.record_table(link.stored.record, link.verdict, _in_force(link.stored, history)))


def _in_force(stored: StoredVersion, history: History) -> str:
    """Return since when a version has been in force, or what ended it."""
    ended = how_it_ended(stored, history)
    arrived = rfc3339(stored.record.time_ms)
    return f"since {arrived}" if ended is None else f"no: arrived {arrived}, {ended}"


def _history_table(shown: StoredVersion, history: History) -> Table:
    columns = (
        "",
        Column("arrived", overflow="fold"),
        Column("came from", overflow="fold"),
        Column("version", style="dim", overflow="fold"),
        Column("outcome", overflow="fold"),
    )
    rows = []
    for entry in map(history_entry, history):
        mark = "▸" if entry.kind == "version" and entry.arrival == shown.record.arrival else ""
        arrived = rfc3339(entry.arrival.time_ms)
        rows.append((mark, arrived, render.plain(entry.origin or ""), entry.version, _outcome(entry)))
    return render.table(columns, rows, "History")


def _outcome(entry: ArticleHistoryEntry) -> str:
    if entry.kind == "retraction":
        return "retraction"
    again = "returned, " if entry.stretch else ""
    if entry.verdict is not None and entry.outcome == "duplicate":
        return render.plain(f"{again}duplicate of {entry.verdict.duplicate_of}")
    return f"{again}{entry.outcome or 'pending'}{' by a release' if entry.is_released else ''}"


def _json_fields(link: DuplicateLink, history: History) -> dict[str, object]:
    record = link.stored.record
    return {
        "id": record.id,
        "title": record.title,
        "source": record.source,
        "url": record.url,
        "lang": record.lang,
        "arrived_at": rfc3339(record.time_ms),
        "ends_at": _ends_at(link.stored.ends_at),
        "fingerprint": record.fingerprint.hex(),
        "keywords": record.keywords,
        "verdict": None if link.stored.verdict is None else msgspec.Raw(link.stored.verdict),
        "version": version_name(record.reference),
        "retracted": bool(history) and isinstance(history[-1], Tombstone),
        "history": [_plain_entry(history_entry(entry)) for entry in history],
    }


def _plain_entry(entry: ArticleHistoryEntry) -> dict[str, object]:
    fields: dict[str, object] = {
        "kind": entry.kind,
        "version": entry.version,
        "arrived_at": rfc3339(entry.arrival.time_ms),
        "sequence": entry.arrival.sequence,
        "origin": entry.origin,
    }
    if entry.kind == "version":
        fields |= {
            "stretch": entry.stretch,
            "ends_at": _ends_at(entry.ends_at),
            "title": entry.title,
            "outcome": entry.outcome,
            "duplicate_of": None if entry.verdict is None else entry.verdict.duplicate_of,
            "released": entry.is_released,
        }
    return fields


def _ends_at(ends_at: Arrival | None) -> str | None:
    return None if ends_at is None else rfc3339(ends_at.time_ms)
