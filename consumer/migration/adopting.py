"""The judge of a fill: it adopts existing verdicts, and judges only versions without one.

While a new store is filled, consumers judge with the old one, and send its verdicts. If an article that was sent as
unique were judged again with other settings, it might become a duplicate, and its next copy might be kept: readers
would get the same story twice. So verdicts are adopted unchanged, with the fingerprint and keys of the new settings.
See docs/operate/migration.md.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import msgspec
from typing_extensions import override

from consumer.fingerprint import TextKind
from consumer.judge.attempt import Attempt
from consumer.judge.decision import VersionState, state_of
from consumer.judge.detector import Detector
from consumer.judge.events import original_of
from consumer.judge.settings import STRETCHES_LIMIT
from consumer.judge.stretches import NewStretch, Replay, in_stretch, is_delivery_of, may_return, placements_in
from consumer.judge.verdict_cells import verdict_of
from consumer.judge.versions import VersionBuilder
from consumer.migration.seen_copy import merge_seen, seen_by_new_digest
from consumer.migration.stand_ins import drop_spare_keys
from consumer.model.article import Article
from consumer.model.errors import BadRecord
from consumer.model.record import RawRecord
from consumer.model.verdict import VerdictEvent
from consumer.pipeline.arrivals import Arrivals
from consumer.pipeline.loop import parts_with_distinct_ids
from consumer.workers.pool import Fingerprinting
from storage.interface import Store
from storage.records import Record, StoredVersion, Tombstone, Version
from storage.seen import SeenTimes

_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class AdoptionCounts:
    """Counts of adopted verdicts.

    ``kept`` and ``duplicates`` count the adopted verdicts. The new settings would flag ``flagged_now`` of the kept
    versions, and keep ``kept_now`` of the duplicates.
    """

    kept: int = 0
    duplicates: int = 0
    flagged_now: int = 0
    kept_now: int = 0

    def add(self, other: "AdoptionCounts") -> None:
        """Add other counts."""
        self.kept += other.kept
        self.duplicates += other.duplicates
        self.flagged_now += other.flagged_now
        self.kept_now += other.kept_now


@dataclass(slots=True)
class AdoptingJudge(Detector):
    """A judge that adopts the verdicts of ``old_store`` (None if there is none), and judges the rest.

    Verdicts are adopted with their arrivals, and postings are written only for kept versions. If many equal texts were
    kept because the old settings could not compare them, only a few get postings (``stand_ins``). Judging a batch
    again after a crash gives the same result. No other process may judge with the store at the same time.
    """

    old_store: Store | None = None
    adopted: AdoptionCounts = field(default_factory=AdoptionCounts)

    @override
    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """Adopt the verdicts that the old store has, and judge the rest."""
        # The old store may be far away, so it is read before the new store is locked.
        tombstones = self._old_tombstones([item for item in batch if isinstance(item, Tombstone)])
        old_batch = self._judged_before([item for item in batch if isinstance(item, Version)])

        def work(adoption: "_Adoption") -> list[VerdictEvent]:
            events = adoption.adopt(old_batch)
            unjudged = [tombstones.get(item.reference, item) for item in batch if item.reference not in events]
            answers = adoption.attempt.judge(unjudged)
            events |= {item.reference: event for item, event in zip(unjudged, answers, strict=True)}
            return [events[item.reference] for item in batch]

        with self.tally.settling():
            return self._run_together(work)

    def adopt(self, versions: Sequence[Version]) -> dict[bytes, VerdictEvent]:
        """Adopt the verdicts that the old store has for these versions; return their events by reference."""
        old_batch = self._judged_before(versions)
        return self._run_together(lambda adoption: adoption.adopt(old_batch))

    def _run_together(self, work: Callable[["_Adoption"], _Answer]) -> _Answer:
        """Run ``work`` within ``Store.together``, and keep the counts and findings of its last attempt."""

        def run_attempt() -> tuple[_Adoption, _Answer]:
            adoption = _Adoption(self.attempt())
            return adoption, work(adoption)

        adoption, answer = self.store.together(run_attempt)
        self.keep(adoption.attempt.findings)
        self.adopted.add(adoption.adopted)
        return answer

    def _judged_before(self, versions: Sequence[Version]) -> "_OldBatch":
        """Return the versions that the old store has judged, and its entries of seen texts whose digest has changed."""
        if self.old_store is None or not versions:
            return _OldBatch((), {})
        read = self.old_store.read([version.reference for version in versions])
        pairs = zip(versions, read, strict=True)
        first_stretches = {version.reference: entry for version, entry in pairs if entry is not None}
        stored: dict[bytes, StoredVersion | None] = {**first_stretches}
        delivered = [version for version in versions if version.reference in first_stretches]
        stored |= self._old_stretches(delivered, first_stretches)
        judged = [
            _Counterpart(version, version._replace(record=in_stretch(version.record, entry.record.stretch or 0)), entry)
            for version in versions
            if (entry := stored.get(version.reference)) is not None and entry.verdict is not None
        ]
        if not self.seen_ms:
            return _OldBatch(judged, {})
        digests = ((pair.stored.record.text_digest, pair.adopting.record.text_digest) for pair in judged)
        return _OldBatch(judged, seen_by_new_digest(self.old_store, digests))

    def _old_stretches(
        self, versions: Sequence[Version], first_stretches: Mapping[bytes, StoredVersion]
    ) -> dict[bytes, StoredVersion | None]:
        """Return the stored stretches, by reference, of deliveries that may belong to a later stretch than the first.

        A stretch is None if the delivery would begin it: then the old store has not judged it.
        """
        assert self.old_store is not None  # noqa: S101  # the caller has checked
        returning = [version for version in versions if may_return(version.record, first_stretches[version.reference])]
        # The highest limit, since that of the old store is unknown.
        placements = placements_in(self.old_store, returning, STRETCHES_LIMIT)
        return {
            reference: placement.stored if isinstance(placement, Replay) else None
            for reference, placement in placements.items()
        }

    def _old_tombstones(self, tombstones: Sequence[Tombstone]) -> Mapping[bytes, Tombstone]:
        """Return the tombstones in the old store that have these references, by reference."""
        if self.old_store is None:
            return {}
        references = {tombstone.reference for tombstone in tombstones}
        history = (stored for tombstone in tombstones for stored in self.old_store.history(tombstone.id_hash))
        return {
            stored.reference: stored
            for stored in history
            if isinstance(stored, Tombstone) and stored.reference in references
        }


class _Counterpart(NamedTuple):
    """A delivered version, the stretch to adopt for it, and that stretch as stored in the old store."""

    delivered: Version
    adopting: Version
    stored: StoredVersion

    @property
    def began_with_delivery(self) -> bool:
        """Whether this delivery is known to have begun the stretch."""
        return is_delivery_of(self.delivered.record, self.stored.record)


class _OldBatch(NamedTuple):
    """The data of a batch in the old store: the versions with a verdict, and entries of seen texts.

    ``seen`` has only the entries of texts whose digest has changed, by their new digest.
    """

    judged: Sequence[_Counterpart]
    seen: Mapping[bytes, SeenTimes]


@dataclass(frozen=True, slots=True)
class _Adoption:
    """One attempt to adopt and judge a batch; ``adopted`` counts this attempt only."""

    attempt: Attempt
    adopted: AdoptionCounts = field(default_factory=AdoptionCounts)

    def adopt(self, old_batch: _OldBatch) -> dict[bytes, VerdictEvent]:
        """Adopt the verdicts of the old store; return their events by the references of the deliveries."""
        returning = self._new_stretches([pair for pair in old_batch.judged if not pair.began_with_delivery])
        judged = [pair for pair in old_batch.judged if pair.delivered.reference not in returning]
        if not judged:
            return {}
        adopting = [
            pair.adopting._replace(record=_with_arrival_of(pair.adopting.record, pair.stored.record)) for pair in judged
        ]
        events = self._adopt(adopting, {pair.adopting.reference: pair.stored for pair in judged}, old_batch.seen)
        return {pair.delivered.reference: events[pair.adopting.reference] for pair in judged}

    def _new_stretches(self, replays: Sequence["_Counterpart"]) -> frozenset[bytes]:
        """Return the references of deliveries that begin a stretch in the new store, but were replays in the old one.

        The settings of the old store may allow no stretches.
        """
        store, stretches_max = self.attempt.store, self.attempt.settings.stretches_max
        if not replays or not stretches_max:
            return frozenset()
        first_stretches = store.read([pair.delivered.reference for pair in replays])
        ended = [
            pair.delivered
            for pair, stored in zip(replays, first_stretches, strict=True)
            if stored is not None and may_return(pair.delivered.record, stored)
        ]
        placements = placements_in(store, ended, stretches_max)
        return frozenset(reference for reference, placement in placements.items() if isinstance(placement, NewStretch))

    def _adopt(
        self, adopting: list[Version], judged: Mapping[bytes, StoredVersion], seen: Mapping[bytes, SeenTimes]
    ) -> dict[bytes, VerdictEvent]:
        """Store these versions with their verdicts from the old store; return their events by reference."""
        uncompared = {
            version.reference for version in adopting if _was_uncompared(judged[version.reference], version.record)
        }
        adopting = self.attempt.part_search.without_common_anchors(adopting)
        stored = self.attempt.store.create(drop_spare_keys(adopting, uncompared, self.attempt.search))
        pending = [version.record for version in stored if version.verdict is None]
        events = {version.record.reference: verdict_of(version) for version in stored if version.verdict is not None}
        events |= self._settle(pending, {record.reference: verdict_of(judged[record.reference]) for record in pending})
        tally = self.attempt.tally
        tally.versions += len(adopting)
        tally.replays += len(adopting) - len(pending)
        kept = sum(_is_kept(event) for event in events.values())
        self.attempt.findings.kept += [record for record in pending if _is_kept(events[record.reference])]
        tally.kept += kept
        tally.duplicates += len(adopting) - kept
        self._count(pending, events)
        seen_texts = self.attempt.seen_texts
        merge_seen(self.attempt.store, [*seen.items()])
        seen_texts.note(seen_texts.recall([version.record for version in stored]))
        # ``_count`` finds no matches of versions that have just lost their keys, but each repeats kept texts.
        had_keys = {version.reference for version in adopting if version.record.keys}
        self.adopted.flagged_now += sum(not record.keys and record.reference in had_keys for record in pending)
        return events

    def _settle(self, records: Sequence[Record], events: Mapping[bytes, VerdictEvent]) -> dict[bytes, VerdictEvent]:
        """Give each record its verdict; return the verdicts that are stored now."""
        # Postings before verdicts: after a crash, versions with a verdict are skipped.
        self.attempt.store.add([record for record in records if _is_kept(events[record.reference])])
        cells = self.attempt.cells
        settled = cells.settle([(record, events[record.reference]) for record in records])
        return settled.written | cells.verdicts(settled.lost)

    def _count(self, records: Sequence[Record], events: Mapping[bytes, VerdictEvent]) -> None:
        """Count the adopted verdicts, and those that the new settings would change."""
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
        without_match = [
            record.reference for record in records if record.reference not in kept and not repeats[record.reference]
        ]
        originals = [original_of(events[reference].verdict) for reference in without_match]
        # An original older than the messages of the fill is not in the new store, so no settings could find it.
        stored = self.attempt.cells.read(sorted(set(originals)))
        self.adopted.kept_now += sum(reference in stored for reference in originals)


def _with_arrival_of(record: Record, stored: Record) -> Record:
    """Return the record with the arrival, the bank matches and, if there is one, the origin of the stored record."""
    arrived = msgspec.structs.replace(
        record, time_ms=stored.time_ms, sequence=stored.sequence, bank_matches=stored.bank_matches
    )
    return arrived if stored.feed is None else msgspec.structs.replace(arrived, feed=stored.feed, key=stored.key)


def _was_uncompared(stored: StoredVersion, new: Record) -> bool:
    """Return whether a version was kept, and texts that are equal to it now may have been kept too.

    Either it has no keys, so nothing was compared with it. Or its few words were compared in another form, in which
    texts that are equal now were different.
    """
    if state_of(stored) is not VersionState.KEPT:
        return False
    return not stored.record.keys or (
        stored.record.kind != TextKind.LONG and stored.record.text_digest != new.text_digest
    )


def _is_kept(event: VerdictEvent) -> bool:
    return event.verdict.outcome == "unique"


@dataclass(frozen=True, slots=True)
class Takeover:
    """A takeover of the verdicts that messages have in the old store. It judges nothing."""

    decode: Callable[[RawRecord], Article]
    fingerprinting: Fingerprinting
    builder: VersionBuilder
    arrivals: Arrivals
    judge: AdoptingJudge

    def adopt(self, records: Sequence[RawRecord]) -> int:
        """Adopt the verdicts that the old store has for these records; return the number of verdicts.

        Bad records and retractions are skipped.
        """
        articles = list(self._articles_with_body(records))
        if not articles:
            return 0
        timed = self.fingerprinting.submit(
            [article.body or "" for _, article in articles], [article.lang for _, article in articles]
        ).result()
        arrivals = [self.arrivals.arrived_at(record, article) for record, article in articles]
        versions = self.builder.versions([article for _, article in articles], arrivals, timed.fingerprints)
        parts = (
            [version for version in part if isinstance(version, Version)] for part in parts_with_distinct_ids(versions)
        )
        return sum(len(self.judge.adopt(part)) for part in parts)

    def _articles_with_body(self, records: Sequence[RawRecord]) -> Iterator[tuple[RawRecord, Article]]:
        for record in records:
            try:
                article = self.decode(record)
            except BadRecord:
                continue
            if article.body is not None:
                yield record, article
