"""The conditions of being near, each with the facts that it was decided from."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from consumer.cli.render import plain
from consumer.cli.stored_article import History, how_it_ended, moment
from consumer.judge.comparison import Comparison
from consumer.judge.events import rfc3339
from consumer.judge.settings import FACTS_DIFFERING_MIN, ONE_BITS_DISTANCE_MAX, JudgeSettings
from storage.clock import MS_PER_S
from storage.records import Stored


def conditions(a: Stored, b: Stored, histories: tuple[History, History], comparison: Comparison,
               settings: JudgeSettings) -> Table:  # fmt: skip
    """Every condition of being near, whether it holds, and the figures behind it."""
    table = Table(box=None, title="near" if comparison.near else "not near", title_justify="left", title_style="bold")
    table.add_column("")
    table.add_column("condition")
    table.add_column("what was found", overflow="fold")
    x, y = a.record, b.record
    rows: Iterable[tuple[bool, str, str]] = (
        (comparison.other_ids, "other ids", _both(x.id, y.id)),
        (comparison.same_scheme, "same scheme", _both(x.scheme, y.scheme)),
        (comparison.in_window, "within the window", _window_text(gap_ms(a, b), settings.window_ms)),
        (comparison.in_force, "both in force", _in_force_text(a, b, histories)),
        (comparison.allowed, "allowed by the rules of their sources", _sources_text(x.source, y.source, settings)),
        (comparison.not_released, "the one not released from the other", _release_text(comparison)),
        (
            comparison.found_by_blocks,
            "found by a block of the fingerprint",
            f"distance {comparison.distance} bits, at most {settings.suspect_distance_max}, radius {settings.radius}",
        ),
        (
            comparison.found_by_bands,
            "or found by a band of the sketch",
            _bands_text(comparison),
        ),
        (comparison.verified, "similar enough", _similarity_text(comparison, settings)),
        (comparison.facts_agree, "no other facts", _facts_text(comparison)),
    )
    for holds, name, found in rows:
        table.add_row(Text("✓", "green") if holds else Text("✗", "red"), name, plain(found))
    return table


def gap_ms(a: Stored, b: Stored) -> int:
    """How far apart two versions arrived."""
    return abs(a.record.time_ms - b.record.time_ms)


def _both(one: str, other: str) -> str:
    return f"both {one}" if one == other else f"{one} and {other}"


def _window_text(apart_ms: int, window_ms: int) -> str:
    return f"arrived {_seconds(apart_ms)} s apart, at most {_seconds(window_ms)} s is allowed"


def _seconds(time_ms: int) -> str:
    whole, rest = divmod(time_ms, MS_PER_S)
    return f"{whole}.{rest:03}" if rest else f"{whole}"


def _in_force_text(a: Stored, b: Stored, histories: tuple[History, History]) -> str:
    """Whether the earlier one was in force when the later one came."""
    sides = sorted(zip("AB", (a, b), histories, strict=True), key=lambda side: side[1].record.arrival)
    (name, earlier, history), (other_name, later, _) = sides
    came = f"{name} came first, {rfc3339(earlier.record.time_ms)}"
    ended = how_it_ended(earlier, history)
    if ended is None:
        return f"{came}, and is in force since"
    ends_ms = earlier.record.time_ms if earlier.ends_at is None else earlier.ends_at.time_ms
    return f"{came}, and was {ended}; {other_name} came {moment(later.record.time_ms, later.record.sequence, ends_ms)}"


def _sources_text(one: str, other: str, settings: JudgeSettings) -> str:
    if one != other:
        return f"sources {_source(one)} and {_source(other)}"
    within = "may" if settings.rule(one).within_source else "may not"
    return f"both from source {_source(one)}, whose articles {within} repeat each other"


def _source(name: str) -> str:
    return repr(name) if name else "(none)"


def _release_text(comparison: Comparison) -> str:
    return "no release names the pair" if comparison.not_released else "a person has released one from the other"


def _bands_text(comparison: Comparison) -> str:
    shared, distance = comparison.shared_bands, comparison.one_bits_distance
    return f"{shared} shared, one-bit distance {distance}, at most {ONE_BITS_DISTANCE_MAX}"


def _similarity_text(comparison: Comparison, settings: JudgeSettings) -> str:
    if not settings.verify:
        return f"distance {comparison.distance}, at most {comparison.distance_max} is asked for"
    similarity = "–" if comparison.similarity is None else f"{comparison.similarity:.3f}"
    return f"similarity {similarity}, at least {comparison.similarity_min:g} is asked for"


def _facts_text(comparison: Comparison) -> str:
    """What the fact guard was decided from."""
    if not comparison.facts_shared_min:
        return "not asked for"
    if comparison.facts_shared is None:
        return "not both have any"
    return (
        f"{comparison.facts_shared:.2f} of the fewer ones shared, at least {comparison.facts_shared_min:g} "
        f"is asked for where {FACTS_DIFFERING_MIN} or more differ"
    )
