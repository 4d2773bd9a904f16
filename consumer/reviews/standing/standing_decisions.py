"""Makes, ends and lists standing decisions, each about a story or a pair of sources."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import BindParameter, ColumnElement, Connection, Row, Select, bindparam, func, insert, select, update

from consumer.model.errors import DupwatchError
from consumer.reviews import decisions
from consumer.reviews.decisions import NOTE_CHARS_MAX
from consumer.reviews.flag_row import STATES, State
from consumer.reviews.kinds.rules import COPY_KINDS
from consumer.reviews.portable import Lock, acquire_lock, portions, storable_text
from consumer.reviews.story_changes import NO_FLAGS, home
from consumer.reviews.tables import FLAGS, PEOPLE, REASONS, REVIEWS, SOURCES, STANDING_DECISIONS, STORIES
from storage.clock import MS_PER_DAY

StandingOutcome = Literal["right", "wrong"]

LASTS_MS_MAX: Final[Mapping[StandingOutcome, int]] = MappingProxyType(
    {"right": 90 * MS_PER_DAY, "wrong": 30 * MS_PER_DAY}
)
"""The longest time a standing decision may last: shorter for *wrong*, which releases articles that nobody has read."""
IN_FORCE_MAX: Final = 500
"""The maximum number of standing decisions in force, since each batch of new flags is compared with all of them."""
LISTED_MAX: Final = 1_000

_SOURCE: Final = SOURCES.alias("source_of_copy")
_ORIGINAL_SOURCE: Final = SOURCES.alias("source_of_original")


class StandingError(DupwatchError):
    """A standing decision cannot be made or ended. The message says why."""


class DuplicateStandingDecision(StandingError):  # noqa: N818  # named for the decision
    """A standing decision about the same story or sources is already in force."""


class TooManyStandingDecisions(StandingError):  # noqa: N818  # named for the list
    """The maximum number of standing decisions is in force."""


class UnknownStandingDecision(StandingError):  # noqa: N818  # named for the decision
    """No standing decision has this number."""


class StandingDecisionEnded(StandingError):  # noqa: N818  # named for the decision
    """The standing decision has already ended."""


class OwnerDisabled(StandingError):  # noqa: N818  # named for the person
    """The account of the person who would make the standing decision is disabled."""


class NewStandingDecision(NamedTuple):
    """A standing decision to make: about a story, or about a source and the source it repeats."""

    decision: StandingOutcome
    person_id: int
    ends_ms: int
    note: str
    reason_id: int | None = None
    story_id: int | None = None
    sources: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingDecision:
    """A standing decision, about a story or a pair of sources. The fields of the other kind of subject are None.

    ``in_force`` replaces ``story_id`` if another story has taken over all flags. ``flags`` counts the decided flags.
    """

    standing_id: int
    decision: StandingOutcome
    story_id: int | None
    root_id: str | None
    source_id: int | None
    source: str | None
    original_source_id: int | None
    original_source: str | None
    person_id: int
    person: str
    reason_id: int | None
    reason: str | None
    note: str
    at_ms: int
    ends_ms: int
    undone_ms: int | None
    flags: int

    @property
    def ended_ms(self) -> int:
        """The time at which the decision ends or ended."""
        return self.ends_ms if self.undone_ms is None else min(self.undone_ms, self.ends_ms)

    @property
    def subject(self) -> str:
        """The story or pair of sources, as the audit log names it."""
        return self.root_id if self.root_id is not None else f"{self.source} -> {self.original_source}"

    def is_in_force(self, now_ms: int) -> bool:
        """Return whether the standing decision applies to flags that are stored now."""
        return self.undone_ms is None and now_ms < self.ends_ms


class ReopenedFlag(NamedTuple):
    """A flag that is undecided again because its decision was undone."""

    flag_id: int
    article_id: str


class StandingRevocation(NamedTuple):
    """A standing decision that was ended, the flags whose decisions were undone, and the number that remain decided."""

    standing: StandingDecision
    reopened: list[ReopenedFlag]
    kept: int


class PairHistory(NamedTuple):
    """The number of flags of a pair of sources, and how many of them people decided as right or wrong."""

    flags: int
    right: int
    wrong: int


def begin(connection: Connection, new: NewStandingDecision, now_ms: int) -> StandingDecision:
    """Make a standing decision.

    Raises ``DuplicateStandingDecision``, ``TooManyStandingDecisions`` and ``OwnerDisabled``, and ``ValueError`` for an
    end in the past or beyond ``LASTS_MS_MAX``.
    """
    if not 0 < new.ends_ms - now_ms <= LASTS_MS_MAX[new.decision]:
        raise ValueError("the end of a standing decision must be within the limit for its kind")
    # Because of the lock, the new standing decision decides every flag that is not stored yet.
    acquire_lock(connection, Lock.FLAGS)
    enabled = select(PEOPLE.c.person_id).where(PEOPLE.c.person_id == new.person_id, PEOPLE.c.disabled_ms.is_(None))
    if connection.execute(enabled).first() is None:
        raise OwnerDisabled("the account is disabled")
    known = in_force(connection, now_ms)
    of_sources = new.sources or (None, None)
    about = (new.story_id, *of_sources)
    if any((each.story_id, each.source_id, each.original_source_id) == about for each in known):
        raise DuplicateStandingDecision(
            "a standing decision about the same story or sources is already in force; end it first"
        )
    if len(known) >= IN_FORCE_MAX:
        raise TooManyStandingDecisions(f"{IN_FORCE_MAX} standing decisions are in force; end one first")
    values = {
        "decision": new.decision,
        "story_id": new.story_id,
        "source_id": of_sources[0],
        "original_source_id": of_sources[1],
        "person_id": new.person_id,
        "reason_id": new.reason_id,
        "note": storable_text(new.note, NOTE_CHARS_MAX),
        "at_ms": now_ms,
        "ends_ms": new.ends_ms,
    }
    made = insert(STANDING_DECISIONS).values(values).returning(STANDING_DECISIONS.c.standing_id)
    return _load_standing(connection, connection.execute(made).scalar_one())


def end(connection: Connection, standing_id: int, now_ms: int) -> StandingRevocation:
    """End a standing decision, and undo its decisions that are not final yet.

    Raises ``UnknownStandingDecision`` and ``StandingDecisionEnded``.
    """
    acquire_lock(connection, Lock.FLAGS)
    standing = _load_standing(connection, standing_id)
    if not standing.is_in_force(now_ms):
        raise StandingDecisionEnded("this standing decision has already ended")
    of_this = STANDING_DECISIONS.c.standing_id == standing_id
    connection.execute(update(STANDING_DECISIONS).where(of_this).values(undone_ms=now_ms))
    # The condition on time uses an index; there is none on ``standing_id``.
    made = (REVIEWS.c.at_ms >= standing.at_ms, REVIEWS.c.standing_id == standing_id, REVIEWS.c.undone_ms.is_(None))
    pending = (
        select(REVIEWS.c.review_id, FLAGS.c.flag_id, FLAGS.c.article_id)
        .join_from(REVIEWS, FLAGS, FLAGS.c.flag_id == REVIEWS.c.flag_id)
        .where(*made, REVIEWS.c.final_ms > now_ms)
    )
    flags = {review_id: ReopenedFlag(*flag) for review_id, *flag in connection.execute(pending)}
    undone_ids = decisions.undo(connection, list(flags), standing.person_id, now_ms)
    kept = connection.execute(select(func.count()).select_from(REVIEWS).where(*made)).scalar_one()
    return StandingRevocation(replace(standing, undone_ms=now_ms), [flags[review_id] for review_id in undone_ids], kept)


def end_all_of(connection: Connection, person_id: int, now_ms: int) -> None:
    """End all standing decisions of a person. Flags that these have decided remain decided."""
    acquire_lock(connection, Lock.FLAGS)
    own = update(STANDING_DECISIONS).where(STANDING_DECISIONS.c.person_id == person_id, *_is_in_force(now_ms))
    connection.execute(own.values(undone_ms=now_ms))


def in_force(connection: Connection, now_ms: int) -> list[StandingDecision]:
    """Return the standing decisions in force, the oldest first."""
    rows = connection.execute(_in_force_query(), {"now_ms": now_ms}).all()
    empty = {row.story_id: row.root_id for row in rows if row.first_ms == NO_FLAGS}
    followed = _successors(connection, empty)
    found = map(_standing_from_row, rows)
    return [replace(each, story_id=followed.get(each.story_id, each.story_id)) for each in found]


def ended_since(connection: Connection, since_ms: int, now_ms: int) -> list[StandingDecision]:
    """Return up to ``LISTED_MAX`` standing decisions that have ended since ``since_ms``, the most recent first."""
    ended = func.coalesce(STANDING_DECISIONS.c.undone_ms, STANDING_DECISIONS.c.ends_ms)
    query = _standing_query().where(ended >= since_ms, ended <= now_ms).order_by(None)
    latest = query.order_by(ended.desc(), STANDING_DECISIONS.c.standing_id.desc()).limit(LISTED_MAX)
    return list(map(_standing_from_row, connection.execute(latest)))


def counts_in_force(connection: Connection, now_ms: int) -> Counter[StandingOutcome]:
    """Return the number of standing decisions in force by outcome."""
    return Counter(each.decision for each in in_force(connection, now_ms))


def pair_history(connection: Connection, sources: tuple[int, int], since_ms: int) -> PairHistory:
    """Return the history of a pair of sources since ``since_ms``."""
    of_pair = (FLAGS.c.source_id == sources[0], FLAGS.c.original_source_id == sources[1])
    came = (FLAGS.c.state.in_(STATES), FLAGS.c.kind == "flag", FLAGS.c.arrived_ms >= since_ms)
    some = select(FLAGS.c.state, decisions.is_standing().label("is_standing")).where(*of_pair, *came).subquery("some")
    counted = select(some.c.state, some.c.is_standing, func.count()).group_by(some.c.state, some.c.is_standing)
    flags: Counter[tuple[State, bool]] = Counter()
    for state, is_standing, number in connection.execute(counted):
        flags[state, bool(is_standing)] += number
    return PairHistory(flags.total(), right=flags["right", False], wrong=flags["wrong", False])


def _is_in_force(now_ms: int | BindParameter[int]) -> tuple[ColumnElement[bool], ...]:
    return STANDING_DECISIONS.c.undone_ms.is_(None), STANDING_DECISIONS.c.ends_ms > now_ms


def _successors(connection: Connection, empty: Mapping[int, str]) -> dict[int | None, int]:
    """Return, for each empty story, the story that has taken over all its flags. ``empty`` maps stories to roots."""
    found: dict[int | None, int] = {}
    roots = {root_id: story_id for story_id, root_id in empty.items()}
    for portion in portions(roots):
        # The root of an empty story has turned out to be a copy. Its flag is in the other story.
        copies = (FLAGS.c.article_id.in_(portion), FLAGS.c.kind.in_(COPY_KINDS), FLAGS.c.released_ms.is_(None))
        columns = select(FLAGS.c.article_id, home()).where(*copies)
        for article_id, story_id in connection.execute(columns.order_by(FLAGS.c.flag_id.desc())):
            found[roots[article_id]] = story_id
    return found


def _load_standing(connection: Connection, standing_id: int) -> StandingDecision:
    row = connection.execute(_numbered_query(), {"this": standing_id}).one_or_none()
    if row is None:
        raise UnknownStandingDecision(f"there is no standing decision with the number {standing_id}")
    return _standing_from_row(row)


@cache
def _numbered_query() -> Select[*tuple[Any, ...]]:
    return _standing_query().where(STANDING_DECISIONS.c.standing_id == bindparam("this"))


@cache
def _in_force_query() -> Select[*tuple[Any, ...]]:
    """Return the query for the standing decisions in force. Cached, since pages of flags run it."""
    return _standing_query().where(*_is_in_force(bindparam("now_ms")))


@cache
def _standing_query() -> Select[*tuple[Any, ...]]:
    """Return the query for standing decisions. Cached, since every batch of flags runs it."""
    return (
        select(
            STANDING_DECISIONS,
            STORIES.c.root_id,
            STORIES.c.first_ms,
            _SOURCE.c.name.label("source"),
            _ORIGINAL_SOURCE.c.name.label("original_source"),
            PEOPLE.c.name.label("person"),
            REASONS.c.name.label("reason"),
        )
        .join_from(STANDING_DECISIONS, PEOPLE, PEOPLE.c.person_id == STANDING_DECISIONS.c.person_id)
        .outerjoin(STORIES, STORIES.c.story_id == STANDING_DECISIONS.c.story_id)
        .outerjoin(_SOURCE, _SOURCE.c.source_id == STANDING_DECISIONS.c.source_id)
        .outerjoin(_ORIGINAL_SOURCE, _ORIGINAL_SOURCE.c.source_id == STANDING_DECISIONS.c.original_source_id)
        .outerjoin(REASONS, REASONS.c.reason_id == STANDING_DECISIONS.c.reason_id)
        .order_by(STANDING_DECISIONS.c.standing_id)
    )


def _standing_from_row(row: Row[*tuple[Any, ...]]) -> StandingDecision:
    values = row._asdict()
    del values["first_ms"]
    return StandingDecision(**values)
