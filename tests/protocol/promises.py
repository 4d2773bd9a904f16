"""What must hold wherever every process has come to its end, whatever happened on the way.

Millions of ends are looked at, with a few versions in them all: what was worked out of these is remembered.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations

from consumer.judge.comparison import compare
from consumer.model.verdict import Verdict, decode_verdict
from storage.postings import postings_of
from storage.records import Record, Stored, Tombstone, Version, id_hash
from tests.protocol.articles import SETTINGS
from tests.protocol.contents import Content
from tests.protocol.explorer import Failed, Process, Result

_REMEMBERED_MAX = 1 << 16
_decoded = lru_cache(maxsize=_REMEMBERED_MAX)(decode_verdict)


def broken_promises(processes: Sequence[Process], content: Content, results: Sequence[Result | None]) -> list[str]:
    """A sentence for each promise that does not hold."""
    failed = [result.why for result in results if isinstance(result, Failed)]
    undecided = [one.record.id for one in content.versions if one.verdict is None]
    if failed or undecided:
        return [*(f"a judge raised {why}" for why in failed), *(f"{name} is undecided" for name in undecided)]
    verdicts = {one.record.reference: _decoded(one.verdict) for one in content.versions if one.verdict}
    return [
        *_answers(processes, content, results),
        *_both_kept(content, verdicts),
        *_none_kept(content, verdicts),
        *_chains(content, verdicts),
        *_never_flagged(content, verdicts),
        *_postings(content, verdicts),
    ]


def _answers(processes: Sequence[Process], content: Content, results: Sequence[Result | None]) -> list[str]:
    """Every process answers what is stored."""
    stored = content.verdicts | {one.reference: one.event for one in content.tombstones}
    return [
        f"a judge answered about {_about(one).id} otherwise than is stored"
        for process, result in zip(processes, results, strict=True)
        for one, answer in zip(process.batch, result or (), strict=True)
        if answer != stored[_about(one).reference]
    ]


def _about(one: Version | Tombstone) -> Record | Tombstone:
    return one if isinstance(one, Tombstone) else one.record


def _near_pairs(content: Content) -> list[tuple[Stored, Stored]]:
    return [
        (a, b) for a, b in combinations(sorted(content.versions, key=lambda one: one.record.arrival), 2) if _near(a, b)
    ]


@lru_cache(maxsize=_REMEMBERED_MAX)
def _near(a: Stored, b: Stored) -> bool:
    return compare(a, [b], SETTINGS)[0].near


def _never(one: Stored) -> bool:
    return SETTINGS.rule(one.record.source).flag == "never"


def _both_kept(content: Content, verdicts: Mapping[bytes, Verdict]) -> list[str]:
    """Of two near ones at most one is kept, unless one of them is never flagged."""
    return [
        f"both kept: {a.record.id}, {b.record.id}"
        for a, b in _near_pairs(content)
        if not _never(a) and not _never(b)
        if _kept(verdicts[a.record.reference]) and _kept(verdicts[b.record.reference])
    ]


def _none_kept(content: Content, verdicts: Mapping[bytes, Verdict]) -> list[str]:
    """Of every group that is near in a chain at least one is kept. What a verdict names was near when it was given."""
    links = [(a.record.reference, b.record.reference) for a, b in _near_pairs(content)]
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
        for members in {frozenset(one) for one in group.values()}
        if not any(_kept(verdicts[reference]) for reference in members)
    ]


def _chains(content: Content, verdicts: Mapping[bytes, Verdict]) -> list[str]:
    """Following what a duplicate names ends at a kept one."""
    wrong = []
    for one in content.versions:
        reference, seen = one.record.reference, set[bytes]()
        while reference in verdicts and reference not in seen and not _kept(verdicts[reference]):
            seen.add(reference)
            reference = _named(verdicts[reference])
        if reference not in verdicts:
            wrong.append(f"{one.record.id} leads to a version that is not there")
        elif reference in seen:
            wrong.append(f"{one.record.id} leads into a circle")
    return wrong


def _never_flagged(content: Content, verdicts: Mapping[bytes, Verdict]) -> list[str]:
    """An article of a source that is never flagged is kept."""
    return [
        f"{one.record.id} is flagged, and its source never is"
        for one in content.versions
        if _never(one) and not _kept(verdicts[one.record.reference])
    ]


def _postings(content: Content, verdicts: Mapping[bytes, Verdict]) -> list[str]:
    """Every kept version can be found under all its keys, and no duplicate under any."""
    wrong = []
    for one in content.versions:
        found = [posting in content.postings for posting in postings_of(one.record)]
        kept = _kept(verdicts[one.record.reference])
        if kept and not all(found):
            wrong.append(f"{one.record.id} is kept, and has lost a posting")
        if not kept and any(found):
            wrong.append(f"{one.record.id} is a duplicate, and has a posting still")
    return wrong


def _kept(verdict: Verdict) -> bool:
    return verdict.outcome == "unique"


def _named(verdict: Verdict) -> bytes:
    """The version that a duplicate names, by reference."""
    assert verdict.duplicate_of is not None
    assert verdict.duplicate_of_version is not None
    return id_hash(verdict.duplicate_of) + bytes.fromhex(verdict.duplicate_of_version)
