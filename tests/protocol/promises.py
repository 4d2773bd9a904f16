"""The promises that must hold whenever all processes have ended, whatever happened before.

There are millions of ends with only a few versions, so that results for these are cached.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations

from consumer.judge.comparison import compare
from consumer.judge.events import bank_mentions, reference_in
from consumer.model.verdict import EndedBefore, SeenBefore, Verdict, decode_verdict
from consumer.text.timestamps import rfc3339
from storage.postings import postings_of
from storage.records import Record, StoredVersion, Tombstone, Version, id_hash
from tests.protocol.articles import PLAIN
from tests.protocol.contents import Content
from tests.protocol.explorer import Failed, Process, Result
from tests.protocol.texts import MODES

_REMEMBERED_MAX = 1 << 16
_decoded = lru_cache(maxsize=_REMEMBERED_MAX)(decode_verdict)


def broken_promises(
    processes: Sequence[Process], content: Content, results: Sequence[Result | None], mode: str = PLAIN
) -> list[str]:
    """Return a sentence for each promise that is broken, by the settings of this name."""
    failed = [result.why for result in results if isinstance(result, Failed)]
    undecided = [version.record.id for version in content.versions if version.verdict is None]
    if failed or undecided:
        return [*(f"a judge raised {why}" for why in failed), *(f"{name} is undecided" for name in undecided)]
    verdicts = {version.record.reference: _decoded(version.verdict) for version in content.versions if version.verdict}
    return [
        *(() if MODES[mode].stretches_max else _answers(processes, content, results)),
        *_both_kept(content, verdicts, mode),
        *_none_kept(content, verdicts, mode),
        *_unlike(content, verdicts, mode),
        *_chains(content, verdicts),
        *_never_flagged(content, verdicts, mode),
        *_banks(content, verdicts),
        *_postings(content, verdicts),
        *(_remembered(processes, content, verdicts, mode) if processes[0].seen_ms else ()),
        *_parts(content, verdicts),
        *_ended(processes, content, verdicts, mode),
    ]


def _answers(processes: Sequence[Process], content: Content, results: Sequence[Result | None]) -> list[str]:
    """Every process answers with what is stored."""
    stored = content.verdicts | {tombstone.reference: tombstone.event for tombstone in content.tombstones}
    return [
        f"a judge answered about {_about(arrived).id} differently from what is stored"
        for process, result in zip(processes, results, strict=True)
        for arrived, answer in zip(process.batch, result or (), strict=True)
        if answer != stored[_about(arrived).reference]
    ]


def _parts(content: Content, verdicts: Mapping[bytes, Verdict]) -> list[str]:
    """Parts are those of earlier articles under other ids that are stored, and of none that is near."""
    records = {version.record.reference: version.record for version in content.versions}
    wrong = []
    for reference, verdict in verdicts.items():
        for part in verdict.parts if isinstance(verdict.parts, tuple) else ():
            other = records.get(reference_in(part.id, part.version))
            near = {(match.id, match.version) for match in verdict.matches}
            if (
                other is None
                or other.id == verdict.id
                or other.arrival >= records[reference].arrival
                or (part.id, part.version) in near
            ):
                wrong.append(f"the verdict on {verdict.id} names {part.id} for a part")
    return wrong


def _ended(processes: Sequence[Process], content: Content, verdicts: Mapping[bytes, Verdict], mode: str) -> list[str]:
    """What a verdict says has ended would be near, and had ended; whatever had when the judges began is said."""
    wrong = []
    new = {_about(arrived).reference for process in processes for arrived in process.batch}
    stored = {version.record.reference: version for version in content.versions}
    for reference, verdict in verdicts.items():
        version, said = stored[reference], verdict.ended_before
        if isinstance(said, EndedBefore):
            other = stored.get(reference_in(said.id, said.version))
            if other is None or not _kept(verdict) or not _would_be_near(version, other, mode):
                wrong.append(f"the verdict on {verdict.id} says that {said.id} ended before")
        elif reference in new and _kept(verdict) and not _never(version, mode):
            wrong += [
                f"the verdict on {verdict.id} does not say that {other.record.id} ended before"
                for other in content.versions
                if other.record.reference not in new
                and other.ends_at is not None
                and other.ends_at.reference not in new
                and _kept(verdicts[other.record.reference])
                and _would_be_near(version, other, mode)
            ]
    return wrong


def _would_be_near(version: StoredVersion, other: StoredVersion, mode: str) -> bool:
    """Return whether the other ended before the version arrived, and would be near otherwise."""
    ended = other.ends_at is not None and other.ends_at <= version.record.arrival
    return ended and _near(version._replace(ends_at=None), other._replace(ends_at=None), mode)


def _remembered(
    processes: Sequence[Process], content: Content, verdicts: Mapping[bytes, Verdict], mode: str
) -> list[str]:
    """Every text is remembered from its first arrival to its last, and verdicts beyond the window say since when.

    Of a text that first came with these batches a verdict may say less: it may have been written before that.
    """
    wrong = []
    new = {_about(arrived).reference for process in processes for arrived in process.batch}
    seen = dict(content.seen)
    texts: defaultdict[bytes, list[Record]] = defaultdict(list)
    for record in sorted((version.record for version in content.versions), key=lambda record: record.arrival):
        texts[record.text_digest].append(record)
    for digest, records in texts.items():
        entry = seen.get(digest)
        first_ms, last_ms = records[0].time_ms, records[-1].time_ms
        if entry is None or (entry.first_ms, entry.last_ms) != (first_ms, last_ms):
            wrong.append(f"{entry} is remembered of a text that came from {first_ms} to {last_ms}")
        elif entry.times > len(records):
            wrong.append(f"{entry.times} times are remembered of a text that came {len(records)} times")
        for record in () if records[0].reference in new else records:
            said = verdicts[record.reference].seen_before
            beyond = first_ms < record.time_ms - MODES[mode].window_ms
            if isinstance(said, SeenBefore) != beyond:
                wrong.append(f"the verdict on {record.id} says {said} of a text that first came at {first_ms}")
            elif isinstance(said, SeenBefore) and (said.first != rfc3339(first_ms) or said.times >= len(records)):
                wrong.append(f"the verdict on {record.id} says {said}, of {len(records)} times since {first_ms}")
    return wrong


def _about(arrived: Version | Tombstone) -> Record | Tombstone:
    return arrived if isinstance(arrived, Tombstone) else arrived.record


def _near_pairs(content: Content, mode: str) -> list[tuple[StoredVersion, StoredVersion]]:
    by_arrival = sorted(content.versions, key=lambda version: version.record.arrival)
    return [(a, b) for a, b in combinations(by_arrival, 2) if _near(a, b, mode)]


@lru_cache(maxsize=_REMEMBERED_MAX)
def _near(a: StoredVersion, b: StoredVersion, mode: str) -> bool:
    return compare(a, [b], MODES[mode])[0].near


@lru_cache(maxsize=_REMEMBERED_MAX)
def _alike(a: StoredVersion, b: StoredVersion, mode: str) -> bool:
    comparison = compare(a, [b], MODES[mode])[0]
    return comparison.found and comparison.verified


def _never(version: StoredVersion, mode: str) -> bool:
    return MODES[mode].never_flags(version.record)


def _both_kept(content: Content, verdicts: Mapping[bytes, Verdict], mode: str) -> list[str]:
    """Of two near ones at most one is kept, unless one of them is never flagged."""
    return [
        f"both kept: {a.record.id}, {b.record.id}"
        for a, b in _near_pairs(content, mode)
        if not _never(a, mode) and not _never(b, mode)
        if _kept(verdicts[a.record.reference]) and _kept(verdicts[b.record.reference])
    ]


def _unlike(content: Content, verdicts: Mapping[bytes, Verdict], mode: str) -> list[str]:
    """What a flag names is like it, whatever followed them since."""
    stored = {version.record.reference: version for version in content.versions}
    return [
        f"{stored[reference].record.id} is flagged, and is unlike the other"
        for reference, verdict in verdicts.items()
        if not _kept(verdict)
        and _named(verdict) in stored
        and not _alike(stored[reference], stored[_named(verdict)], mode)
    ]


def _none_kept(content: Content, verdicts: Mapping[bytes, Verdict], mode: str) -> list[str]:
    """Of every group that is near in a chain at least one is kept. What a verdict names was near at that time."""
    links = [(a.record.reference, b.record.reference) for a, b in _near_pairs(content, mode)]
    links += [
        (reference, _named(verdict))
        for reference, verdict in verdicts.items()
        if not _kept(verdict) and _named(verdict) in verdicts
    ]
    group = {reference: {reference} for reference in verdicts}
    for a, b in links:
        together = group[a] | group[b]
        group.update(dict.fromkeys(together, together))
    return [
        f"none kept of {len(members)} that are near in a chain"
        for members in {frozenset(together) for together in group.values()}
        if not any(_kept(verdicts[reference]) for reference in members)
    ]


def _chains(content: Content, verdicts: Mapping[bytes, Verdict]) -> list[str]:
    """Following ``duplicate_of`` ends at a kept version."""
    wrong = []
    for version in content.versions:
        reference, seen = version.record.reference, set[bytes]()
        while reference in verdicts and reference not in seen and not _kept(verdicts[reference]):
            seen.add(reference)
            reference = _named(verdicts[reference])
        if reference not in verdicts:
            wrong.append(f"{version.record.id} leads to a version that is not stored")
        elif reference in seen:
            wrong.append(f"{version.record.id} leads into a circle")
    return wrong


def _never_flagged(content: Content, verdicts: Mapping[bytes, Verdict], mode: str) -> list[str]:
    """An article of a source that is never flagged is kept."""
    return [
        f"{version.record.id} is flagged, though its source never is, or a bank allows it"
        for version in content.versions
        if _never(version, mode) and not _kept(verdicts[version.record.reference])
    ]


def _banks(content: Content, verdicts: Mapping[bytes, Verdict]) -> list[str]:
    """A verdict says what its record says of known texts."""
    return [
        f"the verdict on {version.record.id} says something else of known texts than its record"
        for version in content.versions
        if (verdicts[version.record.reference].banks or ()) != bank_mentions(version.record)
    ]


def _postings(content: Content, verdicts: Mapping[bytes, Verdict]) -> list[str]:
    """Every kept version can be found under all its keys, and no duplicate under any."""
    wrong = []
    for version in content.versions:
        found = [posting in content.postings for posting in postings_of(version.record)]
        kept = _kept(verdicts[version.record.reference])
        if kept and not all(found):
            wrong.append(f"{version.record.id} is kept, but has lost a posting")
        if not kept and any(found):
            wrong.append(f"{version.record.id} is a duplicate, but still has a posting")
    return wrong


def _kept(verdict: Verdict) -> bool:
    return verdict.outcome == "unique"


def _named(verdict: Verdict) -> bytes:
    """Return the reference of the version that a duplicate names."""
    assert verdict.duplicate_of is not None
    assert verdict.duplicate_of_version is not None
    return id_hash(verdict.duplicate_of) + bytes.fromhex(verdict.duplicate_of_version)
