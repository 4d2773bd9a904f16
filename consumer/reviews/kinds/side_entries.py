"""Stores queue entries other than flags: near misses, repeats of ended articles, and bank matches.

As with flags, repeated events change nothing. If events name different originals for a version, the first counts.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from consumer.model.bank_match import BankMatchEvent, match_of
from consumer.model.near_miss import NearMiss
from consumer.model.verdict import EndedBefore, Verdict
from consumer.reviews.decisions import reopen
from consumer.reviews.kinds.bank_mentions import Mention, add_mentions, denying_items, update_similarities
from consumer.reviews.kinds.rules import Kind
from consumer.reviews.lineage import ArticleVersion, StoredFlag, known_flags
from consumer.reviews.new_flags import CERTAINTY_MIN, NewEntry, insert_new
from consumer.reviews.portable import Lock, acquire_lock, is_storable_id
from consumer.text.timestamps import since_1970_ms


def add_near_misses(connection: Connection, pairs: Sequence[NearMiss]) -> int:
    """Store sampled pairs, and return how many are new."""
    return _add(connection, "near_miss", [_near_miss(pair) for pair in pairs])


def add_ended_before(connection: Connection, verdicts: Sequence[Verdict]) -> int:
    """Store repeats of ended articles, and return how many are new. Other verdicts are ignored."""
    return _add(connection, "ended_before", [row for row in map(_ended_before, verdicts) if row is not None])


class NewMatch(NamedTuple):
    """A bank match that names a new item for its version, and the story of the entry."""

    event: BankMatchEvent
    story_id: int


class AddedMatches(NamedTuple):
    """The number of new entries, and the events that named new items."""

    entries: int
    new: list[NewMatch]


def add_bank_matches(connection: Connection, events: Sequence[BankMatchEvent]) -> int:
    """Store bank matches, and return how many entries are new."""
    return store_bank_matches(connection, events).entries


def store_bank_matches(connection: Connection, events: Sequence[BankMatchEvent]) -> AddedMatches:
    """Store bank matches, one entry per version with all its items. Return how many are new, and the new items.

    A new item reopens an entry that somebody has decided, because nobody has looked at that item. Events with invalid
    ids, or without items of deny banks, are ignored.
    """
    rows: dict[ArticleVersion, NewEntry] = {}
    mentions: dict[ArticleVersion, dict[tuple[str, str], Mention]] = {}
    for event in events:
        copy, items = (event.id, event.version), denying_items(event.banks)
        if items and all(map(is_storable_id, copy)):
            rows.setdefault(copy, _bank_match(event, items))
            mentions[copy] = items | mentions.get(copy, {})
    if not rows:
        return AddedMatches(0, [])
    acquire_lock(connection, Lock.FLAGS)
    inserted = insert_new(connection, list(rows.values()), "bank_match").flag_ids
    known = known_flags(connection, list(rows), "bank_match")
    new = add_mentions(connection, {known[copy].flag_id: items.values() for copy, items in mentions.items()})
    grown = {flag_id for flag_id, _, _ in new}
    update_similarities(connection, grown)
    reopen(connection, list(grown - set(inserted.values())))
    return AddedMatches(len(inserted), _new_matches(events, known, new))


def _new_matches(
    events: Sequence[BankMatchEvent], known: Mapping[ArticleVersion, StoredFlag], new: set[tuple[int, str, str]]
) -> list[NewMatch]:
    """Return the events with new mentions. A mention in several events counts only for the first."""
    unclaimed, found = set(new), []
    for event in events:
        entry = known.get((event.id, event.version))
        named = set() if entry is None else {(entry.flag_id, *item) for item in denying_items(event.banks)} & unclaimed
        if entry is not None and named:
            found.append(NewMatch(event, entry.story_id))
            unclaimed -= named
    return found


class AddedEntries(NamedTuple):
    """The numbers of entries in verdicts: new ones of each kind, and known ones.

    ``verdicts`` counts the verdicts that have such entries and are neither flags nor releases. ``matches`` are the bank
    matches with new items.
    """

    ended_before: int = 0
    bank_matches: int = 0
    known: int = 0
    verdicts: int = 0
    matches: tuple[NewMatch, ...] = ()


def add_side_entries(connection: Connection, verdicts: Sequence[Verdict]) -> AddedEntries:
    """Store the entries that verdicts report, other than flags and releases.

    A feed in a file or a store reports these entries in no other way.
    """
    found = [(verdict, _ended_before(verdict), match_of(verdict)) for verdict in verdicts]
    ended = [row for _, row, _ in found if row is not None]
    matches = [match for _, _, match in found if match is not None]
    new_ended, added = _add(connection, "ended_before", ended), store_bank_matches(connection, matches)
    unique = sum(
        (row is not None or match is not None) and verdict.outcome == "unique" and not verdict.released
        for verdict, row, match in found
    )
    known = len(ended) + len(matches) - new_ended - added.entries
    return AddedEntries(new_ended, added.entries, known, unique, tuple(added.new))


def _add(connection: Connection, kind: Kind, rows: Sequence[NewEntry]) -> int:
    if not rows:
        return 0
    acquire_lock(connection, Lock.FLAGS)
    # If several events are about one version, the first counts.
    first = {row.copy: row for row in reversed(rows)}
    return len(insert_new(connection, list(reversed(first.values())), kind).flag_ids)


def _near_miss(pair: NearMiss) -> NewEntry:
    return NewEntry(
        kind="near_miss",
        copy=(pair.id, pair.version),
        original=(pair.original, pair.original_version),
        cluster=None,
        source=pair.source,
        original_source=pair.original_source,
        similarity=pair.similarity,
        distance=pair.distance,
        certainty=pair.similarity,
        sampled_in=pair.sampled_in,
        truncated=pair.truncated,
        arrived_ms=_time_ms(pair.arrived_at),
        decided_ms=_time_ms(pair.decided_at),
    )


def _ended_before(verdict: Verdict) -> NewEntry | None:
    """Return the entry for the ended article that a verdict repeats.

    Return None if there is none, if it is the version itself, or if the version or an id cannot be stored.
    """
    ended = verdict.ended_before
    if not isinstance(ended, EndedBefore) or verdict.version is None:
        return None
    copy, original = (verdict.id, verdict.version), (ended.id, ended.version)
    if copy == original or not all(map(is_storable_id, (*copy, *original))):
        return None
    return _entry(
        "ended_before",
        copy,
        original,
        ended.similarity,
        (verdict.arrived_at, verdict.decided_at),
        truncated=verdict.truncated,
    )


def _bank_match(event: BankMatchEvent, items: dict[tuple[str, str], Mention]) -> NewEntry:
    copy = event.id, event.version
    similarity = max(item.similarity for item in items.values())
    return _entry("bank_match", copy, copy, similarity, (event.arrived_at, event.decided_at), truncated=False)


def _entry(
    kind: Kind,
    copy: ArticleVersion,
    original: ArticleVersion,
    similarity: float | None,
    times: tuple[str, str],
    *,
    truncated: bool,
) -> NewEntry:
    """Return an entry without sources or distance. ``times`` are the times of arrival and of the verdict."""
    return NewEntry(
        kind=kind,
        copy=copy,
        original=original,
        cluster=None,
        source=None,
        original_source=None,
        similarity=similarity,
        distance=None,
        certainty=CERTAINTY_MIN if similarity is None else similarity,
        sampled_in=1.0,
        truncated=truncated,
        arrived_ms=_time_ms(times[0]),
        decided_ms=_time_ms(times[1]),
    )


def _time_ms(timestamp: str) -> int:
    return since_1970_ms(datetime.fromisoformat(timestamp))
