"""Inspects a store: chains of duplicates, dangling flags, and the consistency of its contents. Reads only."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np

from consumer.judge.candidates import Probe, find_candidates, probe_keys
from consumer.judge.comparison import compare
from consumer.judge.events import original_of, reference_in, version_name
from consumer.judge.settings import JudgeSettings
from consumer.model.errors import ConfigError
from consumer.model.verdict import Released, Verdict, decode_verdict, outcome_of
from consumer.text.timestamps import rfc3339
from storage.interface import Store
from storage.postings import PostingArray, all_keys, part_keys, postings_of
from storage.records import Arrival, StoredVersion, Tombstone, id_hash

CHAIN_MAX = 1_000
"""The maximum number of links to follow. No burst makes this many, so a longer chain must be circular."""
_VERIFY_BATCH = 16
"""The number of versions to check at once, with all their rows in memory."""
History = Sequence[StoredVersion | Tombstone]


class DuplicateLink(NamedTuple):
    """A version in the chain from a duplicate to the kept one at the end. ``verdict`` is None while it is pending."""

    stored: StoredVersion
    verdict: Verdict | None


def chain(store: Store, start: StoredVersion, links_max: int = CHAIN_MAX) -> list[DuplicateLink]:
    """Follow ``duplicate_of`` from a version, and return at most ``links_max`` links.

    Unless the limit is reached, the last link is the first version that is pending, or whose verdict names no version,
    or names one that is not stored.
    """
    links: list[DuplicateLink] = []
    here: StoredVersion | None = start
    while here is not None and len(links) < links_max:
        verdict = None if here.verdict is None else decode_verdict(here.verdict)
        links.append(DuplicateLink(here, verdict))
        original = _original(verdict)
        if original is None:
            break
        here = store.read([original])[0]
    return links


def last_links(store: Store, starts: Sequence[StoredVersion]) -> list[DuplicateLink]:
    """Return the last link of the ``chain`` of each version. All chains are read in parallel, step by step."""
    links = [DuplicateLink(start, None if start.verdict is None else decode_verdict(start.verdict)) for start in starts]
    unfinished = set(range(len(links)))
    for _ in range(CHAIN_MAX):
        originals = {index: _original(links[index].verdict) for index in unfinished}
        references = sorted({reference for reference in originals.values() if reference is not None})
        if not references:
            break
        read = dict(zip(references, store.read(references), strict=True))
        unfinished = set()
        for index, reference in originals.items():
            original = None if reference is None else read[reference]
            if original is not None:
                verdict = None if original.verdict is None else decode_verdict(original.verdict)
                links[index] = DuplicateLink(original, verdict)
                unfinished.add(index)
    return links


def _original(verdict: Verdict | None) -> bytes | None:
    """Return the reference that a flag names, or None for other verdicts."""
    if verdict is None or verdict.duplicate_of is None:
        return None
    return original_of(verdict)


def dangling_flags(store: Store, before_ms: int) -> Iterator[StoredVersion]:
    """Yield flags whose chain ends at a version that arrived before ``before_ms`` and is still pending.

    This happens if a source loses a message after its article was stored and before its offset was committed. The
    article may never be judged, and so the flag may name an article that was never passed on.
    """
    judged = (stored for stored in store.scan() if isinstance(stored, StoredVersion) and stored.verdict is not None)
    while batch := list(islice(judged, _VERIFY_BATCH)):
        for flag, last in zip(batch, last_links(store, batch), strict=True):
            if last.verdict is None and last.stored.record.time_ms < before_ms:
                yield flag


@dataclass(slots=True)
class VerificationReport:
    """The findings of ``verify``: counts, and a sentence for each problem."""

    versions: int = 0
    kept: int = 0
    duplicates: int = 0
    pending: int = 0
    tombstones: int = 0
    wrong: list[str] = field(default_factory=list)


def verify(store: Store, settings: JudgeSettings) -> Iterator[VerificationReport]:
    """Check every version, batch by batch. Yield the findings so far after each batch.

    A kept version must have all its postings, unless a row was too wide to be read whole. Two near versions may both be
    kept only if one of them is never flagged, a search was cut short, or one was released after the other had been
    judged. The chain of a duplicate must end at a kept version, or at a flag whose original is no longer stored.
    Pending versions are correct: their batch may be in progress, or their message was never delivered again.
    """
    findings = VerificationReport()
    everything = store.scan()
    while batch := list(islice(everything, _VERIFY_BATCH)):
        versions = [stored for stored in batch if isinstance(stored, StoredVersion)]
        findings.tombstones += len(batch) - len(versions)
        findings.versions += len(versions)
        outcomes = [None if version.verdict is None else outcome_of(version.verdict) for version in versions]
        kept = [version for version, outcome in zip(versions, outcomes, strict=True) if outcome == "unique"]
        flags = [version for version, outcome in zip(versions, outcomes, strict=True) if outcome == "duplicate"]
        findings.pending += outcomes.count(None)
        findings.kept += len(kept)
        findings.duplicates += len(flags)
        for flag, last in zip(flags, last_links(store, flags), strict=True):
            findings.wrong.extend(_chain_problems(store, flag, last))
        findings.wrong.extend(_kept_problems(store, kept, settings))
        yield findings


def _chain_problems(store: Store, start: StoredVersion, last: DuplicateLink) -> Iterator[str]:
    name = start.record.id
    if last.verdict is None:
        yield f"{name!r} is a duplicate of {last.stored.record.id!r}, which is pending"
    elif last.verdict.outcome != "unique":
        window_is_over = store.read([original_of(last.verdict)])[0] is None
        if not window_is_over:
            yield f"the chain of duplicates from {name!r} is a circle"


def _kept_problems(store: Store, kept: Sequence[StoredVersion], settings: JudgeSettings) -> Iterator[str]:
    probes = [Probe(version.record, probe_keys(version.record, settings)) for version in kept]
    keys = sorted({key for probe in probes for key in [*probe.keys, *part_keys(probe.record)]})
    rows = dict(zip(keys, store.look_up(keys), strict=True))
    for version in kept:
        record = version.record
        missing = [key for key, posting in postings_of(record) if not _holds(rows[key].postings, posting)]
        if missing and not any(rows[key].truncated for key in missing):
            yield f"{record.id!r} is kept and lacks {len(missing)} of its {len(all_keys(record))} postings"
    candidates = find_candidates(probes, rows, settings)
    references = sorted({reference for of_version in candidates for reference in of_version.references})
    stored: Mapping[bytes, StoredVersion] = {
        other.record.reference: other for other in store.read(references) if other is not None and _is_kept(other)
    }
    for version, of_version in zip(kept, candidates, strict=True):
        others = [stored[reference] for reference in of_version.references if reference in stored]
        for other, comparison in zip(others, compare(version, others, settings), strict=True):
            is_first = version.record.arrival < other.record.arrival
            if comparison.near and is_first and not _may_both_be_kept(version, other, settings):
                yield f"{version.record.id!r} and {other.record.id!r} are near each other and both kept"


def _holds(row: PostingArray, posting: bytes) -> bool:
    """Return whether a row has a posting. References are compared as an array first, because rows are long."""
    expected = np.frombuffer(posting, row.dtype)[0]
    same_version = row[row["reference"] == expected["reference"]]
    return any(stored.tobytes() == posting for stored in same_version)


def _is_kept(stored: StoredVersion) -> bool:
    return stored.verdict is not None and outcome_of(stored.verdict) == "unique"


def _may_both_be_kept(a: StoredVersion, b: StoredVersion, settings: JudgeSettings) -> bool:
    """Return whether two near versions may both be kept."""
    if any(settings.never_flags(version.record) for version in (a, b)):
        return True
    verdicts = [decode_verdict(version.verdict) for version in (a, b) if version.verdict is not None]
    if any(verdict.truncated for verdict in verdicts):
        return True
    # An article judged before the release of the other may be kept; an article judged later must be flagged.
    last_decided_at = max(verdict.decided_at for verdict in verdicts)
    return any(verdict.decided_at == last_decided_at and isinstance(verdict.released, Released) for verdict in verdicts)


def latest_version(history: Sequence[StoredVersion | Tombstone]) -> StoredVersion | None:
    """Return the version of an id that arrived last, or None if it has only tombstones."""
    versions = [stored for stored in history if isinstance(stored, StoredVersion)]
    return versions[-1] if versions else None


def titles(store: Store, flags: Sequence[Verdict]) -> list[tuple[str, str]]:
    """Return the title of each flagged article and that of its original, or "" for an article that is not stored."""
    references = [reference_in(flag.id, flag.version) for flag in flags]
    references += [original_of(flag) for flag in flags]
    titles = ["" if stored is None else stored.record.title for stored in store.read(references)]
    return list(zip(titles[: len(flags)], titles[len(flags) :], strict=True))


class StoredArticle(NamedTuple):
    """One version of an article, and all versions and retractions of its id by arrival."""

    stored: StoredVersion
    history: History


def stored_article(store: Store, url: str, article_id: str, version: str | None = None) -> StoredArticle:
    """Return the named version, or the latest. Raises ``ConfigError`` if the store at ``url`` does not have it."""
    history = store.history(id_hash_of(article_id))
    stored = version_in(history, version)
    if stored is None:
        raise missing_version_error(history, url, article_id, version)
    return StoredArticle(stored, history)


def version_in(history: History, version: str | None) -> StoredVersion | None:
    """Return the named version, or the latest if no name is given; None if the history does not have it."""
    if version is None:
        return latest_version(history)
    versions = (entry for entry in history if isinstance(entry, StoredVersion))
    return next((each for each in versions if version_name(each.record.reference) == version.lower()), None)


def missing_version_error(history: History, url: str, article_id: str, version: str | None) -> ConfigError:
    """Return the error for a version that the store at ``url`` does not have."""
    if version is None:
        if history:
            when = rfc3339(arrival_of(history[-1]).time_ms)
            return ConfigError(f"{article_id!r} was retracted at {when} and has no version in {url}")
        return ConfigError(f"no article {article_id!r} in {url}")
    retractions = [version_name(entry.arrival.reference) for entry in history if isinstance(entry, Tombstone)]
    if version.lower() in retractions:
        return ConfigError(
            f"{version} of {article_id!r} is a retraction and has no text; dupwatch show lists the versions"
        )
    names = [version_name(entry.record.reference) for entry in history if isinstance(entry, StoredVersion)]
    return ConfigError(f"{article_id!r} has no version {version} in {url}; its versions: {', '.join(names) or 'none'}")


def arrival_of(entry: StoredVersion | Tombstone) -> Arrival:
    """Return the arrival of a version or a retraction."""
    return entry.record.arrival if isinstance(entry, StoredVersion) else entry.arrival


def origin_of(entry: StoredVersion | Tombstone) -> str | None:
    """Return the origin of a version or a retraction, or None if the origin is not stored."""
    origin = entry.record.origin if isinstance(entry, StoredVersion) else entry.origin
    return None if origin is None else str(origin)


def how_it_ended(version: StoredVersion, history: History) -> str | None:
    """Return how and when a version ceased to be in force, or None if it is still in force."""
    if version.ends_at is None:
        return None
    following = next((entry for entry in history if arrival_of(entry) == version.ends_at), None)
    how = "superseded"
    if following is not None:
        how = "retracted" if isinstance(following, Tombstone) else "replaced by another version"
    return f"{how} {moment(version.ends_at.time_ms, version.ends_at.sequence, version.record.time_ms)}"


def moment(time_ms: int, sequence: int, other_ms: int) -> str:
    """Return a time as text.

    If it equals ``other_ms``, as in a run over a file, add the record's position in the feed.
    """
    return f"{rfc3339(time_ms)}{f' (record {sequence} of the feed)' if time_ms == other_ms else ''}"


def id_hash_of(article_id: str) -> bytes:
    """Return the hash of an id from user input. Raises ``ConfigError`` if the id is not UTF-8."""
    try:
        return id_hash(article_id)
    except UnicodeEncodeError as error:
        raise ConfigError(f"invalid id {article_id!r}: not UTF-8") from error
