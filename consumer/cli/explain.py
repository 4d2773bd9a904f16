"""``dupwatch explain``: why two articles are near each other, or are not."""

from contextlib import ExitStack
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from consumer.cli import difference_view, render
from consumer.cli.conditions import conditions, gap_ms
from consumer.cli.options import ConfigOption, JsonOption, SetOption, StoreOption, configured, id_hash_of
from consumer.cli.results import results, write_json
from consumer.cli.stored_article import History, stored_article
from consumer.cli.texts import check_one_stream, is_text, read_article
from consumer.config.config import Config
from consumer.fingerprint import Lexicon, facts_count, split_blocks
from consumer.judge.comparison import Comparison, compare
from consumer.judge.events import rfc3339, shared_keywords, version_name
from consumer.judge.settings import JudgeSettings, differences
from consumer.judge.versions import Came
from consumer.model.errors import ConfigError
from consumer.store_tools.requested_settings import settings_to_compare
from consumer.text.diff import Stretch, difference
from consumer.wiring.parts import fingerprinter, judge_settings, lexicon_of, version_builder
from consumer.wiring.stores import STORE_EXAMPLES, opened_store, outlives_run, stored_settings
from storage.clock import now_ms
from storage.interface import Store
from storage.records import Stored

FACTS_SHOWN_MAX = 40
_VERSION_HELP = "Which version of {} where it is an id, as events name it; the last when left out."


class _Side(NamedTuple):
    """One of the two articles; a file has no history."""

    stored: Stored
    body: str | None
    history: History


class _Facts(NamedTuple):
    """Facts that one of two articles has alone, and that both have."""

    only_a: list[str]
    only_b: list[str]
    both: list[str]


class _Explained(NamedTuple):
    """Everything that is told of a pair. ``other_settings`` are those named that are not the store's."""

    one: _Side
    other: _Side
    comparison: Comparison
    judged_by: JudgeSettings
    other_settings: list[str]
    facts: _Facts | None
    difference: list[Stretch] | None


