"""Prints the flags of a feed and its faults."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console

from consumer.cli import render
from consumer.cli.render import plain
from consumer.files.source import FileSource
from consumer.model.article import TimeFault
from consumer.model.hooks import Hooks
from consumer.model.verdict import EndedBefore, Verdict
from consumer.pipeline.arrivals import RecordTimeReplaced
from consumer.pipeline.batches import BatchCommitted, BatchMeasured
from consumer.store_tools.inspection import titles
from storage.interface import Store

_HELP = {
    TimeFault.NO_ZONE: "set source.published_at_zone, for example to +08:00",
    TimeFault.NO_UNIT: "set source.published_at_unit to s, ms, us or ns",
}


class FeedReport:
    """Counts of dead letters by reason, of times that were unreadable or replaced, and of markup without text."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.time_faults: Counter[TimeFault] = Counter()
        self.without_text = 0
        self.replaced_times = 0

    @property
    def dead_letters(self) -> int:
        """The number of dead letters."""
        return self.reasons.total()

    def listen(self, hooks: Hooks) -> None:
        """Count events from now on."""
        hooks.on(BatchMeasured, self._measured)
        hooks.on(RecordTimeReplaced, self._replaced)
        hooks.on(BatchCommitted, lambda batch: self.reasons.update(letter.reason for letter in batch.letters))

    def _measured(self, batch: BatchMeasured) -> None:
        self.time_faults.update(batch.time_faults)
        self.without_text += batch.without_text

    def _replaced(self, _: RecordTimeReplaced) -> None:
        self.replaced_times += 1

    def lines(self) -> Iterator[str]:
        """Yield the lines below the summary table; none if there were no faults."""
        if self.reasons:
            yield f"Dead letters by reason: {_counts(self.reasons)}"
        if self.time_faults:
            yield f"Articles judged without their published_at: {_counts(self.time_faults)}"
            yield from (f"  {fault}: {_HELP[fault]}" for fault in _HELP if self.time_faults[fault])
        if self.without_text:
            yield f"Articles judged as empty, because their markup has no text: {self.without_text:,}"


def show_report(console: Console, report: FeedReport) -> None:
    """Print the faults of the feed, below the summary."""
    for line in report.lines():
        console.print(line)


def show_blank_lines(console: Console, source: FileSource) -> None:
    """Print how many blank lines of a file or stream were skipped, if any were."""
    lines = source.blank_lines
    if lines:
        console.print(f"Skipped blank lines in {plain(source.name)}: {lines:,}.")


def _counts(counts: Counter[str] | Counter[TimeFault]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common())


def show_flags(console: Console, store: Store, verdicts: Sequence[Verdict]) -> None:
    """Print the duplicates among the verdicts, with titles from the store.

    Also print unique articles that share a part or repeat an ended text, and all articles that repeat known texts.
    """
    flags = [verdict for verdict in verdicts if verdict.outcome == "duplicate"]
    for verdict, (title, other_title) in zip(flags, titles(store, flags), strict=True):
        console.print(render.flag_lines(verdict, title, other_title))
    for verdict in verdicts:
        if verdict.outcome == "unique" and isinstance(verdict.parts, tuple):
            console.print(render.part_lines(verdict.id, verdict.parts))
        if isinstance(verdict.ended_before, EndedBefore):
            console.print(render.ended_before_line(verdict.id, verdict.ended_before))
        if isinstance(verdict.banks, tuple):
            console.print(render.bank_lines(verdict.id, verdict.banks))
