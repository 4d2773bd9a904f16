"""The conditions for two articles to be near-duplicates, each with the figures behind it."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from consumer.cli.render import plain
from consumer.fingerprint import facts_count
from consumer.judge.comparison import Comparison, guard_skips
from consumer.judge.settings import FACTS_DIFFERING_MIN, FACTS_MISSING_MIN, JudgeSettings
from consumer.store_tools.explanation import gap_ms
from consumer.store_tools.history import History, how_it_ended, moment
from consumer.text.timestamps import rfc3339
from storage.clock import MS_PER_S
from storage.records import Record, Stored


def conditions(a: Stored, b: Stored, histories: tuple[History, History], comparison: Comparison,
               settings: JudgeSettings) -> Table:  # fmt: skip
    """Return a table of all conditions: whether each holds, and the figures behind it."""
    table = Table(box=None, title="near" if comparison.near else "not near", title_justify="left", title_style="bold")
    table.add_column("")
    table.add_column("condition")
    table.add_column("details", overflow="fold")
    x, y = a.record, b.record
    rows: Iterable[tuple[bool, str, str]] = (
        (comparison.other_ids, "different ids", _both(x.id, y.id)),
        (comparison.same_scheme, "same scheme", _both(x.scheme, y.scheme)),
        (comparison.in_window, "within the window", _window_text(gap_ms(a, b), settings.window_ms)),
        (comparison.in_force, "both in force", _in_force_text(a, b, histories)),
        (comparison.allowed, "allowed by the source rules", _sources_text(x.source, y.source, settings)),
        (comparison.not_released, "pair not released", _release_text(comparison)),
        (
            comparison.found_by_blocks,
            "found by a fingerprint block",
            f"distance {comparison.distance} bits, maximum {settings.suspect_distance_max}, radius {settings.radius}",
        ),
        (comparison.found_by_bands, "or found by a sketch band", _bands_text(comparison, settings)),
        (comparison.verified, "similar enough", _similarity_text(comparison, settings)),
        (comparison.facts_agree, "facts agree", _facts_text(x, y, comparison, settings)),
    )
    for holds, name, details in rows:
        table.add_row(Text("✓", "green") if holds else Text("✗", "red"), name, plain(details))
    return table


def _both(a: str, b: str) -> str:
    return f"both {a}" if a == b else f"{a} and {b}"


def _window_text(apart_ms: int, window_ms: int) -> str:
    return f"arrived {_seconds(apart_ms)} s apart, maximum {_seconds(window_ms)} s"


def _seconds(time_ms: int) -> str:
    whole, rest = divmod(time_ms, MS_PER_S)
    return f"{whole}.{rest:03}" if rest else f"{whole}"


def _in_force_text(a: Stored, b: Stored, histories: tuple[History, History]) -> str:
    """Return whether the earlier version was in force when the later one arrived."""
    sides = sorted(zip("AB", (a, b), histories, strict=True), key=lambda side: side[1].record.arrival)
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


def _release_text(comparison: Comparison) -> str:
    return "no release names this pair" if comparison.not_released else "one was released from the other"


def _bands_text(comparison: Comparison, settings: JudgeSettings) -> str:
    shared, distance = comparison.shared_bands, comparison.one_bits_distance
    return f"{shared} shared, one-bit distance {distance}, maximum {settings.one_bits_distance_max}"


def _similarity_text(comparison: Comparison, settings: JudgeSettings) -> str:
    if not settings.verify:
        return f"distance {comparison.distance}, maximum {comparison.distance_max}"
    similarity = "–" if comparison.similarity is None else f"{comparison.similarity:.3f}"
    return f"similarity {similarity}, minimum {comparison.similarity_min:g}"


def _facts_text(x: Record, y: Record, comparison: Comparison, settings: JudgeSettings) -> str:
    """Return what the fact guard or the slot guard compared."""
    if comparison.slot_conflicts is not None:
        conflicts, most = comparison.slot_conflicts, comparison.slot_conflicts_max
        return f"slots with different values: {conflicts}, maximum {most}"
    if not comparison.facts_shared_min:
        return "not checked: facts_shared_min is 0, slot_conflicts_max is not set"
    if guard_skips(x, y, settings):
        return "not checked: the texts are equal"
    counts = f"A has {facts_count(x.facts)} facts, B has {facts_count(y.facts)}"
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