def explain(
    a: Annotated[
        str, typer.Argument(metavar="A", help="A file (an article as JSON, or plain text), - for one, or an id.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="As A.")],
    store: StoreOption = None,
    version_a: Annotated[str | None, typer.Option(help=_VERSION_HELP.format("A"), metavar="HEX")] = None,
    version_b: Annotated[str | None, typer.Option(help=_VERSION_HELP.format("B"), metavar="HEX")] = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Explain why two articles count as near duplicates, or why they do not: every condition, with its figures.

    Articles of a store are compared by the settings that it was made with, and by those of the judge and the rules that
    are named here.
    """
    check_one_stream([a, b])
    chosen = configured(config, settings, store__url=store)
    explained = _explained(chosen, (a, version_a), (b, version_b))
    with results():
        if json:
            write_json(_plain(explained))
        else:
            _print(explained)


def _explained(config: Config, a: tuple[str, str | None], b: tuple[str, str | None]) -> _Explained:
    lexicon = lexicon_of(config)
    with ExitStack() as held:
        opened = None
        other_settings: list[str] = []
        if not outlives_run(config):
            judged_by = judge_settings(config, lexicon)
        else:
            opened = held.enter_context(opened_store(config, readonly=True))
            stored = stored_settings(opened, lexicon)
            judged_by = settings_to_compare(config, stored)
            other_settings = differences(stored.encode(), judged_by)
        one, other = (_side(*side, config, opened, judged_by, lexicon) for side in (a, b))
    comparison = compare(one.stored, [other.stored], judged_by)[0]
    facts = _facts(one, other, judged_by, lexicon) if comparison.facts_shared_min else None
    differing = None if one.body is None or other.body is None else difference(one.body, other.body)
    return _Explained(one, other, comparison, judged_by, other_settings, facts, differing)


def _plain(explained: _Explained) -> dict[str, object]:
    one, other, comparison = explained.one, explained.other, explained.comparison
    facts, stretches = explained.facts, explained.difference
    return {
        "near": comparison.near,
        **msgspec.to_builtins(comparison),
        "shared_keywords": shared_keywords(one.stored.record, other.stored.record),
        "facts_a": facts_count(one.stored.record.facts),
        "facts_b": facts_count(other.stored.record.facts),
        "facts": None if facts is None else facts._asdict(),
        "apart_ms": gap_ms(one.stored, other.stored),
        "window_ms": explained.judged_by.window_ms,
        "other_settings": explained.other_settings,
        "a": _plain_side(one),
        "b": _plain_side(other),
        "difference": None if stretches is None else difference_view.plain_changes(stretches),
    }


def _plain_side(side: _Side) -> dict[str, object]:
    ends_at = side.stored.ends_at
    return {
        "id": side.stored.record.id,
        "version": version_name(side.stored.record.reference),
        "arrived_at": rfc3339(side.stored.record.time_ms),
        "ends_at": None if ends_at is None else rfc3339(ends_at.time_ms),
    }


def _facts(one: _Side, other: _Side, judged_by: JudgeSettings, lexicon: Lexicon) -> _Facts | None:
    """The facts themselves; None where a text is not at hand, as records keep hashes only."""
    if one.body is None or other.body is None:
        return None
    engine = fingerprinter(judged_by, lexicon)
    a, b = engine.facts(one.body), engine.facts(other.body)
    return _Facts(sorted(a - b), sorted(b - a), sorted(a & b))


def _print(explained: _Explained) -> None:
    one, other, comparison = explained.one, explained.other, explained.comparison
    console = render.console()
    for name, side in (("A", one), ("B", other)):
        console.print(_fingerprint_line(name, side))
    if explained.other_settings:
        console.print(
            render.plain(f"Compared with other settings than the store's: {'; '.join(explained.other_settings)}")
        )
    histories = (one.history, other.history)
    console.print(conditions(one.stored, other.stored, histories, comparison, explained.judged_by))
    console.print(render.keywords_line(shared_keywords(one.stored.record, other.stored.record)[:20]))
    if comparison.facts_shared_min:
        _print_facts(console, explained.facts, one, other)
    if explained.difference is None:
        console.print("No difference to show: the store keeps no bodies.")
        return
    console.print(difference_view.shown(explained.difference))
    for note in difference_view.notes(explained.difference):
        console.print(note)


def _print_facts(console: Console, facts: _Facts | None, one: _Side, other: _Side) -> None:
    if facts is None:
        counts = [facts_count(side.stored.record.facts) for side in (one, other)]
        console.print(f"A has {counts[0]} facts, B has {counts[1]}; which ones, only the texts tell.")
        return
    for name, some in (("facts of A alone", facts.only_a), ("of B alone", facts.only_b), ("of both", facts.both)):
        console.print(render.facts_line(name, some[:FACTS_SHOWN_MAX]))
        if len(some) > FACTS_SHOWN_MAX:
            console.print(f"... and {len(some) - FACTS_SHOWN_MAX} more; --json has them all")


def _side(
    name: str, version: str | None, config: Config, store: Store | None, settings: JudgeSettings, lexicon: Lexicon
) -> _Side:
    if is_text(name):
        if version is not None:
            raise ConfigError(f"{name} is a file, and only an id has versions; leave --version-a or --version-b out")
        article = read_article(name, config)
        fingerprints = fingerprinter(settings, lexicon).fingerprint([article.body or ""], [article.lang])
        made = version_builder(settings).versions([article], [Came(now_ms(), 0)], fingerprints)[0]
        return _Side(Stored(made.record, None, None), article.body, ())
    if store is None:
        raise ConfigError(
            f"{name!r} is no file; to name an article by its id, say which store it is in: {STORE_EXAMPLES}"
        )
    if not store.history(id_hash_of(name)):
        raise ConfigError(f"{name!r} is neither a file nor an article in {config.store.url}")
    stored, history = stored_article(store, config.store.url, name, version)
    return _Side(stored, store.bodies([stored.record.reference])[0], history)


def _fingerprint_line(name: str, side: _Side) -> Text:
    record = side.stored.record
    bits = 8 * len(record.fingerprint)
    blocks = split_blocks(int.from_bytes(record.fingerprint), bits, bits // 16)
    cut = " ".join(f"{block:04x}" for block in blocks)
    line = Text.assemble((f"{name}  ", "bold"), render.plain(record.id), "  ", (cut, "cyan"))
    if len(side.history) > 1:
        line.append(f"  version {version_name(record.reference)}; dupwatch show lists all", "dim")
    return line
