"""Which of many equal texts, kept by a store that could not compare them, are found in the new store for all.

A text without keys is matched by nothing, and short texts that differ in their spaces are one text only in newer
schemes. So the store in force may have kept any number of texts that are equal now. With keys for each, the new store
would read them all for every other copy. A few are enough: docs/decisions/0049.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Final

import msgspec

from consumer.judge.decision import VersionState, state_of
from consumer.judge.search import Search
from consumer.judge.settings import JudgeSettings
from storage.records import Record, StoredVersion, Version

STAND_INS_MIN: Final = 2
"""A version is left out where so many others stand in for it: one of them may be replaced or retracted later."""
WINDOW_PARTS: Final = 32
"""They arrived within this part of the window of it: so long before it would, it may be matched no more."""


def left_out(versions: Sequence[Version], uncompared: Collection[bytes], search: Search) -> list[Version]:
    """Return these versions, of different ids, as they are to be stored: without keys where others stand in for one.

    ``uncompared`` are the references of those that the store in force could not compare with all that are equal now;
    others keep theirs. Raises the store's errors.
    """
    equal: defaultdict[tuple[object, ...], list[Record]] = defaultdict(list)
    for version in versions:
        if version.reference in uncompared and version.record.keys:
            equal[_matched_by(version.record)].append(version.record)
    if not equal:
        return list(versions)
    groups = [sorted(group, key=lambda record: record.arrival) for group in equal.values()]
    firsts = [group[0] for group in groups]
    near = search.look_up_unstored(firsts)
    out: set[bytes] = set()
    for first, group in zip(firsts, groups, strict=True):
        neighbours = [near.stored[neighbour.record.reference] for neighbour in near.neighbours[first.reference]]
        out |= _with_stand_ins(group, [other for other in neighbours if _is_equal(other, first)], search.settings)
    return [_without_keys(version) if version.reference in out else version for version in versions]


def _with_stand_ins(group: Sequence[Record], stored: Sequence[StoredVersion], settings: JudgeSettings) -> set[bytes]:
    """Return those of a group of equal texts for which ``stored`` ones, or earlier ones of the group, stand in."""
    found = sorted((other.record for other in stored), key=lambda record: record.arrival)
    out: set[bytes] = set()
    for record in group:
        # The latest are the nearest in time, as a rule.
        standing_in = (other for other in reversed(found) if _stands_in(other, record, settings))
        if len(list(islice(standing_in, STAND_INS_MIN))) == STAND_INS_MIN:
            out.add(record.reference)
        else:
            found.append(record)
    return out


def _is_equal(other: StoredVersion, record: Record) -> bool:
    """Return whether a stored version is kept, still in force, and matched by the same texts as the record."""
    return (
        _matched_by(other.record) == _matched_by(record)
        and other.ends_at is None
        and state_of(other) is VersionState.KEPT
    )


def _matched_by(record: Record) -> tuple[object, ...]:
    """Return what decides which texts match a record; equal texts may differ in kind, words and facts."""
    return record.text_digest, record.sketch, record.kind, record.fingerprint, record.facts


def _stands_in(other: Record, record: Record, settings: JudgeSettings) -> bool:
    """Return whether articles that would repeat the record would repeat this one of the same text as well."""
    rule = settings.rule(record.source)
    return (
        other.id_hash != record.id_hash
        and abs(other.time_ms - record.time_ms) <= settings.window_ms // WINDOW_PARTS
        and settings.rule(other.source) == rule
        and settings.never_compared(other.source) == settings.never_compared(record.source)
        and rule.within_source
    )


def _without_keys(version: Version) -> Version:
    return version._replace(record=msgspec.structs.replace(version.record, keys=()))
