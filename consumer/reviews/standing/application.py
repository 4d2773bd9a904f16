"""Applies standing decisions to new flags."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select, update

from consumer.reviews import audit, decisions
from consumer.reviews.flag_row import State
from consumer.reviews.kinds.rules import Kind
from consumer.reviews.moderation.reasons import with_note
from consumer.reviews.portable import Lock, acquire_lock, among, portions
from consumer.reviews.repairs.in_force import stories_above
from consumer.reviews.standing.standing_decisions import StandingDecision, StandingOutcome, in_force
from consumer.reviews.tables import FLAGS, REVIEWS, STANDING_DECISIONS


class _Flag(NamedTuple):
    flag_id: int
    article_id: str
    kind: Kind
    state: State
    story_id: int
    home_id: int | None
    source_id: int | None
    original_source_id: int | None
    decided_ms: int


def apply(
    connection: Connection, flag_ids: Sequence[int], now_ms: int, undo_ms: int, *, are_stored: bool = False
) -> Mapping[StandingOutcome, int]:
    """Decide the open flags that match standing decisions; return the number of flags by decision.

    The flags are new, unless ``are_stored`` says that they came earlier and that their sources have just become known.
    Only decisions about pairs of sources apply to stored flags, and only if the flag was judged after the decision was
    made. Stored flags that somebody has already reviewed are left alone.
    """
    if not flag_ids:
        return {}
    acquire_lock(connection, Lock.FLAGS)
    standing = in_force(connection, now_ms)
    if are_stored:
        standing = [each for each in standing if each.story_id is None]
    if not standing:
        return {}
    by_story = {each.story_id: each for each in standing if each.story_id is not None}
    by_sources = {(each.source_id, each.original_source_id): each for each in standing if each.story_id is None}
    matching: dict[int, list[_Flag]] = defaultdict(list)
    flags = _open_flags(connection, flag_ids)
    reviewed = _reviewed_ids(connection, flags) if are_stored else set()
    above = stories_above(connection, {flag.home_id for flag in flags if flag.home_id is not None})
    for flag in flags:
        chosen = _story_decision(flag, by_story, above) or by_sources.get((flag.source_id, flag.original_source_id))
        if chosen is None or (are_stored and (flag.flag_id in reviewed or flag.decided_ms < chosen.at_ms)):
            continue
        matching[chosen.standing_id].append(flag)
    decided: Counter[StandingOutcome] = Counter()
    for each in standing:
        if each.standing_id in matching:
            decided[each.decision] += _decide(connection, each, matching[each.standing_id], now_ms, undo_ms)
    return decided


def _story_decision(
    flag: _Flag, by_story: Mapping[int, StandingDecision], above: Mapping[int, Collection[int]]
) -> StandingDecision | None:
    """Return the latest decision about a flag's story or the stories it is merged into, or None.

    A decision does not apply to a flag of the original itself.
    """
    numbers = (flag.story_id,) if flag.home_id is None else (flag.home_id, *above[flag.home_id])
    found = [by_story[number] for number in numbers if number in by_story]
    found = [each for each in found if each.root_id != flag.article_id]
    return max(found, key=lambda each: each.standing_id, default=None)


def _decide(
    connection: Connection, standing: StandingDecision, flags: Sequence[_Flag], now_ms: int, undo_ms: int
) -> int:
    decided = decisions.decide(
        connection,
        [flag.flag_id for flag in flags],
        standing.person_id,
        standing.decision,
        standing.note,
        now_ms,
        undo_ms,
        standing.reason_id,
        standing.standing_id,
    )
    more = len(decided.review_ids)
    of_this = STANDING_DECISIONS.c.standing_id == standing.standing_id
    connection.execute(update(STANDING_DECISIONS).where(of_this).values(flags=STANDING_DECISIONS.c.flags + more))
    why = with_note(f"standing decision {standing.standing_id}", with_note(standing.reason, standing.note))
    audit.add_entries(
        connection,
        [
            audit.NewAuditEntry(
                at_ms=now_ms,
                person=standing.person,
                address="",
                action=f"flag.{standing.decision}",
                subject=flag.article_id,
                flag_id=flag.flag_id,
                why=why,
            )
            for flag in flags
        ],
    )
    return more


def _open_flags(connection: Connection, flag_ids: Sequence[int]) -> list[_Flag]:
    columns = select(*(FLAGS.c[name] for name in _Flag._fields))
    found: list[_Flag] = []
    for portion in portions(flag_ids):
        # By number alone: with a condition on the state, SQLite would read all flags in that state.
        found += [_Flag(*row) for row in connection.execute(columns.where(among(connection, FLAGS.c.flag_id, portion)))]
    return [flag for flag in found if flag.kind == "flag" and flag.state == "open"]


def _reviewed_ids(connection: Connection, flags: Sequence[_Flag]) -> set[int]:
    """Return the flags that somebody has already decided, even if the decision was undone."""
    found: set[int] = set()
    for portion in portions([flag.flag_id for flag in flags]):
        found.update(connection.execute(select(REVIEWS.c.flag_id).where(REVIEWS.c.flag_id.in_(portion))).scalars())
    return found
