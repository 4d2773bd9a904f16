"""``dupwatch explain``: why two articles are near-duplicates, or why not."""

from contextlib import ExitStack
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from consumer.cli import difference_view, render
from consumer.cli.conditions import conditions, gap_ms
from consumer.cli.options import ConfigOption, JsonOption, LastingStoreOption, SetOption, configured, id_hash_of
from consumer.cli.results import results, write_json
from consumer.cli.stored_article import History, stored_article
from consumer.cli.texts import check_one_stream, is_text, read_article
from consumer.config.config import Config
from consumer.fingerprint import Fingerprinter, Lexicon, facts_count, split_blocks
from consumer.judge.comparison import Comparison, compare
from consumer.judge.events import shared_keywords, version_name
from consumer.judge.settings import JudgeSettings, differences
from consumer.judge.versions import ArrivedAt
from consumer.model.errors import ConfigError
from consumer.store_tools.requested_settings import settings_to_compare
from consumer.text.diff import Stretch, difference
from consumer.text.timestamps import rfc3339
from consumer.wiring.parts import engine, judge_settings, lexicon_of, version_builder
from consumer.wiring.stores import STORE_EXAMPLES, opened_store, outlives_run, stored_settings
from storage.clock import now_ms
from storage.interface import Store
from storage.records import Stored

FACTS_SHOWN_MAX = 40
_VERSION_HELP = "Version of {} if that is an id, as in events; default: the latest."


class _Side(NamedTuple):
    """One of the two articles. A file has no history."""

    stored: Stored
    body: str | None
    history: History


class _Facts(NamedTuple):
    """The facts that only one of the two articles has, and those that both have."""

    only_a: list[str]
    only_b: list[str]
    both: list[str]


class _Explained(NamedTuple):
    """Everything that is shown about a pair. ``other_settings`` are given settings that differ from the store's."""

    a: _Side
    b: _Side
    comparison: Comparison
    judged_by: JudgeSettings
    other_settings: list[str]
    facts: _Facts | None
    difference: list[Stretch] | None


def explain(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A", help="A file with an article as JSON or with plain text, - for standard input, or an id."
        ),
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="Same as A.")],
    store: LastingStoreOption = None,
    version_a: Annotated[str | None, typer.Option(help=_VERSION_HELP.format("A"), metavar="HEX")] = None,
    version_b: Annotated[str | None, typer.Option(help=_VERSION_HELP.format("B"), metavar="HEX")] = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Explain why two articles are near-duplicates, or why not: every condition, with its figures.

    Articles in a store are compared with the settings of that store. Settings of the judge and source rules that are
    given here override them.
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
    with ExitStack() as stack:
        opened = None
        other_settings: list[str] = []
        if not outlives_run(config):
            judged_by = judge_settings(config, lexicon)
        else:
            opened = stack.enter_context(opened_store(config, readonly=True))
            stored = stored_settings(opened, lexicon)
            judged_by = settings_to_compare(config, stored)
            other_settings = differences(stored.encode(), judged_by)
        side_a, side_b = (_side(*named, config, opened, judged_by, lexicon) for named in (a, b))
    comparison = compare(side_a.stored, [side_b.stored], judged_by)[0]
    facts = _facts(side_a, side_b, judged_by, lexicon) if comparison.facts_shared_min else None
    differing = None if side_a.body is None or side_b.body is None else difference(side_a.body, side_b.body)
    return _Explained(side_a, side_b, comparison, judged_by, other_settings, facts, differing)


def _plain(explained: _Explained) -> dict[str, object]:
    a, b, comparison = explained.a, explained.b, explained.comparison
    facts, stretches = explained.facts, explained.difference
    return {
        "near": comparison.near,
        **msgspec.to_builtins(comparison),
        "shared_keywords": shared_keywords(a.stored.record, b.stored.record),
        "facts_a": facts_count(a.stored.record.facts),
        "facts_b": facts_count(b.stored.record.facts),
        "facts": None if facts is None else facts._asdict(),
        "apart_ms": gap_ms(a.stored, b.stored),
        "window_ms": explained.judged_by.window_ms,
        "other_settings": explained.other_settings,
        "a": _plain_side(a),
        "b": _plain_side(b),
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


def _facts(a: _Side, b: _Side, judged_by: JudgeSettings, lexicon: Lexicon) -> _Facts | None:
    """Return the facts of both; None if a text is missing, since records hold only hashes of facts."""
    if a.body is None or b.body is None:
        return None
    reference = Fingerprinter(judged_by.scheme, lexicon)
    facts_a, facts_b = reference.facts(a.body), reference.facts(b.body)
    return _Facts(sorted(facts_a - facts_b), sorted(facts_b - facts_a), sorted(facts_a & facts_b))


def _print(explained: _Explained) -> None:
    a, b, comparison = explained.a, explained.b, explained.comparison
    console = render.console()
    for name, side in (("A", a), ("B", b)):
        console.print(_fingerprint_line(name, side))
    if explained.other_settings:
        console.print(
            render.plain(f"Compared with settings that differ from the store's: {'; '.join(explained.other_settings)}")
        )
    histories = (a.history, b.history)
    console.print(conditions(a.stored, b.stored, histories, comparison, explained.judged_by))
    console.print(render.keywords_line(shared_keywords(a.stored.record, b.stored.record)[:20]))
    if comparison.facts_shared_min:
        _print_facts(console, explained.facts, a, b)
    if explained.difference is None:
        console.print("The texts cannot be compared: the store keeps no bodies.")
        return
    console.print(difference_view.shown(explained.difference))
    for note in difference_view.notes(explained.difference):
        console.print(note)


def _print_facts(console: Console, facts: _Facts | None, a: _Side, b: _Side) -> None:
    if facts is None:
        counts = [facts_count(side.stored.record.facts) for side in (a, b)]
        console.print(f"A has {counts[0]} facts, B has {counts[1]}; listing them needs the texts.")
        return
    for name, some in (("facts only in A", facts.only_a), ("only in B", facts.only_b), ("in both", facts.both)):
        console.print(render.facts_line(name, some[:FACTS_SHOWN_MAX]))
        if len(some) > FACTS_SHOWN_MAX:
            console.print(f"... and {len(some) - FACTS_SHOWN_MAX} more; use --json for all")


def _side(
    name: str, version: str | None, config: Config, store: Store | None, settings: JudgeSettings, lexicon: Lexicon
) -> _Side:
    if is_text(name):
        if version is not None:
            raise ConfigError(f"{name} is a file, and only ids have versions; omit --version-a or --version-b")
        article = read_article(name, config)
        fingerprints = engine(config, settings, lexicon).fingerprint([article.body or ""], [article.lang])
        built = version_builder(settings).versions([article], [ArrivedAt(now_ms(), 0)], fingerprints)[0]
        return _Side(Stored(built.record, None, None), article.body, ())
    if store is None:
        raise ConfigError(f"no file named {name!r}; if it is an id, name its store: {STORE_EXAMPLES}")
    if not store.history(id_hash_of(name)):
        raise ConfigError(f"no file named {name!r}, and no article with that id in {config.store.url}")
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
