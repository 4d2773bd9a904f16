"""``dupwatch show``: one article, its verdict, and what it goes back to."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from consumer.app import opened_store
from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SetOption, StoreOption, configured, id_hash_of
from consumer.cli.results import results, write_json
from consumer.errors import ConfigError
from consumer.events import rfc3339, shared_keywords
from consumer.inspection import Link, chain, latest
from storage.records import Stored


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
        history = opened.history(id_hash_of(article_id))
        one = latest(history)
        if one is None:
            found = "was retracted, and no version of it is there" if history else "is not there"
            raise ConfigError(f"{article_id!r} {found}, in {chosen.store.url}")
        links = chain(opened, one)
    with results():
        if json:
            write_json([_plain(link) for link in links])
        else:
            print_links(links)


def print_links(links: Sequence[Link]) -> None:
    """An article, and what it goes back to step by step."""
    console = render.console()
    for depth, link in enumerate(links):
        if depth:
            console.print(Text("\nwhich repeats\n" if depth > 1 else "\nit repeats\n", "bold"))
        print_link(link)
    verdict = links[0].verdict
    if verdict is not None and verdict.outcome == "duplicate":
        other = links[1].stored.record if len(links) > 1 else links[0].stored.record
        console.print(f"\ndistance {verdict.distance} bits, {render.similarity_text(verdict.similarity)}")
        console.print(render.keywords_line(shared_keywords(links[0].stored.record, other)))


def print_link(link: Link) -> None:
    """One version and its verdict."""
    render.console().print(render.record_table(link.stored.record, link.verdict, _ends(link.stored)))


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
