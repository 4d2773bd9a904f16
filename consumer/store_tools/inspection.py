"""Looking into a store: where a verdict comes from, and whether everything in it holds together. Reads only."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np

from consumer.judge.candidates import Probe, find_candidates, probe_keys
from consumer.judge.comparison import compare
from consumer.judge.settings import JudgeSettings
from consumer.model.verdict import Released, Verdict, decode_verdict, outcome_of
from storage.interface import Store
from storage.postings import PostingArray, postings_of
from storage.records import DIGEST_BYTES, Stored, Tombstone, id_hash

CHAIN_MAX = 1_000
"""More links than any burst makes; a longer chain is a circle."""
_VERIFY_BATCH = 16
"""Versions checked at once: the rows of so many are held in memory."""


class Link(NamedTuple):
    """One version on the way from a duplicate to the kept one it goes back to."""

    stored: Stored
    verdict: Verdict | None


def reference_in(article_id: str, version: str | None) -> bytes:
    """The reference that an event names by id and version; ValueError where the version is no digest."""
    digest = bytes.fromhex(version or "")
    if len(digest) != DIGEST_BYTES:
        raise ValueError(f"{version!r} is no version: it has {DIGEST_BYTES} bytes in hex")
    return id_hash(article_id) + digest


def chain(store: Store, start: Stored) -> list[Link]:
    """The version and what it goes back to by ``duplicate_of``, step by step; ends at the first that names none."""
    links: list[Link] = []
    here: Stored | None = start
    while here is not None and len(links) < CHAIN_MAX:
        verdict = None if here.verdict is None else decode_verdict(here.verdict)
        links.append(Link(here, verdict))
        named = _named(verdict)
        if named is None:
            break
        here = store.read([named])[0]
    return links


def last_links(store: Store, starts: Sequence[Stored]) -> list[Link]:
    """Where each of these goes back to: the last link of its ``chain``, those of all read together step by step."""
    links = [Link(start, None if start.verdict is None else decode_verdict(start.verdict)) for start in starts]
    going = set(range(len(links)))
    for _ in range(CHAIN_MAX):
        named = {index: _named(links[index].verdict) for index in going}
        wanted = sorted({reference for reference in named.values() if reference is not None})
        if not wanted:
            break
        found = dict(zip(wanted, store.read(wanted), strict=True))
        going = set()
        for index, reference in named.items():
            next_one = None if reference is None else found[reference]
            if next_one is not None:
                verdict = None if next_one.verdict is None else decode_verdict(next_one.verdict)
                links[index] = Link(next_one, verdict)
                going.add(index)
    return links


def _named(verdict: Verdict | None) -> bytes | None:
    if verdict is None or verdict.duplicate_of is None:
        return None
    return reference_in(verdict.duplicate_of, verdict.duplicate_of_version)


def dangling(store: Store, before_ms: int) -> Iterator[Stored]:
    """Flags that go back to a version which came before this and is pending still: nobody may ever judge it.

    That happens where a source loses a message between the moment its article was stored and its commit. The article
    flagged for it is a duplicate of one that was perhaps never passed on.
    """
    everything = (one for one in store.scan() if isinstance(one, Stored) and one.verdict is not None)
    while batch := list(islice(everything, _VERIFY_BATCH)):
        for flag, last in zip(batch, last_links(store, batch), strict=True):
            if last.verdict is None and last.stored.record.time_ms < before_ms:
                yield flag


@dataclass(slots=True)
class Findings:
    """What ``verify`` found: counts of what is there, and one sentence for each thing that is wrong."""

    versions: int = 0
    kept: int = 0
    duplicates: int = 0
    pending: int = 0
    tombstones: int = 0
    wrong: list[str] = field(default_factory=list)


def verify(store: Store, settings: JudgeSettings) -> Iterator[Findings]:
    """Check every version, batch by batch; yields the findings so far after each.

    A kept version has all its postings, and no near one is kept beside it (unless a source that is never flagged is
    one of the two, or the search was cut, or one was released when the other had been judged); a duplicate leads to
    a kept one. A pending version is not wrong: its batch may be under way, or its message never came again.
    """
    findings = Findings()
    everything = store.scan()
    while batch := list(islice(everything, _VERIFY_BATCH)):
        versions = [one for one in batch if isinstance(one, Stored)]
        findings.tombstones += len(batch) - len(versions)
        findings.versions += len(versions)
        outcomes = [None if one.verdict is None else outcome_of(one.verdict) for one in versions]
        kept = [one for one, outcome in zip(versions, outcomes, strict=True) if outcome == "unique"]
        flags = [one for one, outcome in zip(versions, outcomes, strict=True) if outcome == "duplicate"]
        findings.pending += outcomes.count(None)
        findings.kept += len(kept)
        findings.duplicates += len(flags)
        for flag, last in zip(flags, last_links(store, flags), strict=True):
            findings.wrong.extend(_broken_chain(store, flag, last))
        findings.wrong.extend(_wrong_with_kept(store, kept, settings))
        yield findings


def _broken_chain(store: Store, start: Stored, last: Link) -> Iterator[str]:
    name = start.record.id
    if last.verdict is None:
        yield f"{name!r} goes back to {last.stored.record.id!r}, which is pending"
    elif last.verdict.outcome != "unique":
        gone = last.verdict.duplicate_of
        window_is_over = store.read([reference_in(gone or "", last.verdict.duplicate_of_version)])[0] is None
        if not window_is_over:
            yield f"{name!r} goes round in a circle"


def _wrong_with_kept(store: Store, kept: Sequence[Stored], settings: JudgeSettings) -> Iterator[str]:
    probes = [Probe(one.record, probe_keys(one.record, settings)) for one in kept]
    keys = sorted({key for probe in probes for key in probe.keys})
    rows = dict(zip(keys, store.look_up(keys), strict=True))
    for one in kept:
        missing = [key for key, posting in postings_of(one.record) if not _holds(rows[key].postings, posting)]
        if missing and not any(rows[key].truncated for key in missing):
            yield f"{one.record.id!r} is kept and lacks {len(missing)} of its {len(one.record.keys)} postings"
    found = find_candidates(probes, rows, settings)
    references = sorted({reference for one in found for reference in one.references})
    stored: Mapping[bytes, Stored] = {
        one.record.reference: one for one in store.read(references) if one is not None and _kept(one)
    }
    for one, candidates in zip(kept, found, strict=True):
        others = [stored[reference] for reference in candidates.references if reference in stored]
        for other, comparison in zip(others, compare(one, others, settings), strict=True):
            if comparison.near and one.record.arrival < other.record.arrival and not _exempt(one, other, settings):
                yield f"{one.record.id!r} and {other.record.id!r} are near each other and both kept"


def _holds(row: PostingArray, posting: bytes) -> bool:
    """Rows are long and verified one for each kept version: the references are compared as an array first."""
    wanted = np.frombuffer(posting, row.dtype)[0]
    same_version = row[row["reference"] == wanted["reference"]]
    return any(one.tobytes() == posting for one in same_version)


def _kept(one: Stored) -> bool:
    return one.verdict is not None and outcome_of(one.verdict) == "unique"


def _exempt(one: Stored, other: Stored, settings: JudgeSettings) -> bool:
    """Sources that are never flagged, verdicts reached under a limit and releases are exempt from the promise."""
    if any(settings.rule(each.record.source).flag == "never" for each in (one, other)):
        return True
    verdicts = [decode_verdict(each.verdict) for each in (one, other) if each.verdict is not None]
    if any(verdict.truncated for verdict in verdicts):
        return True
    # Who was judged before a release could not know of it; whoever comes later has to be flagged.
    last_decided_at = max(verdict.decided_at for verdict in verdicts)
    return any(each.decided_at == last_decided_at and isinstance(each.released, Released) for each in verdicts)


def latest(history: Sequence[Stored | Tombstone]) -> Stored | None:
    """The version of an id that came last."""
    versions = [one for one in history if isinstance(one, Stored)]
    return versions[-1] if versions else None


def titles(store: Store, flags: Sequence[Verdict]) -> list[tuple[str, str]]:
    """The titles of flagged articles, and of what they repeat."""
    references = [reference_in(flag.id, flag.version) for flag in flags]
    references += [reference_in(flag.duplicate_of or "", flag.duplicate_of_version) for flag in flags]
    titles = ["" if one is None else one.record.title for one in store.read(references)]
    return list(zip(titles[: len(flags)], titles[len(flags) :], strict=True))
