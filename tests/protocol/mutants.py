"""Judges and stores with one protection removed. Each is the production code except for the lines that are here."""

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, cast

import msgspec

from consumer.judge.attempt import Attempt, BankMatcher
from consumer.judge.decision import Duplicate, Neighbourhood, VersionState, decide
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.judge.situation import BatchWrites, Situation
from consumer.judge.verdict_cells import SettledVerdicts, Settlement, VerdictCells
from consumer.model.verdict import VerdictEvent
from storage.interface import Store
from storage.memory import MemoryStore
from storage.records import Record, StoredVersion, Version
from tests.protocol.contents import stands_still


def judge_by(kind: type[Attempt]) -> type[Detector]:
    """Return the judge whose attempts are of this kind."""

    class Broken(Detector):
        """The production judge, apart from its attempts."""

        def attempt(self) -> Attempt:
            """Return one with the same parts."""
            attempt = super().attempt()
            return kind(*(getattr(attempt, field.name) for field in fields(attempt)))

    return Broken


class _LooksUpFirst(Attempt):
    """Looks up before it has written its postings."""

    def _post_and_look_up(self, versions: Sequence[StoredVersion]) -> Neighbourhood:
        records = [version.record for version in versions]
        near = self.search.look_up(records, created={})
        self.store.add(records)
        return near


LooksUpFirst = judge_by(_LooksUpFirst)


class _ClaimsNothing(Attempt):
    """Keeps a version without claiming the later near ones."""

    def _settle_in_order(
        self, writes: BatchWrites, situation: Situation, stale: Sequence[Record]
    ) -> dict[bytes, VerdictEvent] | None:
        return super()._settle_in_order(writes._replace(claims=()), situation, stale)


ClaimsNothing = judge_by(_ClaimsNothing)


class _KeepsBeforeItClaims(Attempt):
    """Writes the kept ones before the claims."""

    def _settle_in_order(
        self, writes: BatchWrites, situation: Situation, stale: Sequence[Record]
    ) -> dict[bytes, VerdictEvent] | None:
        kept = super()._settle_in_order(writes._replace(claims=()), situation, stale)
        if kept is None:
            return None
        claimed = super()._settle_in_order(BatchWrites((), (), writes.claims, ()), situation, ())
        return None if claimed is None else kept | claimed


KeepsBeforeItClaims = judge_by(_KeepsBeforeItClaims)


class ForgetfulCells(VerdictCells):
    """Hides which compare-and-sets were lost, though it returns what is stored."""

    def settle(self, settlements: Sequence[Settlement], removing: Sequence[Record] = ()) -> SettledVerdicts:
        """Settle, and read what is stored instead of what was lost."""
        super().settle(settlements, removing)
        return SettledVerdicts(self.verdicts([record.reference for record, _ in settlements]), ())


class ForgetsItsLosses(Detector):
    """Continues with its decisions after a lost compare-and-set, though it answers with what is stored."""

    def attempt(self) -> Attempt:
        """Return one that does not hear of lost compare-and-sets."""
        attempt = super().attempt()
        return replace(attempt, cells=ForgetfulCells(self.store, attempt.tally))


class RememberingCells(VerdictCells):
    """Returns what it is given, in place of what is stored."""

    given: Mapping[bytes, StoredVersion]

    def read(self, references: Sequence[bytes]) -> dict[bytes, StoredVersion]:
        """Return what was given."""
        return {reference: self.given[reference] for reference in references}


class _NeverReadsAgain(Attempt):
    """Decides again after a lost compare-and-set, from what it had read before."""

    def _decide_and_settle(self, situation: Situation, stale: Sequence[Record]) -> dict[bytes, VerdictEvent]:
        cells = RememberingCells(self.store, self.tally)
        cells.given = situation.stored()
        return Attempt._decide_and_settle(replace(self, cells=cells), situation, stale)


NeverReadsAgain = judge_by(_NeverReadsAgain)


class CellsThatReadWhatWasLost(RememberingCells):
    """Reads only cells that were lost, once any are lost, and remembers the others."""

    lost: frozenset[bytes] = frozenset()

    def settle(self, settlements: Sequence[Settlement], removing: Sequence[Record] = ()) -> SettledVerdicts:
        """Settle, and note what was lost."""
        settled = super().settle(settlements, removing)
        self.lost = frozenset(settled.lost)
        return settled

    def read(self, references: Sequence[bytes]) -> dict[bytes, StoredVersion]:
        """Read what was lost last, or everything if nothing was."""
        asked = [reference for reference in references if not self.lost or reference in self.lost]
        self.given = {**self.given, **VerdictCells.read(self, asked)}
        return {reference: self.given[reference] for reference in references}


class _ReadsAgainOnlyWhatItLost(Attempt):
    """Reads only the lost cells after a lost compare-and-set, and trusts what it had read of all others."""

    def _decide_and_settle(self, situation: Situation, stale: Sequence[Record]) -> dict[bytes, VerdictEvent]:
        cells = CellsThatReadWhatWasLost(self.store, self.tally)
        cells.given = situation.stored()
        return Attempt._decide_and_settle(replace(self, cells=cells), situation, stale)


