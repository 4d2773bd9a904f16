"""``dupwatch show``: one article, its verdict, and what it goes back to."""

import sys
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from consumer.app import opened_store
from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SetOption, StoreOption, configured
from consumer.errors import ConfigError
from consumer.events import rfc3339, shared_keywords
from consumer.inspection import Link, chain, latest
from storage.records import Stored, id_hash


def show(
    article_id: Annotated[str, typer.Argument(metavar="ID", help="The article's id.")],
    store: StoreOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Show an article's record, its verdict, the chain to the kept one, and what they share."""
    chosen = configured(config, settings, store__url=store)
    with opened_store(chosen, readonly=True) as opened:
        one = latest(opened.history(id_hash(article_id)))
        if one is None:
            raise ConfigError(f"there is no article {article_id!r} in {chosen.store.url}")
        links = chain(opened, one)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode([_plain(link) for link in links]) + b"\n")
        return
    console = render.narrow(Console())
    for depth, link in enumerate(links):
        if depth:
            console.print("\n[bold]which repeats[/bold]\n" if depth > 1 else "\n[bold]it repeats[/bold]\n")
        console.print(render.record_table(link.stored.record, link.verdict, _ends(link.stored)))
    verdict = links[0].verdict
    if verdict is not None and verdict.outcome == "duplicate":
        console.print(f"\ndistance {verdict.distance} bits, {render.similarity_text(verdict.similarity)}")
        console.print(render.keywords_line(shared_keywords(one.record, links[-1].stored.record)))


def _ends(stored: Stored) -> str:
    began = rfc3339(stored.record.time_ms)
    return f"since {began}" if stored.ends_at is None else f"{began} to {rfc3339(stored.ends_at.time_ms)}"


def _plain(link: Link) -> dict[str, object]:
    record = link.stored.record
    return {
        "id": record.id,
        "title": record.title,
        "source": record.source,
        "url": record.url,
        "lang": record.lang,
        "arrived_at": rfc3339(record.time_ms),
        "ends_at": None if link.stored.ends_at is None else rfc3339(link.stored.ends_at.time_ms),
        "fingerprint": record.fingerprint.hex(),
        "keywords": record.keywords,
        "verdict": link.verdict,
    }
