"""Counts decisions about flags and their outcomes, for reports that a newsroom publishes.

Reports contain neither people nor notes. Only flags count: decisions about other queue entries change no feed. Days are
in UTC: for a decision the day it was made, for a flag the day its article arrived.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Connection, Row, Select, case, func, literal, null, select
from sqlalchemy.sql.selectable import Subquery

from consumer.reviews.flag_row import STATES
from consumer.reviews.kinds.rules import RELEASABLE_KINDS
from consumer.reviews.portable import portions
from consumer.reviews.tables import FLAGS, REASONS, REVIEWS, SOURCES
from storage.clock import MS_PER_DAY

Grouping = Literal["day", "source", "reason"]
CountedEvent = Literal["flagged", "right", "wrong", "skip"]
DeciderKind = Literal["person", "standing"]
DecisionOutcome = Literal["undone", "sent", "elsewhere", "refused", "waiting"]
"""The outcome of a decision: it was undone, or the release after *wrong* was sent, came from elsewhere, was refused, or
is waiting."""
RefusalCause = Literal["left_store", "no_flag", "other"]
"""Why a release was refused: the store no longer has the version, the version is not a flag, or another reason."""


class DaySpan(NamedTuple):
    """Whole days, as milliseconds since 1970, excluding the end."""

    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class ReportLine:
    """The number of flags of a source, or of decisions about them, with the same event on one day.

    ``source`` is None until it is known. Other fields that do not apply to ``event`` are None.
    """

    event: CountedEvent
    source: str | None
    by: DeciderKind | None
    reason: str | None
    outcome: DecisionOutcome | None
    why: RefusalCause | None
    flags: int


@dataclass(frozen=True, slots=True)
class DecisionTally:
    """The number of flags in a group, and of decisions about them.

    ``undone`` counts the undone decisions, which no other field counts. ``by_standing`` counts the decisions that
    standing decisions made, except undone ones. The last four fields are the outcomes of ``wrong``.
    """

    flagged: int = 0
    right: int = 0
    wrong: int = 0
    skip: int = 0
    undone: int = 0
    by_standing: int = 0
    sent: int = 0
    elsewhere: int = 0
    refused: int = 0
    waiting: int = 0


class DecisionReport(NamedTuple):
    """The counts of each group, and their total.

    The key of a group is the start of a day (ms since 1970), or the name of a source or a reason, None if there is
    none. ``refusals`` counts refused releases by cause.
    """

    groups: Mapping[int | str | None, DecisionTally]
    total: DecisionTally
    refusals: Mapping[RefusalCause, int]


def report(connection: Connection, span: DaySpan, grouping: Grouping) -> DecisionReport:
    """Return the grouped counts of flags and decisions in a span of days."""
    groups: defaultdict[int | str | None, Counter[str]] = defaultdict(Counter)
    refusals: Counter[RefusalCause] = Counter()
    for key, flags in _flag_counts(connection, span, grouping):
        if flags:
            groups[key]["flagged"] += flags
    decided = _decisions_query(span)
    columns = (_key(decided, grouping), decided.c.event, decided.c.by, decided.c.outcome, decided.c.why)
    rows = connection.execute(select(*columns, func.count()).group_by(*columns)).all()
    names = _names(connection, grouping, {row[0] for row in rows})
    for key, event, by, outcome, why, flags in rows:
        groups[names.get(key, key)] += Counter(dict.fromkeys(_tally_fields(event, by, outcome), flags))
        if why is not None:
            refusals[why] += flags
    total: Counter[str] = sum(groups.values(), Counter())
    return DecisionReport(
        {key: DecisionTally(**counts) for key, counts in groups.items()}, DecisionTally(**total), refusals
    )


def _tally_fields(event: CountedEvent, by: DeciderKind, outcome: DecisionOutcome | None) -> Iterator[str]:
    """Yield the fields of ``DecisionTally`` that a decision adds to."""
    if outcome != "undone":
        yield event
        if by == "standing":
            yield "by_standing"
    if outcome is not None:
        yield outcome


def lines_of_day(connection: Connection, from_ms: int) -> list[ReportLine]:
    """Return the counts of one day: flags first, then decisions, each ordered by source."""
    span = DaySpan(from_ms, from_ms + MS_PER_DAY)
    flagged = select(FLAGS.c.source_id, func.count()).where(*_arrival_conditions(span.from_ms, span.to_ms))
    raised = connection.execute(flagged.group_by(FLAGS.c.source_id)).all()
    decided = _decisions_query(span)
    columns = (
        *(decided.c.source_id, decided.c.event, decided.c.by, decided.c.reason_id, decided.c.outcome, decided.c.why),
    )
    rows = connection.execute(select(*columns, func.count()).group_by(*columns)).all()
    sources = _names(connection, "source", {row[0] for row in (*raised, *rows)})
    reasons = _names(connection, "reason", {row.reason_id for row in rows})
    lines = [ReportLine("flagged", sources.get(number), None, None, None, None, flags) for number, flags in raised]
    lines += [_line(row, sources, reasons) for row in rows]
    return sorted(lines, key=_order)


def _line(row: Row[*tuple[Any, ...]], sources: Mapping[int, str], reasons: Mapping[int, str]) -> ReportLine:
    source_id, event, by, reason_id, outcome, why, flags = row
    return ReportLine(event, sources.get(source_id), by, reasons.get(reason_id), outcome, why, flags)


def _order(line: ReportLine) -> tuple[Any, ...]:
    known = [line.source is not None, line.source or "", line.event, line.by or "", line.reason or ""]
    return (line.event != "flagged", *known, line.outcome or "", line.why or "")


def _flag_counts(connection: Connection, span: DaySpan, grouping: Grouping) -> Iterable[tuple[int | str | None, int]]:
    """Return the number of flags in each group. Flags have no reason, so grouping by reason yields none.

    Index entries are counted per day or source, which is many times faster than grouping a million flags.
    """
    if grouping == "reason":
        return []
    if grouping == "day":
        begin = select(literal(span.from_ms, BigInteger).label("at_ms")).cte("days", recursive=True)
        next_ms = begin.c.at_ms + MS_PER_DAY
        days = begin.union_all(select(next_ms).where(next_ms < span.to_ms))
        within = _arrival_conditions(days.c.at_ms, days.c.at_ms + MS_PER_DAY)
        number = select(func.count()).select_from(FLAGS).where(*within).correlate(days).scalar_subquery()
        return [(at_ms, flags) for at_ms, flags in connection.execute(select(days.c.at_ms, number))]
    within = _arrival_conditions(span.from_ms, span.to_ms)
    of_source = select(func.count()).select_from(FLAGS).where(FLAGS.c.source_id == SOURCES.c.source_id, *within)
    named = select(SOURCES.c.name, of_source.correlate(SOURCES).scalar_subquery())
    unknown = select(func.count()).select_from(FLAGS).where(FLAGS.c.source_id.is_(None), *within)
    found: list[tuple[int | str | None, int]] = [(name, flags) for name, flags in connection.execute(named)]
    return [*found, (None, connection.execute(unknown).scalar_one())]


def _arrival_conditions(
    from_ms: int | ColumnElement[int], to_ms: int | ColumnElement[int]
) -> tuple[ColumnElement[bool], ...]:
    # Naming all states lets the query use the index, in which the state comes first.
    of_flags = (FLAGS.c.state.in_(STATES), FLAGS.c.kind.in_(RELEASABLE_KINDS))
    return (*of_flags, FLAGS.c.arrived_ms >= from_ms, FLAGS.c.arrived_ms < to_ms)


def _decisions_query(span: DaySpan) -> Subquery:
    """Return the query for the decisions in a span of days, with their outcomes."""
    is_refused = REVIEWS.c.refused.is_not(None)
    outcome = case(
        (REVIEWS.c.undone_ms.is_not(None), "undone"),
        (REVIEWS.c.decision != "wrong", null()),
        (REVIEWS.c.sent_ms.is_not(None), "sent"),
        (FLAGS.c.released_ms.is_not(None), "elsewhere"),
        (is_refused, "refused"),
        else_="waiting",
    )
    why = case(
        (~is_refused | REVIEWS.c.undone_ms.is_not(None) | FLAGS.c.released_ms.is_not(None), null()),
        (REVIEWS.c.refused.contains("is not in the store"), "left_store"),
        (REVIEWS.c.refused.contains("only a flag can be undone"), "no_flag"),
        else_="other",
    )
    return (
        select(
            (REVIEWS.c.at_ms - REVIEWS.c.at_ms % MS_PER_DAY).label("day"),
            FLAGS.c.source_id,
            REVIEWS.c.reason_id,
            REVIEWS.c.decision.label("event"),
            case((REVIEWS.c.standing_id.is_(None), "person"), else_="standing").label("by"),
            outcome.label("outcome"),
            why.label("why"),
        )
        .join_from(REVIEWS, FLAGS, FLAGS.c.flag_id == REVIEWS.c.flag_id)
        .where(REVIEWS.c.at_ms >= span.from_ms, REVIEWS.c.at_ms < span.to_ms, FLAGS.c.kind.in_(RELEASABLE_KINDS))
        .subquery("decided")
    )


def _key(decided: Subquery, grouping: Grouping) -> ColumnElement[int | None]:
    columns: Mapping[Grouping, ColumnElement[int | None]] = {
        "day": decided.c.day,
        "source": decided.c.source_id,
        "reason": decided.c.reason_id,
    }
    return columns[grouping]


def _names(connection: Connection, grouping: Grouping, numbers: set[int | None]) -> dict[int, str]:
    """Return the names of sources or reasons by number; none for days."""
    if grouping == "day":
        return {}
    known = sorted(number for number in numbers if number is not None)
    return dict(_read_names(connection, grouping, known))


def _read_names(connection: Connection, grouping: Grouping, numbers: Iterable[int]) -> Iterator[tuple[int, str]]:
    key, name = (SOURCES.c.source_id, SOURCES.c.name) if grouping == "source" else (REASONS.c.reason_id, REASONS.c.name)
    query: Select[Any] = select(key, name)
    for portion in portions(numbers):
        for row in connection.execute(query.where(key.in_(portion))):
            yield row[0], row[1]
