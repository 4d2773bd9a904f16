"""Chooses a few of many equal texts to stand in for all of them in the new store.

The old store may have kept any number of texts that are equal now: it compared nothing with texts without keys,
and only newer schemes ignore the spaces in short texts. If all of them had keys, the new store would read them all for
every further copy. A few are enough: docs/decisions/0049.
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
"""How many other versions must stand in for a version: one of them may be replaced or retracted later."""
WINDOW_PARTS: Final = 32
"""A stand-in must arrive within 1/32 of the window before or after the version that it stands in for.

So it leaves the window at most that much earlier.
"""


def drop_spare_keys(versions: Sequence[Version], uncompared: Collection[bytes], search: Search) -> list[Version]:
    """Return these versions, without the keys of those that enough others stand in for.

    No two of these versions may have the same id. Only versions whose references are in ``uncompared`` may lose their
    keys: the old store could not compare them with all texts that are equal now. Raises the store's errors.
    """
    equal: defaultdict[tuple[object, ...], list[Record]] = defaultdict(list)
    for version in versions:
        if version.reference in uncompared and version.record.keys:
            equal[_match_key(version.record)].append(version.record)
    if not equal:
        return list(versions)
    groups = [sorted(group, key=lambda record: record.arrival) for group in equal.values()]
    firsts = [group[0] for group in groups]
    near = search.look_up_unstored(firsts)
    spare: set[bytes] = set()
    for first, group in zip(firsts, groups, strict=True):
        neighbours = [near.stored[neighbour.record.reference] for neighbour in near.neighbours[first.reference]]
        spare |= _with_stand_ins(
            group, [other for other in neighbours if _is_kept_equal(other, first)], search.settings
        )
    return [_without_keys(version) if version.reference in spare else version for version in versions]


def _with_stand_ins(group: Sequence[Record], stored: Sequence[StoredVersion], settings: JudgeSettings) -> set[bytes]:
    """Return the references of records that enough other records stand in for.

    ``group`` has records with equal texts, oldest first. Versions in ``stored`` may stand in, and so may earlier
    records of the group that keep their keys.
    """
    with_keys = sorted((other.record for other in stored), key=lambda record: record.arrival)
    spare: set[bytes] = set()
    for record in group:
        # The latest are usually the nearest in time.
        stand_ins = (other for other in reversed(with_keys) if _stands_in(other, record, settings))
        if len(list(islice(stand_ins, STAND_INS_MIN))) == STAND_INS_MIN:
            spare.add(record.reference)
        else:
            with_keys.append(record)
    return spare


def _is_kept_equal(other: StoredVersion, record: Record) -> bool:
    """Return whether a stored version is kept, still in force, and matched by the same texts as the record."""
    return (
        _match_key(other.record) == _match_key(record)
        and other.ends_at is None
        and state_of(other) is VersionState.KEPT
    )


def _match_key(record: Record) -> tuple[object, ...]:
    """Return the fields that decide which texts match a record. Texts with equal digests may differ in the others."""
    return record.text_digest, record.sketch, record.kind, record.fingerprint, record.facts


def _stands_in(other: Record, record: Record, settings: JudgeSettings) -> bool:
    """Return whether every article that would repeat ``record`` would also repeat ``other``, whose text is equal."""
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
