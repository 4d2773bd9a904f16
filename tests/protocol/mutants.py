"""Judges and stores with one protection taken out. Each is the production code but for the lines that stand here."""

from bisect import insort
from collections.abc import Sequence

from consumer.judge.decision import Decisions, Duplicate, State, decide
from consumer.judge.detector import Detector
from consumer.judge.search import Sight
from consumer.model.verdict import VerdictEvent
from storage.interface import Store
from storage.memory import MemoryStore
from storage.records import Record, Stored, Version
from tests.protocol.contents import stands_still


class LooksUpFirst(Detector):
    """Reads before it has written its postings."""

    def _judge_rest(self, records: Sequence[Record]) -> dict[bytes, VerdictEvent]:
        if not records:
            return {}
        sight = self._look_up(records)
        self.store.add(records)
        return self._settle(records, sight)


class ClaimsNothing(Detector):
    """Keeps a version without giving the later near ones their verdict."""

    def _write_in_order(self, decisions: Decisions, truncated: frozenset[bytes]) -> dict[bytes, VerdictEvent] | None:
        return super()._write_in_order(decisions._replace(claims=()), truncated)


class KeepsBeforeItClaims(Detector):
    """Writes the kept ones, and claims afterwards."""

    def _write_in_order(self, decisions: Decisions, truncated: frozenset[bytes]) -> dict[bytes, VerdictEvent] | None:
        kept = super()._write_in_order(decisions._replace(claims=()), truncated)
        if kept is None:
            return None
        claimed = super()._write_in_order(Decisions((), decisions.claims, ()), truncated)
        return None if claimed is None else kept | claimed


class ForgetsItsLosses(Detector):
    """Goes on with what it had decided after a lost compare-and-set; it answers what is stored, though."""

    def _write(self, verdicts: Sequence[tuple[Record, VerdictEvent]]) -> dict[bytes, VerdictEvent]:
        super()._write(verdicts)
        stored = self._read([record.reference for record, _ in verdicts])
        return {
            reference: VerdictEvent.read(one.verdict) for reference, one in stored.items() if one.verdict is not None
        }


class NeverReadsAgain(Detector):
    """After a lost compare-and-set decides anew from what it had read before."""

    settling = False

    def _settle(self, records: Sequence[Record], sight: Sight) -> dict[bytes, VerdictEvent]:
        self.settling = True
        return super()._settle(records, sight)

    def _read(self, references: Sequence[bytes]) -> dict[bytes, Stored]:
        return {} if self.settling else super()._read(references)


class ReadsAgainOnlyWhatItLost(Detector):
    """After a lost compare-and-set learns what stands there, and believes what it had read of all others."""

    lost: frozenset[bytes] = frozenset()

    def _write(self, verdicts: Sequence[tuple[Record, VerdictEvent]]) -> dict[bytes, VerdictEvent]:
        done = super()._write(verdicts)
        self.lost = frozenset(record.reference for record, _ in verdicts) - done.keys()
        return done

    def _read(self, references: Sequence[bytes]) -> dict[bytes, Stored]:
        return super()._read([one for one in references if not self.lost or one in self.lost])


class GivesUpOnPendingOnes(Detector):
    """Treats an earlier version that is pending elsewhere as if it were not there."""

    def _settle(self, records: Sequence[Record], sight: Sight) -> dict[bytes, VerdictEvent]:
        own = {record.reference: record.arrival for record in records}
        neighbours = {
            reference: [
                other
                for other in others
                if other.record.reference in own
                or sight.stored[other.record.reference].verdict is not None
                or other.record.arrival > own[reference]
            ]
            for reference, others in sight.neighbours.items()
        }
        return super()._settle(records, sight._replace(neighbours=neighbours))


class TrustsItsMemory(Detector):
    """Takes every original that it remembers for kept, without reading its verdict."""

    def _settle_known_copies(self, pending: Sequence[Stored]) -> dict[bytes, VerdictEvent]:
        plan: list[Duplicate] = []
        for one in pending:
            own = one.record.reference
            found = self._read(self.known.recall(one.record, self.settings.verifications_max))
            near = self._search.compare(one, list(found.values()), [])
            states = dict.fromkeys(found, State.KEPT) | {own: State.PENDING}
            plan += decide([one.record], {own: near}, states).duplicates
        return self._settle_copies(plan)


class RemovesWhatWasReplaced(Detector):
    """Removes the postings of an id's older versions when a newer one is kept."""

    def _settle(self, records: Sequence[Record], sight: Sight) -> dict[bytes, VerdictEvent]:
        verdicts = super()._settle(records, sight)
        for record in records:
            history = self.store.history(record.id_hash)
            self.store.remove(
                [one.record for one in history if isinstance(one, Stored) and one.record.arrival < record.arrival]
            )
        return verdicts


class FlagsEverySource(Detector):
    """Takes no notice of sources that are never flagged."""

    def _never_flagged(self, record: Record) -> bool:
        return False


class RemovesTooMuch(Detector):
    """Removes the postings of everything it has judged."""

    def _judge_versions(self, stored: Sequence[Stored]) -> dict[bytes, VerdictEvent]:
        verdicts = super()._judge_versions(stored)
        self.store.remove([one.record for one in stored])
        return verdicts


class OverwritesArrivals(MemoryStore):
    """Takes what was delivered last for what the version is."""

    def create(self, versions: Sequence[Version]) -> list[Stored]:
        """Create, or overwrite."""
        for version in versions:
            reference = version.record.reference
            if reference in self._versions:
                timeline = self._timelines[version.record.id_hash]
                timeline.remove(self._versions[reference].record.arrival)
                insort(timeline, version.record.arrival)
                self._versions[reference] = version
        return super().create(versions)


class PutsVerdicts(MemoryStore):
    """Writes a verdict over the one that stands there."""

    def settle(self, verdicts: Sequence[tuple[bytes, bytes]]) -> list[bool]:
        """Put, plainly."""
        self._verdicts.update(verdicts)
        return [True for _ in verdicts]


class Hoards(MemoryStore):
    """Removes nothing."""

    def remove(self, records: Sequence[Record]) -> None:
        """Leave them where they are."""


def hoarding_store() -> Store:
    """Where duplicates keep their postings."""
    return Hoards(clock=stands_still)


def overwriting_store() -> Store:
    """Without a protection for arrivals."""
    return OverwritesArrivals(clock=stands_still)


def putting_store() -> Store:
    """Without compare-and-set."""
    return PutsVerdicts(clock=stands_still)
