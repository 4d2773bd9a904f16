"""A migration, which fills a new store while consumers use the old one. New consumers continue where the old ones stop.

    texts     copy the old store's entries of seen texts, if the new store keeps such entries
    begin     find where each partition's window begins, and whether the topic still has it
    rounds    fill up to the offsets that the old group has committed, never beyond; repeat until the group is empty
    switch    adopt verdicts that old consumers have settled but not committed; then set the new group's offsets to
              those of the old group, in one request

The progress of the fill is in the new group's offsets, with a note that keeps its consumers from starting. So the
command can be killed at any moment and run again. See docs/operate/migration.md and docs/decisions/0020.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from consumer.judge.tally import Tally
from consumer.kafka.groups import FILLING_NOTE, SWITCHED_NOTE, CommittedOffset, ConsumerGroup, GroupTopics
from consumer.kafka.offset_metadata import Note
from consumer.kafka.offset_range import Ranges
from consumer.kafka.source.range_source import RangeSource
from consumer.lifecycle.stopping import StopSignal
from consumer.migration.adopting import AdoptingJudge, AdoptionCounts
from consumer.migration.offsets import FillJournal, filled_offsets, gap_in, group_offsets
from consumer.model.errors import ConfigError, SourceError
from consumer.model.hooks import Hooks
from consumer.model.record import Partition, RawRecord
from consumer.pipeline.loop import Pipeline

SEARCH_OFFSETS: Final = 200
"""The number of offsets per partition that one search reads for messages that are settled but not committed."""
CAUGHT_UP_S: Final = 5.0
"""A round that takes no longer than this has caught up: the switch will be as fast, so old consumers may be stopped."""
_GAP_OFFSETS: Final = 200
_CHECK_EVERY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The old group, its store (None: no verdicts are adopted), and whether gaps in the window are accepted."""

    from_group: str
    from_store: str | None
    allow_gap: bool = False


class FillCaughtUp(NamedTuple):
    """The fill has reached the offsets of the old group, whose consumers may be stopped."""


class TextsCopied(NamedTuple):
    """The old store's entries of seen texts were copied to the new store: ``texts`` entries."""

    texts: int


class WindowGap(NamedTuple):
    """Part of a window is no longer in the topic, but gaps are accepted; ``sentence`` says which part is missing."""

    sentence: str


