"""The offsets of a migration's old group and of its fill, the fill's journal, and gaps in the window."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from typing_extensions import override

from consumer.kafka.groups import FILLING_NOTE, CommittedOffset
from consumer.kafka.message import offsets_in
from consumer.model.dead_letter import DeadLetter
from consumer.model.errors import ConfigError
from consumer.model.record import End, Partition
from consumer.model.verdict import Verdict
from consumer.pipeline.journal import Journal
from consumer.text.timestamps import shown_time
from storage.clock import MS_PER_S

GAP_MS: Final = 60_000
"""A gap of at most this length at the beginning of a window is ignored."""
SAVE_EVERY_S: Final = 5.0


def gap_in(partition: Partition, first_ms: int | None, needed_ms: int) -> str | None:
    """Return a sentence about the part of the window that a partition has lost, or None if it has the whole window.

    Call it for a partition whose first messages were deleted. ``first_ms`` is the arrival of the first remaining
    message, or None if none remains. The window begins at ``needed_ms``.
    """
    where = f"{partition[0]} [{partition[1]}]"
    if first_ms is None:
        return f"{where} has nothing left: all of the window was deleted, or nothing was sent"
    if first_ms - needed_ms <= GAP_MS:
        return None
    missing_s = (first_ms - needed_ms) // MS_PER_S
    return (
        f"{where} has messages only since {shown_time(first_ms)}: {missing_s:,} s of the window are missing, unless"
        " nothing was sent then"
    )


def group_offsets(
    old: Mapping[Partition, CommittedOffset],
    watermarks: Mapping[Partition, tuple[int, int]],
    topics: Sequence[str],
    group: str,
) -> dict[Partition, int]:
    """Return the offset of the old group in each partition or, if it has none, the partition's first offset.

    Raises ``ConfigError`` if the group has committed no offset at all.
    """
    if not old:
        raise ConfigError(
            f"the group {group} has committed no offsets of {', '.join(topics)}: name the group of the current"
            " consumers with --from-group"
        )
    return {partition: old[partition].offset if partition in old else low for partition, (low, _) in watermarks.items()}


def filled_offsets(new: Mapping[Partition, CommittedOffset], group: str) -> dict[Partition, int]:
    """Return the offset up to which each partition is filled; empty if the fill has not begun.

    Raises ``ConfigError`` if the offsets are not those of a fill.
    """
    if any(committed.note.migrate != FILLING_NOTE.migrate for committed in new.values()):
        raise ConfigError(
            f"the group {group} has offsets that no migration has set: it is in use, or has been switched already. To"
            " start again, name another group and an empty store; to continue, start its consumers"
        )
    return {partition: committed.offset for partition, committed in new.items()}


class FillJournal(Journal):
    """A journal that updates ``filled`` after each batch, and calls ``save`` at most once every ``SAVE_EVERY_S``.

    Batches that were not saved are filled again, with the same result.
    """

    def __init__(self, filled: dict[Partition, int], save: Callable[[], None]) -> None:
        self._filled = filled
        self._save = save
        self._next_save_s = time.monotonic() + SAVE_EVERY_S

    @override
    def abandon(self) -> None:
        raise AssertionError("a batch of a fill was abandoned")

    @override
    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        self._filled.update(offsets_in(end).next)
        if time.monotonic() >= self._next_save_s:
            self._save()
            self._next_save_s = time.monotonic() + SAVE_EVERY_S