ReadsAgainOnlyWhatItLost = judge_by(_ReadsAgainOnlyWhatItLost)


class _GivesUpOnPendingOnes(Attempt):
    """Ignores earlier versions that are pending in another process."""

    def _decide_and_settle(self, situation: Situation, stale: Sequence[Record]) -> dict[bytes, VerdictEvent]:
        near = situation.near
        own = {version.record.reference: version.record.arrival for version in situation.pending}
        neighbours = {
            reference: [
                other
                for other in others
                if other.record.reference in own
                or near.stored[other.record.reference].verdict is not None
                or other.record.arrival > own[reference]
            ]
            for reference, others in near.neighbours.items()
        }
        return super()._decide_and_settle(situation._replace(near=near._replace(neighbours=neighbours)), stale)


GivesUpOnPendingOnes = judge_by(_GivesUpOnPendingOnes)


class _TrustsItsMemory(Attempt):
    """Assumes that every remembered original is kept, without reading its verdict."""

    def _situation(self, pending: Sequence[StoredVersion]) -> Situation:
        copies: list[Duplicate] = []
        for version in pending:
            own = version.record.reference
            originals = self.cells.read(self.copies.known.recall(version.record, self.settings.verifications_max))
            (near,) = self.search.near([(version, list(originals))], list(originals.values()))
            states = dict.fromkeys(originals, VersionState.KEPT) | {own: VersionState.PENDING}
            copies += decide([version.record], {own: near}, states).duplicates
        repeated = {copy.record.reference for copy in copies}
        rest = [version for version in pending if version.record.reference not in repeated]
        return Situation(pending, copies, self._post_and_look_up(rest))


TrustsItsMemory = judge_by(_TrustsItsMemory)


class _RemovesWhatWasReplaced(Attempt):
    """Removes the postings of an id's older versions when a newer one is kept."""

    def _decide_and_settle(self, situation: Situation, stale: Sequence[Record]) -> dict[bytes, VerdictEvent]:
        verdicts = super()._decide_and_settle(situation, stale)
        for record in (version.record for version in situation.pending):
            history = self.store.history(record.id_hash)
            self.store.remove(
                [
                    version.record
                    for version in history
                    if isinstance(version, StoredVersion) and version.record.arrival < record.arrival
                ]
            )
        return verdicts


RemovesWhatWasReplaced = judge_by(_RemovesWhatWasReplaced)


class FlagsEverySource(Detector):
    """Ignores that some sources are never flagged."""

    def attempt(self) -> Attempt:
        """Return one that flags them."""
        sources = {name: replace(rule, flag="duplicates") for name, rule in self.settings.sources.items()}
        return replace(super().attempt(), settings=replace(self.settings, sources=MappingProxyType(sources)))


class _RemovesTooMuch(Attempt):
    """Removes the postings of everything that it has judged."""

    def _judge_versions(self, stored: Sequence[StoredVersion]) -> dict[bytes, VerdictEvent]:
        verdicts = super()._judge_versions(stored)
        self.store.remove([version.record for version in stored])
        return verdicts


RemovesTooMuch = judge_by(_RemovesTooMuch)


class OverwritesArrivals(MemoryStore):
    """Overwrites a version with what was delivered last."""

    def create(self, versions: Sequence[Version]) -> list[StoredVersion]:
        """Create versions, or overwrite them."""
        for version in versions:
            reference = version.record.reference
            if reference in self._versions:
                timeline = self._timelines[version.record.id_hash]
                timeline.remove(self._versions[reference].record.arrival)
                insort(timeline, version.record.arrival)
                self._versions[reference] = version
        return super().create(versions)


class PutsVerdicts(MemoryStore):
    """Overwrites verdicts."""

    def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
        """Write verdicts without a comparison."""
        self.remove(removing)
        self._verdicts.update(verdicts)
        return [True for _ in verdicts]


class Hoards(MemoryStore):
    """Removes no postings."""

    def remove(self, records: Sequence[Record]) -> None:
        """Do nothing."""


def hoarding_store() -> Store:
    """Return a store in which duplicates keep their postings."""
    return Hoards(clock=stands_still)


def overwriting_store() -> Store:
    """Return a store without protection of arrivals."""
    return OverwritesArrivals(clock=stands_still)


def putting_store() -> Store:
    """Return a store without compare-and-set."""
    return PutsVerdicts(clock=stands_still)


class _OwnBank:
    """Settings that go by what this process's bank says of a version, and not by what the record says."""

    def __init__(self, settings: JudgeSettings, matcher: BankMatcher) -> None:
        self._settings = settings
        self._matcher = matcher

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever the settings have
        return getattr(self._settings, name)

    def never_flags(self, record: Record) -> bool:
        """Ask the bank."""
        (version,) = self._matcher([Version(msgspec.structs.replace(record, bank_matches=None), None)])
        return self._settings.never_flags(version.record)


class AsksItsOwnBank(Detector):
    """Judges by its own bank instead of the record."""

    def attempt(self) -> Attempt:
        """Return one that asks the bank."""
        attempt = super().attempt()
        return replace(attempt, settings=cast("JudgeSettings", _OwnBank(attempt.settings, self.with_bank_matches)))