@dataclass(slots=True)
class Migration:
    """A migration that is ready to start. It may be stopped and run again, even in another process.

    ``into`` names the new store, and ``has_articles`` tells whether that store has articles. Partitions are filled with
    messages since ``begin_ms``; missing messages since ``needed_ms`` are a gap. ``copy_texts`` copies the old store's
    entries of seen texts, and returns their number. ``adopted_ahead`` counts versions that were adopted before the old
    group committed them. ``_filled`` has the offset up to which each partition is filled. ``_done`` is the number of
    offsets filled so far, ``_target`` the number to fill.
    """

    plan: MigrationPlan
    into: str
    has_articles: Callable[[], bool]
    topics: GroupTopics
    old: ConsumerGroup
    new: ConsumerGroup
    judge: AdoptingJudge
    hooks: Hooks
    stopping: StopSignal
    topic_names: Sequence[str]
    begin_ms: int
    needed_ms: int
    open_source: Callable[[Ranges], RangeSource]
    build_pipeline: Callable[[RangeSource, FillJournal], Pipeline]
    adopt: Callable[[Sequence[RawRecord]], int]
    copy_texts: Callable[[], int]
    adopted_ahead: int = 0
    _filled: dict[Partition, int] = field(default_factory=dict)
    _done: int = 0
    _target: int = 0
    _source: RangeSource | None = None

    @property
    def tally(self) -> Tally:
        """The tally of the fill's judging."""
        return self.judge.tally

    @property
    def adopted(self) -> AdoptionCounts:
        """The counts of adopted verdicts."""
        return self.judge.adopted

    def progress(self) -> tuple[int, int]:
        """Return the number of offsets filled since the start, and the number to fill as known so far."""
        under_way = 0 if self._source is None else self._source.progress()[0]
        return self._done + under_way, self._target

    def run(self) -> bool:
        """Fill until the old group is empty, then switch. Return False if the migration was stopped before the switch.

        Raises ``SourceError``, ``ConfigError``, ``StoreError``.
        """
        reported = False
        if self._resume():
            return True
        self.hooks.report(TextsCopied(self.copy_texts()))
        while not self.stopping.requested():
            began_s = time.monotonic()
            # Checked first: consumers commit before they leave, so the offsets of an empty group are final.
            empty = self.topics.is_empty(self.plan.from_group)
            offsets = self._old_offsets()
            self._begin(offsets)
            self._fill(offsets)
            if empty and self._switch(offsets):
                return True
            if time.monotonic() - began_s <= CAUGHT_UP_S and not self.stopping.requested():
                if not reported:
                    self.hooks.report(FillCaughtUp())
                    reported = True
                self._wait()
        self._save()
        return False

    def _resume(self) -> bool:
        """Resume the fill where it stopped. Return whether the switch has been made already."""
        watermarks = self.topics.watermarks()
        group_offsets(self.old.committed([*watermarks]), watermarks, self.topic_names, self.plan.from_group)
        committed = self.new.committed([*watermarks])
        has_articles = self.has_articles()
        if committed and all(saved.note.migrate == SWITCHED_NOTE.migrate for saved in committed.values()):
            self._check_switched(committed, watermarks, has_articles=has_articles)
            return True
        filled = filled_offsets(committed, self.new.name)
        if has_articles and not filled:
            raise ConfigError(
                f"{self.into} has articles already, and the group {self.new.name} has not begun to fill it: name an"
                " empty store with --store, or the group that has filled this one with --group"
            )
        # An empty store is not the one that was being filled, so the whole window is filled.
        self._filled.update(filled if has_articles else {})
        gone = {key: offset for key, offset in self._filled.items() if offset < watermarks[key][0]}
        self._check_gaps(gone, watermarks)
        self._filled.update({key: watermarks[key][0] for key in gone})
        return False

    def _check_switched(
        self,
        committed: Mapping[Partition, CommittedOffset],
        watermarks: Mapping[Partition, tuple[int, int]],
        *,
        has_articles: bool,
    ) -> None:
        """Raise ``ConfigError`` if the store cannot be the one that was filled before the switch."""
        starts = self.topics.offsets_since({key: watermarks[key] for key in committed}, self.begin_ms)
        if not has_articles and any(starts[key] < committed[key].offset for key in committed):
            raise ConfigError(
                f"{self.into} is empty, but the group {self.new.name} has been switched to a store that was filled:"
                " name that one with --store; to fill this one, name another group with --group"
            )

    def _old_offsets(self) -> dict[Partition, int]:
        watermarks = self.topics.watermarks()
        return group_offsets(self.old.committed([*watermarks]), watermarks, self.topic_names, self.plan.from_group)

    def _begin(self, offsets: Mapping[Partition, int]) -> None:
        """Set each partition that has not begun to its first offset at ``begin_ms`` or later."""
        new = offsets.keys() - self._filled.keys()
        if not new:
            return
        watermarks = {key: low_high for key, low_high in self.topics.watermarks().items() if key in new}
        starts = self.topics.offsets_since(watermarks, self.begin_ms)
        # If the first offset is within the window, the messages before it are gone.
        truncated = {key: start for key, start in starts.items() if 0 < start <= watermarks[key][0]}
        self._check_gaps(truncated, watermarks)
        self._filled.update(starts)
        self._save()

    def _check_gaps(self, gone: Mapping[Partition, int], watermarks: Mapping[Partition, tuple[int, int]]) -> None:
        """Refuse or report gaps in the windows of partitions whose first messages were deleted."""
        if not gone:
            return
        first_ms: dict[Partition, int] = {}
        ranges = {key: (watermarks[key][0], min(watermarks[key][1], watermarks[key][0] + _GAP_OFFSETS)) for key in gone}
        with closing(self.open_source(ranges)) as source:
            for record in (record for batch in source.batches() for record in batch.records):
                first_ms.setdefault(record.known_partition(), record.time_ms)
        sentences = [gap_in(key, first_ms.get(key), self.needed_ms) for key in sorted(gone)]
        gaps = [sentence for sentence in sentences if sentence is not None]
        if gaps and not self.plan.allow_gap:
            raise SourceError(
                f"{'; '.join(gaps)}. Raise retention.ms and wait, or continue without what is missing: --allow-gap"
            )
        for sentence in gaps:
            self.hooks.report(WindowGap(sentence))

    def _fill(self, offsets: Mapping[Partition, int]) -> None:
        """Fill up to these offsets, or until the migration is stopped."""
        ranges = {key: (self._filled[key], end) for key, end in offsets.items() if self._filled[key] < end}
        if not ranges:
            return
        self._target = self._done + sum(end - start for start, end in ranges.values())
        with closing(self.open_source(ranges)) as source:
            self._source = source
            self.build_pipeline(source, FillJournal(self._filled, self._save)).run()
            self._done += source.progress()[0]
            self._source = None
        if not self.stopping.requested():
            # The last offsets may have no messages, only the markers of transactions.
            self._filled.update({key: end for key, (_, end) in ranges.items()})
        self._save()

    def _switch(self, offsets: Mapping[Partition, int]) -> bool:
        """Switch, and return whether that succeeded. If the old group has moved since, another round is needed."""
        self._adopt_ahead(offsets)
        if self.stopping.requested() or not self.topics.is_empty(self.plan.from_group):
            return False
        watermarks = self.topics.watermarks()
        old = self.old.committed([*watermarks], settled=True)
        if group_offsets(old, watermarks, self.topic_names, self.plan.from_group) != offsets:
            return False
        # Commit the old group's notes too, so that held partitions remain held and the highest arrivals do not change.
        self.new.commit({key: CommittedOffset(offset, _switched_note(old.get(key))) for key, offset in offsets.items()})
        return True

    def _adopt_ahead(self, offsets: Mapping[Partition, int]) -> None:
        """Adopt verdicts that old consumers have settled but not committed, until a search finds none.

        Old consumers may have sent these verdicts.
        """
        next_offsets = dict(offsets)
        while not self.stopping.requested():
            watermarks = self.topics.watermarks()
            ranges = {
                key: (offset, min(watermarks[key][1], offset + SEARCH_OFFSETS))
                for key, offset in next_offsets.items()
                if offset < watermarks[key][1]
            }
            adopted = 0
            if ranges:
                with closing(self.open_source(ranges)) as source:
                    adopted = sum(self.adopt(batch.records) for batch in source.batches())
            if not adopted:
                return
            self.adopted_ahead += adopted
            next_offsets.update({key: end for key, (_, end) in ranges.items()})

    def _save(self) -> None:
        if self._filled:
            self.new.commit({key: CommittedOffset(offset, FILLING_NOTE) for key, offset in self._filled.items()})

    def _wait(self) -> None:
        until_s = time.monotonic() + _CHECK_EVERY_S
        while time.monotonic() < until_s and not self.stopping.requested():
            time.sleep(0.1)


def _switched_note(old: CommittedOffset | None) -> Note:
    """Return the note of a partition after the switch: the old group's note, marked as switched."""
    return SWITCHED_NOTE if old is None else msgspec.structs.replace(old.note, migrate=SWITCHED_NOTE.migrate)
