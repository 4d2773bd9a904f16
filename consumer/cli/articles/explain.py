"""``dupwatch explain``: why two articles are near-duplicates, or why not."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

from consumer.cli import render
from consumer.cli.articles import difference_view
from consumer.cli.options import ConfigOption, JsonOption, LastingStoreOption, SetOption, command_config
from consumer.cli.results import answer
from consumer.cli.texts import check_one_stream, is_text, read_article
from consumer.config.config import Config
from consumer.config.judging import with_stored_settings
from consumer.fingerprint import Lexicon, facts_count, split_blocks
from consumer.judge.binding import Binding
from consumer.judge.comparison import PairComparison
from consumer.judge.events import shared_keywords, version_name
from consumer.judge.guards import guard_skips
from consumer.judge.settings import FACTS_DIFFERING_MIN, FACTS_MISSING_MIN, JudgeSettings, differences
from consumer.judge.versions import ArrivalTime
from consumer.model.errors import ConfigError
from consumer.store_tools.explanation import (
    ComparedArticle,
    Explanation,
    Facts,
    compared_article,
    explain_pair,
    gap_ms,
    plain_values,
)
from consumer.store_tools.inspection import History, how_it_ended, id_hash_of, moment
from consumer.store_tools.requested_settings import settings_to_compare
from consumer.text.counts import counted
from consumer.text.timestamps import rfc3339
from consumer.wiring.components import engine, judge_settings, lexicon_of, version_builder
from consumer.wiring.stores import STORE_EXAMPLES, opened_store, outlives_run, stored_binding, unstored_binding
from storage.clock import MS_PER_S, now_ms
from storage.interface import Store
from storage.records import Record, StoredVersion

FACTS_SHOWN_MAX = 40
_VERSION_HELP = "If {0} is an id, the version of {0}, as in events; default: the latest."


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
    overrides: SetOption = None,
) -> None:
    """Explain why two articles are near-duplicates, or why not: every condition, with its figures.

    Articles in a store are compared with the settings of that store. Settings of the judge and source rules given here
    override them.
    """
    check_one_stream([a, b])
    chosen = command_config(config, overrides, store__url=store)
    explanation = _explain_pair(chosen, (a, version_a), (b, version_b))
    answer(json=json, lines=[plain_values(explanation)], text=_text(explanation))


def _explain_pair(config: Config, a: tuple[str, str | None], b: tuple[str, str | None]) -> Explanation:
    lexicon = lexicon_of(config)
    with ExitStack() as stack:
        opened = None
        other_settings: list[str] = []
        if not outlives_run(config):
            bound = unstored_binding(config, judge_settings(config, lexicon))
        else:
            opened = stack.enter_context(opened_store(config, readonly=True))
            stored = stored_binding(opened, lexicon)
            bound = stored._replace(settings=settings_to_compare(config, stored.settings))
            # A file is read in the same way as the articles of the store.
            config = with_stored_settings(config, stored.settings)
            other_settings = differences(stored.settings.encode(), bound.settings)
        article_a, article_b = (_named_article(*named, config, opened, bound, lexicon) for named in (a, b))
    return explain_pair(article_a, article_b, bound.settings, lexicon, other_settings)


def _text(explanation: Explanation) -> Iterator[RenderableType]:
    a, b, comparison = explanation.a, explanation.b, explanation.comparison
    yield from (_fingerprint_line(name, article) for name, article in (("A", a), ("B", b)))
    if explanation.other_settings:
        different = "; ".join(explanation.other_settings)
        yield render.plain(f"Compared with settings that differ from the store's: {different}")
    yield conditions(a.stored, b.stored, (a.history, b.history), comparison, explanation.settings)
    yield render.keywords_line(shared_keywords(a.stored.record, b.stored.record))
    if comparison.facts_shared_min:
        yield from _facts_lines(explanation.facts, a, b)
    for conflict in explanation.slot_conflicts or ():
        yield render.plain(f"slot {conflict.slot}: {conflict.a} in A, {conflict.b} in B")
    if explanation.difference is None:
        yield "The texts cannot be compared: the store keeps no bodies."
    else:
        yield difference_view.merged_text(explanation.difference)
        yield from difference_view.comparison_notes(explanation.difference)


def _facts_lines(facts: Facts | None, a: ComparedArticle, b: ComparedArticle) -> Iterator[RenderableType]:
    if facts is None:
        counts = [facts_count(article.stored.record.facts) for article in (a, b)]
        yield f"A has {counted(counts[0], 'fact')}, B has {counts[1]}; listing them needs the texts."
        return
    for name, some in (("facts only in A", facts.only_a), ("only in B", facts.only_b), ("in both", facts.both)):
        yield render.facts_line(name, some[:FACTS_SHOWN_MAX])
        if len(some) > FACTS_SHOWN_MAX:
            yield f"... and {len(some) - FACTS_SHOWN_MAX} more; use --json for all"


def _named_article(
    name: str, version: str | None, config: Config, store: Store | None, bound: Binding, lexicon: Lexicon
) -> ComparedArticle:
    if is_text(name):
        if version is not None:
            raise ConfigError(f"{name} is a file, and only ids have versions; remove --version-a or --version-b")
        article = read_article(name, config)
        fingerprints = engine(config, bound, lexicon).fingerprint([article.body or ""], [article.lang])
        built = version_builder(bound).versions([article], [ArrivalTime(now_ms(), 0)], fingerprints)[0]
        return ComparedArticle(StoredVersion(built.record, None, None), article.body, ())
    if store is None:
        raise ConfigError(f"no file named {name!r}; if it is an id, name its store: {STORE_EXAMPLES}")
    if not store.history(id_hash_of(name)):
        raise ConfigError(f"no file named {name!r}, and no article with that id in {config.store.url}")
    return compared_article(store, config.store.url, name, version)


def _fingerprint_line(name: str, article: ComparedArticle) -> Text:
    record = article.stored.record
    bits = 8 * len(record.fingerprint)
    blocks = split_blocks(int.from_bytes(record.fingerprint), bits, bits // 16)
    cut = " ".join(f"{block:04x}" for block in blocks)
    line = Text.assemble((f"{name}  ", "bold"), render.plain(record.id), "  ", (cut, "cyan"))
    if len(article.history) > 1:
        line.append(f"  version {version_name(record.reference)}; dupwatch show lists all versions", "dim")
    return line


def conditions(a: StoredVersion, b: StoredVersion, histories: tuple[History, History], comparison: PairComparison,
               settings: JudgeSettings) -> Table:  # fmt: skip
    """Return a table of all conditions, each with its result and its figures."""
    table = Table(
        "",
        "condition",
        Column("details", overflow="fold"),
        box=None,
        title="near" if comparison.near else "not near",
        title_justify="left",
        title_style="bold",
    )
    x, y = a.record, b.record
    shared, distance = comparison.shared_bands, comparison.one_bits_distance
    bands = f"{shared} shared, one-bit distance {distance}, maximum {settings.one_bits_distance_max}"
    rows: Iterable[tuple[bool, str, str]] = (
        (comparison.other_ids, "different ids", _pair_text(x.id, y.id)),
        (comparison.same_scheme, "same scheme", _pair_text(x.scheme, y.scheme)),
        (
            comparison.in_window,
            "within the window",
            f"arrived {_seconds(gap_ms(a, b))} s apart, maximum {_seconds(settings.window_ms)} s",
        ),
        (comparison.in_force, "both in force", _in_force_text(a, b, histories)),
        (comparison.allowed, "allowed by the source rules", _sources_text(x.source, y.source, settings)),
        (
            comparison.not_released,
            "pair not released",
            "this pair was never released" if comparison.not_released else "one was released from the other",
        ),
        (
            comparison.found_by_blocks,
            "found by a fingerprint block",
            _distance_text(comparison, settings),
        ),
        (comparison.found_by_bands, "or found by a sketch band", bands),
        (comparison.verified, "similar enough", _similarity_text(comparison, settings)),
        (comparison.facts_agree, "facts agree", _facts_text(x, y, comparison, settings)),
    )
    for holds, name, details in rows:
        table.add_row(Text("✓", "green") if holds else Text("✗", "red"), name, render.plain(details))
    return table


def _pair_text(a: str, b: str) -> str:
    return f"both {a}" if a == b else f"{a} and {b}"


def _seconds(time_ms: int) -> str:
    whole, rest = divmod(time_ms, MS_PER_S)
    return f"{whole}.{rest:03}" if rest else f"{whole}"


def _in_force_text(a: StoredVersion, b: StoredVersion, histories: tuple[History, History]) -> str:
    """Return as text when the earlier version arrived, and whether it had ended when the later version arrived."""
    sides = sorted(zip("AB", (a, b), histories, strict=True), key=lambda named: named[1].record.arrival)
    (name, earlier, history), (other_name, later, _) = sides
    arrived = f"{name} arrived first, {rfc3339(earlier.record.time_ms)},"
    ended = how_it_ended(earlier, history)
    if ended is None:
        return f"{arrived} and is still in force"
    ends_ms = earlier.record.time_ms if earlier.ends_at is None else earlier.ends_at.time_ms
    later_arrived = moment(later.record.time_ms, later.record.sequence, ends_ms)
    return f"{arrived} and was {ended}; {other_name} arrived {later_arrived}"


def _sources_text(a: str, b: str, settings: JudgeSettings) -> str:
    compared = "compared" if settings.compares(a, b) else "not compared"
    if a != b:
        return f"sources {_source(a)} and {_source(b)}, which are {compared} with each other"
    return f"both from source {_source(a)}, whose articles are {compared} with each other"


def _source(name: str) -> str:
    return repr(name) if name else "(none)"


def _distance_text(comparison: PairComparison, settings: JudgeSettings) -> str:
    distance = counted(comparison.distance, "bit")
    return f"distance {distance}, maximum {settings.suspect_distance_max}, radius {settings.radius}"


def _similarity_text(comparison: PairComparison, settings: JudgeSettings) -> str:
    if not settings.verify:
        return f"distance {comparison.distance}, maximum {comparison.distance_max}"
    similarity = "–" if comparison.similarity is None else f"{comparison.similarity:.3f}"
    return f"similarity {similarity}, minimum {comparison.similarity_min:g}"


def _facts_text(x: Record, y: Record, comparison: PairComparison, settings: JudgeSettings) -> str:
    """Return the figures of the fact guard or the slot guard as text, or why they were not checked."""
    if comparison.slot_conflicts is not None:
        conflicts, most = comparison.slot_conflicts, comparison.slot_conflicts_max
        return f"slots with different values: {conflicts}, maximum {most}"
    if not comparison.facts_shared_min:
        return "not checked: facts_shared_min is 0, slot_conflicts_max is not set"
    if guard_skips(x, y, settings):
        return "not checked: the texts are equal"
    counts = f"A has {counted(facts_count(x.facts), 'fact')}, B has {facts_count(y.facts)}"
    checks = []
    if comparison.facts_shared is not None:
        share, least = comparison.facts_shared, comparison.facts_shared_min
        checks.append(_share_text(share, "smaller", least, f"{FACTS_DIFFERING_MIN} or more differ"))
    if comparison.facts_shared_of_more is not None and comparison.facts_shared_of_more_min:
        share, least = comparison.facts_shared_of_more, comparison.facts_shared_of_more_min
        checks.append(_share_text(share, "larger", least, f"the other lacks {FACTS_MISSING_MIN} or more"))
    return "; ".join((counts, *checks))


def _share_text(share: float, which: str, least: float, condition: str) -> str:
    return f"{share:.2f} of the {which} set shared, minimum {least:g} if {condition}"
