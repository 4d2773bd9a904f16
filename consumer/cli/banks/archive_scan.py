"""Scans of an archive for items of banks."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import msgspec

from consumer.banks.bank import Banks
from consumer.cli import render
from consumer.cli.banks.comparison import BankComparison
from consumer.cli.banks.store_scan import show_limited
from consumer.cli.results import results, write_json
from consumer.cli.runs.feed_report import show_blank_lines
from consumer.cli.texts import no_valid_article
from consumer.config.config import Config
from consumer.judge.events import mentions_of
from consumer.model.article import Article
from consumer.model.errors import BadRecord
from consumer.model.record import RawRecord
from consumer.wiring.components import feed_file, file_decoder


@dataclass(slots=True)
class _Counts:
    """The counts of a scan, and the fault of the first invalid record. ``limited`` is explained in ``ScanCounts``."""

    records: int = 0
    repeating: int = 0
    limited: int = 0
    retractions: int = 0
    invalid: int = 0
    first_fault: str = ""


class _ArchiveScan:
    """Compares the articles of an archive with items of banks, and adds the results to counts."""

    def __init__(self, config: Config, items: Banks, counts: _Counts) -> None:
        self._decode = file_decoder(config)
        self._comparison = BankComparison(config, items)
        self._counts = counts

    def lines(self, records: Sequence[RawRecord]) -> list[dict[str, object]]:
        """Return a line for each of these records that repeats an item."""
        numbered = [(record.line, article) for record in records if (article := self._article(record)) is not None]
        if not numbered:
            return []
        found = self._comparison.matches([article for _, article in numbered])
        self._counts.limited += found.limited
        self._counts.repeating += sum(map(bool, found.matches))
        return [
            {"id": article.id, "line": line, "banks": msgspec.to_builtins(mentions_of(matches))}
            for (line, article), matches in zip(numbered, found.matches, strict=True)
            if matches
        ]

    def _article(self, record: RawRecord) -> Article | None:
        self._counts.records += 1
        try:
            article = self._decode(record)
        except BadRecord as error:
            self._counts.invalid += 1
            self._counts.first_fault = self._counts.first_fault or f"line {record.line}: {error.detail}"
            return None
        self._counts.retractions += article.body is None
        return None if article.body is None else article


def scan_archive(config: Config, items: Banks, source: str) -> None:
    """Write a line for each article of an archive that repeats an item.

    Raises ``SourceError`` if the archive cannot be read, or if all its records are invalid.
    """
    counts = _Counts()
    scan = _ArchiveScan(config, items, counts)
    errors = render.console(stderr=True)
    with (
        closing(feed_file(config, source)) as archive,
        render.progress(errors) as progress,
        results(),
    ):
        update = render.follow(progress, "comparing", archive.progress)
        for batch in archive.batches():
            for line in scan.lines(batch.records):
                write_json(line)
            update()
    _show_counts(counts)
    show_blank_lines(errors, archive)
    if counts.records and counts.invalid == counts.records:
        raise no_valid_article(source, counts.records, counts.first_fault)


def _show_counts(counts: _Counts) -> None:
    errors = render.console(stderr=True)
    articles = counts.records - counts.retractions - counts.invalid
    errors.print(f"Compared articles: {articles:,}. Of these, {counts.repeating:,} repeat an item.")
    if counts.invalid:
        errors.print(f"Invalid records: {counts.invalid:,}. The first: {render.plain(counts.first_fault)}")
    if counts.retractions:
        errors.print(f"Retractions, which have no text: {counts.retractions:,}.")
    show_limited(counts.limited)
