"""Stores decisions about flags, and undoes them until they are final."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, bindparam, exists, insert, select, update

from consumer.model.verdict import REASON_CHARS_MAX
from consumer.reviews.flag_row import IN_FORCE, UNDECIDED, State, add_to_tally
from consumer.reviews.kinds.rules import RULES, Kind
from consumer.reviews.outbox.decision_events import write_decided_events, write_decision_events
from consumer.reviews.outbox.story_events import write_growth_events
from consumer.reviews.portable import Lock, acquire_lock, portions, storable_text
from consumer.reviews.ranking.preferred import MemberChanges
from consumer.reviews.ranking.preferring import refresh_preferred
from consumer.reviews.story_changes import CountChange, change_stories
from consumer.reviews.tables import FLAGS, REVIEWS, STORIES
from consumer.reviews.word_index.waiting import queue_for_indexing

Decision = Literal["right", "wrong", "skip"]
DecisionRefusal = Literal["gone", "decided", "final", "released"]
"""The reason why a flag was not decided.

``gone``: there is no such flag. ``decided``: somebody else has decided. ``final``: the person's own decision is final.
``released``: the flag was released elsewhere.
"""
NOTE_CHARS_MAX: Final = REASON_CHARS_MAX
"""A note is sent with a release, as its reason."""
_STATES: Final[dict[Decision, State]] = {"right": "right", "wrong": "wrong", "skip": "skipped"}
OWN_REVIEWS_MAX: Final = 10_000
"""The maximum number of reviews that ``own_reviews_at`` returns."""


class DecisionResult(NamedTuple):
    """The stored reviews, the flags that were refused, each with the reason, and the articles of the decided flags."""

    review_ids: list[int]
    refused: list[tuple[int, DecisionRefusal]]
    article_ids: dict[int, str]


class _Flag(NamedTuple):
    flag_id: int
    article_id: str
    kind: Kind
    state: State
    story_id: int
    released_ms: int | None
    # Of its story.
    open_copies: int


# Built once: every decision executes these.
_FLAGS_NUMBERED: Final = (
    select(*(FLAGS.c[name] for name in _Flag._fields[:-1]), STORIES.c.open_copies)
    .join_from(FLAGS, STORIES, STORIES.c.story_id == FLAGS.c.story_id)
    .where(FLAGS.c.flag_id.in_(bindparam("these", expanding=True)))
)
_NEW_STATE: Final = update(FLAGS).where(FLAGS.c.flag_id == bindparam("this")).values(state=bindparam("new_state"))
_INSERTED: Final = insert(REVIEWS).returning(REVIEWS.c.review_id)


class _Review(NamedTuple):
    review_id: int
    person_id: int
    final_ms: int
    is_claimed: bool


def decide(  # noqa: PLR0913, PLR0917  # the parts of a decision
    connection: Connection,
    flag_ids: Sequence[int],
    person_id: int,
    decision: Decision,
    note: str,
    now_ms: int,
    undo_ms: int,
    reason_id: int | None = None,
    standing_id: int | None = None,
) -> DecisionResult:
    """Decide flags that nobody has decided yet, and change decisions of the same person that are not final.

    The decisions can be undone for ``undo_ms``. If two people decide a flag at the same time, the second person is
    refused. If a standing decision decides for the person, ``standing_id`` is its id, and no event says that a story is
    fully decided.
    """
    acquire_lock(connection, Lock.FLAGS)
    requested = list(dict.fromkeys(flag_ids))
    flags = _flags(connection, requested)
    decided = [flag.flag_id for flag in flags.values() if flag.state not in UNDECIDED]
    reviews = _last_reviews(connection, decided)
    refused: list[tuple[int, DecisionRefusal]] = []
    changed: list[int] = []
    accepted: list[_Flag] = []
    for flag_id in requested:
        flag, review = flags.get(flag_id), reviews.get(flag_id)
        why = _refusal(flag, review, person_id, now_ms)
        if why is not None:
            refused.append((flag_id, why))
        elif flag is not None:
            accepted.append(flag)
            if review is not None:
                changed.append(review.review_id)
    _mark_undone(connection, changed, now_ms)
    changes = _change_states(connection, [(flag, _STATES[decision]) for flag in accepted])
    _write_copy_events(connection, changes, now_ms)
    values = {
        "person_id": person_id,
        "decision": decision,
        "reason_id": reason_id,
        "note": storable_text(note, NOTE_CHARS_MAX),
        "at_ms": now_ms,
        "final_ms": now_ms + undo_ms,
        "standing_id": standing_id,
    }
    review_ids: list[int] = []
    for portion in portions(accepted):
        rows = [{"flag_id": flag.flag_id, **values} for flag in portion]
        review_ids += connection.execute(_INSERTED, rows).scalars()
    write_decision_events(connection, [*changed, *review_ids], now_ms)
    if standing_id is None:
        write_decided_events(connection, changes.closed, person_id, now_ms)
    return DecisionResult(review_ids, refused, {flag.flag_id: flag.article_id for flag in accepted})


def undo(connection: Connection, review_ids: Sequence[int], person_id: int, now_ms: int) -> list[int]:
    """Undo the decisions among these that are in force, this person's own, and not final. Return their ids.

    Their flags are open again, unless they were released elsewhere in the meantime.
    """
    acquire_lock(connection, Lock.FLAGS)
    columns = select(REVIEWS.c.review_id, REVIEWS.c.flag_id, REVIEWS.c.decision)
    requested: dict[int, tuple[int, Decision]] = {}
    for portion in portions(review_ids):
        for review_id, flag_id, decision in connection.execute(columns.where(REVIEWS.c.review_id.in_(portion))):
            requested[review_id] = flag_id, decision
    flag_ids = [flag_id for flag_id, _ in requested.values()]
    flags, last = _flags(connection, flag_ids), _last_reviews(connection, flag_ids)
    undone: dict[int, _Flag] = {}
    for review_id, (flag_id, decision) in requested.items():
        flag, review = flags[flag_id], last.get(flag_id)
        if review is None or review.review_id != review_id or flag.state != _STATES[decision]:
            continue
        if not _is_final(review, person_id, now_ms):
            undone[review_id] = flag
    _mark_undone(connection, list(undone), now_ms)
    states = [(flag, _state_after_undo(flag)) for flag in undone.values()]
    _write_copy_events(connection, _change_states(connection, states), now_ms)
    write_decision_events(connection, list(undone), now_ms)
    return list(undone)


def is_standing() -> ColumnElement[bool]:
    """Return the condition for flags whose decision in force was made by a standing decision."""
    reviews = REVIEWS.alias()
    in_force = (reviews.c.flag_id == FLAGS.c.flag_id, reviews.c.undone_ms.is_(None))
    return exists().where(*in_force, reviews.c.standing_id.is_not(None), reviews.c.decision == FLAGS.c.state)


def reopen(connection: Connection, flag_ids: Sequence[int]) -> None:
    """Reopen the decided ones among these flags. Their decisions remain in the history.

    The caller must hold ``Lock.FLAGS``.
    """
    decided = [flag for flag in _flags(connection, flag_ids).values() if flag.state not in UNDECIDED]
    _change_states(connection, [(flag, "open") for flag in decided])


def _state_after_undo(flag: _Flag) -> State:
    return "open" if flag.released_ms is None else "released"


def _flags(connection: Connection, flag_ids: Sequence[int]) -> dict[int, _Flag]:
    found: dict[int, _Flag] = {}
    for portion in portions(flag_ids):
        for row in connection.execute(_FLAGS_NUMBERED, {"these": portion}):
            found[row.flag_id] = _Flag._make(row)
    return found


def _last_reviews(connection: Connection, flag_ids: Sequence[int]) -> dict[int, _Review]:
    """Return each flag's last review that was not undone, if any. A reopened flag still has one."""
    columns = select(
        REVIEWS.c.flag_id,
        REVIEWS.c.review_id,
        REVIEWS.c.person_id,
        REVIEWS.c.final_ms,
        (REVIEWS.c.claimed_ms.is_not(None) | REVIEWS.c.sent_ms.is_not(None)).label("is_claimed"),
    )
    found: dict[int, _Review] = {}
    for portion in portions(flag_ids):
        in_force = columns.where(REVIEWS.c.flag_id.in_(portion), REVIEWS.c.undone_ms.is_(None))
        for flag_id, *review in connection.execute(in_force.order_by(REVIEWS.c.review_id)):
            found[flag_id] = _Review(*review)
    return found


