"""The judge of a fill: existing verdicts stand, and only what has no verdict is judged.

A new store is filled beside one in force, whose verdicts have been sent. Judged again with other settings, an article
that readers know as unique might become a duplicate, and the next copy of it be kept: the same story twice. So a
verdict is adopted unchanged, with the fingerprint and keys of the new settings. See docs/operate/migration.md.
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
from storage.records import Record, StoredVersion, Tombstone, Version
from storage.seen import SeenTimes

_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class AdoptionCounts:
    """Counts of adopted verdicts; ``flagged_now`` and ``kept_now`` count what the new settings would change."""

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
    """Adopts the verdicts of ``in_force``, the store in force (None where there is none), and judges the rest.

    Verdicts are adopted with their arrivals, and postings are written only for what was kept; of many equal texts that
    were kept because the old settings could not compare them, for a few (``stand_ins``). Repeated after a crash
    anywhere, the result is the same. For one process; nobody else may judge into the store meanwhile.
    """

    in_force: Store | None = None
    adopted: AdoptionCounts = field(default_factory=AdoptionCounts)

    @override
    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """Adopt what the store in force has verdicts of, and judge the rest."""
        # The store in force may be far away: it is asked before the store that is filled is locked.
        known = self._known_tombstones([arrived for arrived in batch if isinstance(arrived, Tombstone)])
        in_force = self._judged_in_force([arrived for arrived in batch if isinstance(arrived, Version)])

        def work(adoption: "_Adoption") -> list[VerdictEvent]:
            events = adoption.adopt(in_force)
            rest = [known.get(arrived.reference, arrived) for arrived in batch if arrived.reference not in events]
            answers = adoption.attempt.judge(rest)
            events |= {arrived.reference: event for arrived, event in zip(rest, answers, strict=True)}
            return [events[arrived.reference] for arrived in batch]

        with self.tally.settling():
            return self._together(work)

    def adopt(self, versions: Sequence[Version]) -> dict[bytes, VerdictEvent]:
        """Adopt the verdicts that the store in force has of these versions; return their events by reference."""
        in_force = self._judged_in_force(versions)
        return self._together(lambda adoption: adoption.adopt(in_force))

    def _together(self, work: Callable[["_Adoption"], _Answer]) -> _Answer:
        """Do all that is done for a batch at once, and keep what it has counted and learned."""

        def attempted() -> tuple[_Adoption, _Answer]:
            adoption = _Adoption(self.attempt())
            return adoption, work(adoption)

        adoption, answer = self.store.together(attempted)
        self.keep(adoption.attempt.learned)
        self.adopted.add(adoption.adopted)
        return answer

    def _judged_in_force(self, versions: Sequence[Version]) -> "_InForceBatch":
        """Return what the store in force has of these versions."""
        if self.in_force is None or not versions:
            return _InForceBatch((), {})
        found = self.in_force.read([version.reference for version in versions])
        pairs = zip(versions, found, strict=True)
        first = {version.reference: each for version, each in pairs if each is not None}
        stored: dict[bytes, StoredVersion | None] = {**first}
        stored |= self._stretches_in_force([version for version in versions if version.reference in first], first)
        judged = [
            _Counterpart(version, version._replace(record=in_stretch(version.record, each.record.stretch or 0)), each)
            for version in versions
            if (each := stored.get(version.reference)) is not None and each.verdict is not None
        ]
        if not self.seen_ms:
            return _InForceBatch(judged, {})
        digests = ((each.stored.record.text_digest, each.adopting.record.text_digest) for each in judged)
        return _InForceBatch(judged, seen_as(self.in_force, digests))

    def _stretches_in_force(
        self, versions: Sequence[Version], first: Mapping[bytes, StoredVersion]
    ) -> dict[bytes, StoredVersion | None]:
        """Return the stretches of the store in force that these deliveries belong to, where that is not the first.

        None for a delivery that would begin a stretch there: the store in force has not judged it.
        """
        assert self.in_force is not None  # noqa: S101  # the caller has asked
        returning = [version for version in versions if may_return(version.record, first[version.reference])]
        # Whatever limit that store has.
        placements = placements_in(self.in_force, returning, STRETCHES_LIMIT)
        return {
            reference: placement.stored if isinstance(placement, Replay) else None
            for reference, placement in placements.items()
        }

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


class _Counterpart(NamedTuple):
    """A version that was delivered, the stretch to adopt for it, and that stretch as the store in force has it."""

    delivered: Version
    adopting: Version
    stored: StoredVersion

    @property
    def is_its_delivery(self) -> bool:
        """Whether the stretch is known to have begun with this delivery."""
        return is_delivery_of(self.delivered.record, self.stored.record)


class _InForceBatch(NamedTuple):
    """What the store in force has of a batch: the versions with a verdict, and what it remembers of texts.

    ``seen`` has the texts whose digest is another one now, by that one.
    """

    judged: Sequence[_Counterpart]
    seen: Mapping[bytes, SeenTimes]


@dataclass(frozen=True, slots=True)
class _Adoption:
    """One attempt to adopt and judge a batch; ``adopted`` counts for this attempt alone."""

    attempt: Attempt
    adopted: AdoptionCounts = field(default_factory=AdoptionCounts)

    def adopt(self, in_force: _InForceBatch) -> dict[bytes, VerdictEvent]:
        """Adopt the verdicts of the store in force; return their events by the references of what was delivered."""
        returning = self._returning([each for each in in_force.judged if not each.is_its_delivery])
        judged = [each for each in in_force.judged if each.delivered.reference not in returning]
        if not judged:
            return {}
        adopting = [
            each.adopting._replace(record=_arrived_as(each.adopting.record, each.stored.record)) for each in judged
        ]
        events = self._adopt(adopting, {each.adopting.reference: each.stored for each in judged}, in_force.seen)
        return {each.delivered.reference: events[each.adopting.reference] for each in judged}

    def _returning(self, replays: Sequence["_Counterpart"]) -> frozenset[bytes]:
        """Return those that begin a stretch here, though the store in force, which may know none, replayed them."""
        store, stretches_max = self.attempt.store, self.attempt.settings.stretches_max
        if not replays or not stretches_max:
            return frozenset()
        first = store.read([each.delivered.reference for each in replays])
        ended = [
            each.delivered
            for each, stored in zip(replays, first, strict=True)
            if stored is not None and may_return(each.delivered.record, stored)
        ]
        placements = placements_in(store, ended, stretches_max)
        return frozenset(reference for reference, placement in placements.items() if isinstance(placement, NewStretch))

    def _adopt(
        self, adopting: list[Version], judged: Mapping[bytes, StoredVersion], seen: Mapping[bytes, SeenTimes]
    ) -> dict[bytes, VerdictEvent]:
        """Store these versions with the verdicts that they have in force; return their events by reference."""
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
        merge_seen(self.attempt.store, [*seen.items()])
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
    """Return the record with its arrival and bank matches in the store in force, and its origin if that has one."""
    arrived = msgspec.structs.replace(
        record, time_ms=known.time_ms, sequence=known.sequence, bank_matches=known.bank_matches
    )
    return arrived if known.feed is None else msgspec.structs.replace(arrived, feed=known.feed, key=known.key)


def _was_uncompared(stored: StoredVersion, now: Record) -> bool:
    """Return whether a version was kept and texts that are equal to it now may have been kept beside it.

    Either it has no keys, and nothing was ever compared with it, or its few words were compared in another form, which
    tells texts apart that are equal now.
    """
    if state_of(stored) is not VersionState.KEPT:
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
