"""Copies that people report as missed: two articles, or an article and a text, that dupwatch did not flag.

Only the digest and the figures of a text are stored. The digest is the version that the text would have.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, and_, or_, select, update

from consumer.reviews.flag_row import FlagRow, flag_row, flag_rows
from consumer.reviews.portable import dialect_insert, storable_text
from consumer.reviews.sources import source_ids
from consumer.reviews.tables import FLAGS, PEOPLE, REPORTS, SOURCES

NOTE_CHARS_MAX: Final = 2_000
_PORTION: Final = 1_000
_SOURCE = SOURCES.alias("source_of_copy")
_ORIGINAL_SOURCE = SOURCES.alias("source_of_original")


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedPair:
    """Two articles that are copies of each other. ``article_id`` is the later one, or "" for a text not in the store.

    ``similarity`` is None if the pair was not verified.
    """

    article_id: str
    version: str
    original_id: str
    original_version: str
    source: str
    original_source: str
    similarity: float | None
    distance: int
    arrived_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedPairReport(MissedPair):
    """A reported pair. The report can be undone until ``final_ms``."""

    report_id: int
    person_id: int
    person: str
    note: str
    at_ms: int
    final_ms: int
    undone_ms: int | None

    def can_be_undone(self, person_id: int, now_ms: int) -> bool:
        """Return whether this person can still undo the report."""
        return self.undone_ms is None and self.person_id == person_id and now_ms < self.final_ms


def add(connection: Connection, pair: MissedPair, person_id: int, note: str, now_ms: int, undo_ms: int) -> int | None:
    """Store a report and return its id, or None if the pair is already reported."""
    sources = source_ids(connection, {pair.source, pair.original_source})
    values = {
        "article_id": pair.article_id,
        "version": pair.version,
        "original_id": pair.original_id,
        "original_version": pair.original_version,
        "source_id": sources[pair.source],
        "original_source_id": sources[pair.original_source],
        "similarity": pair.similarity,
        "distance": pair.distance,
        "arrived_ms": pair.arrived_ms,
        "person_id": person_id,
        "note": storable_text(note, NOTE_CHARS_MAX),
        "at_ms": now_ms,
        "final_ms": now_ms + undo_ms,
    }
    # Somebody else may report the same pair at the same moment.
    added = dialect_insert(connection, REPORTS).values(values).on_conflict_do_nothing().returning(REPORTS.c.report_id)
    report_id: int | None = connection.execute(added).scalar()
    return report_id


def undo(connection: Connection, report_id: int, person_id: int, now_ms: int) -> bool:
    """Undo a person's own report, and return whether it could still be undone. The pair can then be reported again."""
    own = and_(REPORTS.c.report_id == report_id, REPORTS.c.person_id == person_id)
    in_time = and_(REPORTS.c.undone_ms.is_(None), REPORTS.c.final_ms > now_ms)
    undone = update(REPORTS).where(own, in_time).values(undone_ms=now_ms).returning(REPORTS.c.report_id)
    return connection.execute(undone).scalar() is not None


def report(connection: Connection, report_id: int) -> MissedPairReport | None:
    """Return the report with an id, or None."""
    row = connection.execute(_reports().where(REPORTS.c.report_id == report_id)).one_or_none()
    return None if row is None else _report(row)


def report_of(connection: Connection, pair: MissedPair) -> MissedPairReport | None:
    """Return a pair's report in force, or None."""
    same = and_(
        REPORTS.c.article_id == pair.article_id,
        REPORTS.c.version == pair.version,
        REPORTS.c.original_id == pair.original_id,
        REPORTS.c.original_version == pair.original_version,
    )
    row = connection.execute(_reports().where(same, REPORTS.c.undone_ms.is_(None))).one_or_none()
    return None if row is None else _report(row)


def latest_reports(connection: Connection, limit: int) -> list[MissedPairReport]:
    """Return up to ``limit`` reports in force, latest first."""
    query = _reports().where(REPORTS.c.undone_ms.is_(None)).order_by(REPORTS.c.report_id.desc()).limit(limit)
    return [_report(row) for row in connection.execute(query)]


def reports_in_force(connection: Connection) -> Iterator[MissedPairReport]:
    """Yield all reports in force, oldest first."""
    after = 0
    while True:
        some = _reports().where(REPORTS.c.report_id > after, REPORTS.c.undone_ms.is_(None))
        rows = connection.execute(some.order_by(REPORTS.c.report_id).limit(_PORTION)).all()
        yield from map(_report, rows)
        if len(rows) < _PORTION:
            return
        after = rows[-1].report_id


def similarities(connection: Connection) -> list[float | None]:
    """Return the similarities of the reports in force, with None for each pair that was not verified."""
    return list(connection.execute(select(REPORTS.c.similarity).where(REPORTS.c.undone_ms.is_(None))).scalars())


def flags_of_article(connection: Connection, article_id: str, limit: int) -> list[FlagRow]:
    """Return up to ``limit`` entries of an article's versions, the latest first."""
    query = flag_rows().where(FLAGS.c.article_id == article_id).order_by(FLAGS.c.flag_id.desc()).limit(limit)
    return [flag_row(row) for row in connection.execute(query)]


def flag_of_pair(connection: Connection, pair: MissedPair) -> FlagRow | None:
    """Return the first entry about these two versions, in either order, or None."""
    a, b = (pair.article_id, pair.version), (pair.original_id, pair.original_version)
    same = or_(
        *(
            and_(
                FLAGS.c.article_id == one[0],
                FLAGS.c.version == one[1],
                FLAGS.c.original_id == other[0],
                FLAGS.c.original_version == other[1],
            )
            for one, other in ((a, b), (b, a))
        )
    )
    row = connection.execute(flag_rows().where(same).order_by(FLAGS.c.flag_id).limit(1)).one_or_none()
    return None if row is None else flag_row(row)


def _reports() -> Select[Any]:
    return (
        select(
            *(REPORTS.c[name] for name in REPORTS.c.keys() if not name.endswith("source_id")),  # noqa: SIM118
            PEOPLE.c.name.label("person"),
            _SOURCE.c.name.label("source"),
            _ORIGINAL_SOURCE.c.name.label("original_source"),
        )
        .join_from(REPORTS, PEOPLE, PEOPLE.c.person_id == REPORTS.c.person_id)
        .join(_SOURCE, _SOURCE.c.source_id == REPORTS.c.source_id)
        .join(_ORIGINAL_SOURCE, _ORIGINAL_SOURCE.c.source_id == REPORTS.c.original_source_id)
    )


def _report(row: Row[Any]) -> MissedPairReport:
    return MissedPairReport(**row._asdict())