def _refusal(flag: _Flag | None, review: _Review | None, person_id: int, now_ms: int) -> DecisionRefusal | None:
    if flag is None:
        return "gone"
    if flag.state == "released":
        return "released"
    if flag.state in UNDECIDED:
        return None
    if review is None or review.person_id != person_id:
        return "decided"
    if flag.released_ms is not None or _is_final(review, person_id, now_ms):
        return "final"
    return None


def _is_final(review: _Review, person_id: int, now_ms: int) -> bool:
    # A sender whose clock is ahead of ours may already have claimed the review.
    return review.person_id != person_id or review.is_claimed or now_ms >= review.final_ms


def _mark_undone(connection: Connection, review_ids: Sequence[int], now_ms: int) -> None:
    for portion in portions(review_ids):
        connection.execute(update(REVIEWS).where(REVIEWS.c.review_id.in_(portion)).values(undone_ms=now_ms))


class _StateChanges(NamedTuple):
    """Changes of the members of stories, the stories that have more copies, and those that are now fully decided."""

    members: MemberChanges = MemberChanges()
    growing: Sequence[int] = ()
    closed: Sequence[int] = ()


def _change_states(connection: Connection, changes: Sequence[tuple[_Flag, State]]) -> _StateChanges:
    """Change the states of flags and all counts, and return the changes of stories.

    The caller must hold ``Lock.FLAGS``.
    """
    if not changes:
        return _StateChanges()
    connection.execute(_NEW_STATE, [{"this": flag.flag_id, "new_state": state} for flag, state in changes])
    states: Counter[tuple[Kind, State]] = Counter()
    stories: dict[int, CountChange] = {}
    open_copies = {flag.story_id: flag.open_copies for flag, _ in changes}
    for flag, state in changes:
        states[flag.kind, flag.state] -= 1
        states[flag.kind, state] += 1
        if RULES[flag.kind].is_copy:
            stories[flag.story_id] = stories.get(flag.story_id, CountChange()) + _difference(flag.state, state)
    add_to_tally(connection, states)
    change_stories(connection, stories)
    reopened = [flag for flag, state in changes if state in UNDECIDED and flag.state not in UNDECIDED]
    queue_for_indexing(connection, [flag.flag_id for flag in reopened])
    copies = [
        (flag.flag_id, flag.state in IN_FORCE, state in IN_FORCE) for flag, state in changes if RULES[flag.kind].is_copy
    ]
    members = MemberChanges(
        joined=[flag_id for flag_id, was, is_now in copies if is_now and not was],
        left=[flag_id for flag_id, was, is_now in copies if was and not is_now],
    )
    return _StateChanges(
        members,
        growing=[story_id for story_id, change in stories.items() if change.copies > 0],
        closed=[
            story_id
            for story_id, change in stories.items()
            if change.open_copies < 0 and open_copies[story_id] + change.open_copies == 0
        ],
    )


