"""The judge of a fill: existing verdicts stand, and only what has no verdict is judged.

A new store is filled beside one in force, whose verdicts have been sent. Judged again with other settings, an article
that readers know as unique might become a duplicate, and the next copy of it be kept: the same story twice. So a
verdict is adopted unchanged, with the fingerprint and keys of the new settings. docs/migration.md says what follows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import msgspec
from typing_extensions import override

from consumer.fingerprint import TextKind
from consumer.judge.attempt import Attempt
from consumer.judge.decision import State, state_of
from consumer.judge.detector import Detector
from consumer.judge.events import original_of
from consumer.judge.verdict_cells import verdict_of
from consumer.judge.versions import VersionBuilder
from consumer.migration.seen_copy import merge_seen, seen_as
from consumer.migration.stand_ins import left_out
from consumer.model.article import Article
from consumer.model.errors import BadRecord
from consumer.model.record import RawRecord
from consumer.model.verdict import VerdictEvent
from consumer.pipeline.arrivals import Arrivals
from consumer.pipeline.loop import distinct_ids
from consumer.workers.pool import Fingerprinting
from storage.interface import Store
from storage.records import Record, Stored, Tombstone, Version
from storage.seen import Seen

_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class Adopted:
    """Counts of adopted verdicts; ``flagged_now`` and ``kept_now`` count what the new settings would change."""

    kept: int = 0
    duplicates: int = 0
    flagged_now: int = 0
    kept_now: int = 0

    def add(self, other: "Adopted") -> None:
        """Add other counts."""
        self.kept += other.kept
        self.duplicates += other.duplicates
        self.flagged_now += other.flagged_now
        self.kept_now += other.kept_now


@dataclass(slots=True)
class AdoptingJudge(Detector):
    """Adopts the verdicts of ``in_force``, the store in force (None where there is none), and judges the rest.

    Verdicts are adopted with their arrivals, and postings are written only for what was kept; of many equal texts that
    were kept because the old settings could not compare them, for a few (``stand_ins``). Repeated after a crash
    anywhere, the result is the same. For one process; nobody else may judge into the store meanwhile.
    """

    in_force: Store | None = None
    adopted: Adopted = field(default_factory=Adopted)

    @override
    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """Adopt what the store in force has verdicts of, and judge the rest."""
        versions = [arrived for arrived in batch if isinstance(arrived, Version)]
        # The store in force may be far away: it is asked before the store that is filled is locked.
        known = self._known_tombstones([arrived for arrived in batch if isinstance(arrived, Tombstone)])
        judged = self._judged_in_force(versions)

        def work(adoption: "_Adoption") -> list[VerdictEvent]:
            events = adoption.adopt(versions, judged)
            rest = [known.get(arrived.reference, arrived) for arrived in batch if arrived.reference not in events]
            answers = adoption.attempt.judge(rest)
            events |= {arrived.reference: event for arrived, event in zip(rest, answers, strict=True)}
            return [events[arrived.reference] for arrived in batch]

        with self.tally.settling():
            return self._together(work)

    def adopt(self, versions: Sequence[Version]) -> dict[bytes, VerdictEvent]:
        """Adopt the verdicts that the store in force has of these versions; return their events by reference."""
        judged = self._judged_in_force(versions)
        return self._together(lambda adoption: adoption.adopt(versions, judged))

    def _together(self, work: Callable[["_Adoption"], _Answer]) -> _Answer:
        """Do all that is done for a batch at once, and keep what it has counted and learned."""

        def attempted() -> tuple[_Adoption, _Answer]:
            adoption = _Adoption(self.attempt())
            return adoption, work(adoption)

        adoption, answer = self.store.together(attempted)
        self.keep(adoption.attempt.learned)
        self.adopted.add(adoption.adopted)
        return answer

    def _judged_in_force(self, versions: Sequence[Version]) -> "_InForce":
        """Return what the store in force has of these versions."""
        if self.in_force is None or not versions:
            return _InForce({}, {})
        found = self.in_force.read([version.reference for version in versions])
        judged = {
            stored.record.reference: stored for stored in found if stored is not None and stored.verdict is not None
        }
        if not self.seen_ms:
            return _InForce(judged, {})
        digests = (
            (judged[version.reference].record.text_digest, version.record.text_digest)
            for version in versions
            if version.reference in judged
        )
        return _InForce(judged, seen_as(self.in_force, digests))

    def _known_tombstones(self, tombstones: Sequence[Tombstone]) -> Mapping[bytes, Tombstone]:
        """Return these tombstones as the store in force has them."""
        if self.in_force is None:
            return {}
        references = {tombstone.reference for tombstone in tombstones}
        history = (stored for tombstone in tombstones for stored in self.in_force.history(tombstone.id_hash))
        return {
            stored.reference: stored
            for stored in history
            if isinstance(stored, Tombstone) and stored.reference in references
        }


class _InForce(NamedTuple):
    """What the store in force has of a batch: the versions with a verdict by reference, and what it remembers of texts.

    ``seen`` has the texts whose digest is another one now, by that one.
    """

    judged: Mapping[bytes, Stored]
    seen: Mapping[bytes, Seen]


@dataclass(frozen=True, slots=True)
class _Adoption:
    """One attempt to adopt and judge a batch; ``adopted`` counts for this attempt alone."""

    attempt: Attempt
    adopted: Adopted = field(default_factory=Adopted)

    def adopt(self, versions: Sequence[Version], in_force: _InForce) -> dict[bytes, VerdictEvent]:
        """Adopt the verdicts of those that were judged in the store in force; return their events by reference."""
        judged = in_force.judged
        adopting = [
            Version(_arrived_as(version.record, judged[version.reference].record), version.body)
            for version in versions
            if version.reference in judged
        ]
        if not adopting:
            return {}
        uncompared = {
            version.reference for version in adopting if _was_uncompared(judged[version.reference], version.record)
        }
        adopting = self.attempt.part_search.posted(adopting)
        stored = self.attempt.store.create(left_out(adopting, uncompared, self.attempt.search))
        pending = [version.record for version in stored if version.verdict is None]
        events = {version.record.reference: verdict_of(version) for version in stored if version.verdict is not None}
        events |= self._settle(pending, {record.reference: verdict_of(judged[record.reference]) for record in pending})
        tally = self.attempt.tally
        tally.versions += len(adopting)
        tally.replays += len(adopting) - len(pending)
        kept = sum(_is_kept(event) for event in events.values())
        self.attempt.learned.kept += [record for record in pending if _is_kept(events[record.reference])]
        tally.kept += kept
        tally.duplicates += len(adopting) - kept
        self._count(pending, events)
        seen_texts = self.attempt.seen_texts
        merge_seen(self.attempt.store, [*in_force.seen.items()])
        seen_texts.note(seen_texts.recall([version.record for version in stored]))
        # They have no keys to be looked up by, and equal ones are kept.
        repeats = {version.reference for version in adopting if version.record.keys}
        self.adopted.flagged_now += sum(not record.keys and record.reference in repeats for record in pending)
        return events

    def _settle(self, records: Sequence[Record], events: Mapping[bytes, VerdictEvent]) -> dict[bytes, VerdictEvent]:
        """Give each record its verdict; return the verdicts that are stored now."""
        # Postings before verdicts: after a crash, a version that has a verdict is not looked at again.
        self.attempt.store.add([record for record in records if _is_kept(events[record.reference])])
        cells = self.attempt.cells
        settled = cells.settle([(record, events[record.reference]) for record in records])
        return settled.written | cells.verdicts(settled.lost)

    def _count(self, records: Sequence[Record], events: Mapping[bytes, VerdictEvent]) -> None:
        """Count what was adopted, and what of it the new settings would have decided differently."""
        kept = {record.reference for record in records if _is_kept(events[record.reference])}
        self.adopted.kept += len(kept)
        self.adopted.duplicates += len(records) - len(kept)
        if not records:
            return
        near = self.attempt.search.look_up(records, created={})
        repeats = {
            record.reference: any(
                neighbour.record.arrival < record.arrival for neighbour in near.neighbours[record.reference]
            )
            for record in records
        }
        self.adopted.flagged_now += sum(repeats[reference] for reference in kept)
        alone = [
            record.reference for record in records if record.reference not in kept and not repeats[record.reference]
        ]
        originals = [original_of(events[reference].verdict) for reference in alone]
        # An original from before the fill cannot be found, whatever the settings.
        stored = self.attempt.cells.read(sorted(set(originals)))
        self.adopted.kept_now += sum(reference in stored for reference in originals)


def _arrived_as(record: Record, known: Record) -> Record:
    """Return the record with the arrival that it has in the store in force."""
    return msgspec.structs.replace(record, time_ms=known.time_ms, sequence=known.sequence)


def _was_uncompared(stored: Stored, now: Record) -> bool:
    """Return whether a version was kept and texts that are equal to it now may have been kept beside it.

    Either it has no keys, and nothing was ever compared with it, or its few words were compared in another form, which
    tells texts apart that are equal now.
    """
    if state_of(stored) is not State.KEPT:
        return False
    return not stored.record.keys or (
        stored.record.kind != TextKind.LONG and stored.record.text_digest != now.text_digest
    )


def _is_kept(event: VerdictEvent) -> bool:
    return event.verdict.outcome == "unique"


@dataclass(frozen=True, slots=True)
class Takeover:
    """Builds versions of messages, and adopts those that have a verdict in the store in force. Judges nothing."""

    decode: Callable[[RawRecord], Article]
    fingerprinting: Fingerprinting
    builder: VersionBuilder
    arrivals: Arrivals
    judge: AdoptingJudge

    def adopt(self, records: Sequence[RawRecord]) -> int:
        """Take over what has a verdict, and return how many versions that were. Bad records are skipped."""
        articles = list(self._bodied(records))
        if not articles:
            return 0
        timed = self.fingerprinting.submit(
            [article.body or "" for _, article in articles], [article.lang for _, article in articles]
        ).result()
        arrivals = [self.arrivals.arrived_at(record, article) for record, article in articles]
        versions = self.builder.versions([article for _, article in articles], arrivals, timed.fingerprints)
        parts = ([version for version in part if isinstance(version, Version)] for part in distinct_ids(versions))
        return sum(len(self.judge.adopt(part)) for part in parts)

    def _bodied(self, records: Sequence[RawRecord]) -> Iterator[tuple[RawRecord, Article]]:
        for record in records:
            try:
                article = self.decode(record)
            except BadRecord:
                continue
            if article.body is not None:
                yield record, article