def _write_copy_events(connection: Connection, changes: _StateChanges, now_ms: int) -> None:
    """Write events of stories that begin or grow because flags are copies again, and of new preferred members."""
    write_growth_events(connection, changes.growing, now_ms)
    refresh_preferred(connection, changes.members, now_ms)


def _difference(before: State, after: State) -> CountChange:
    return CountChange(
        copies=(after in IN_FORCE) - (before in IN_FORCE), open_copies=(after in UNDECIDED) - (before in UNDECIDED)
    )


@dataclass(frozen=True, slots=True)
class OwnReview:
    """A decision, as shown to the person who made it. ``is_sent``: its release is claimed, sent or refused.

    ``is_superseded``: a later decision about the flag is in force.
    """

    review_id: int
    flag_id: int
    kind: Kind
    article_id: str
    decision: Decision
    at_ms: int
    final_ms: int
    undone_ms: int | None
    is_sent: bool
    is_superseded: bool


def own_review(connection: Connection, person_id: int, review_id: int) -> OwnReview | None:
    """Return a review of this person by id, or None."""
    row = connection.execute(_own_review_query(), {"review": review_id, "person": person_id}).first()
    return None if row is None else OwnReview(*row)


def own_reviews_at(connection: Connection, person_id: int, story_id: int | None, at_ms: int) -> Sequence[OwnReview]:
    """Return up to ``OWN_REVIEWS_MAX`` decisions that a person made at one moment, about one story or (None) about any.

    Decisions that the person's standing decisions made are left out.
    """
    conditions = [REVIEWS.c.at_ms == at_ms, REVIEWS.c.person_id == person_id, REVIEWS.c.standing_id.is_(None)]
    if story_id is not None:
        conditions.append(FLAGS.c.story_id == story_id)
    query = _reviews().where(*conditions).order_by(REVIEWS.c.review_id).limit(OWN_REVIEWS_MAX)
    return [OwnReview(*row) for row in connection.execute(query)]


@cache
def _own_review_query() -> Select[*tuple[Any, ...]]:
    """Return the query for one review of a person. Cached, since pages of flags run it."""
    return _reviews().where(REVIEWS.c.review_id == bindparam("review"), REVIEWS.c.person_id == bindparam("person"))


@cache
def _reviews() -> Select[*tuple[Any, ...]]:
    """Return the query for reviews with the columns that ``OwnReview`` needs."""
    later = REVIEWS.alias()
    is_superseded = exists().where(
        later.c.flag_id == REVIEWS.c.flag_id, later.c.review_id > REVIEWS.c.review_id, later.c.undone_ms.is_(None)
    )
    return select(
        REVIEWS.c.review_id,
        REVIEWS.c.flag_id,
        FLAGS.c.kind,
        FLAGS.c.article_id,
        REVIEWS.c.decision,
        REVIEWS.c.at_ms,
        REVIEWS.c.final_ms,
        REVIEWS.c.undone_ms,
        REVIEWS.c.claimed_ms.is_not(None) | REVIEWS.c.sent_ms.is_not(None) | REVIEWS.c.refused.is_not(None),
        is_superseded,
    ).join_from(REVIEWS, FLAGS, FLAGS.c.flag_id == REVIEWS.c.flag_id)
