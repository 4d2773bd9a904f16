"""Reads the feed and the labelled pairs of ``dupwatch evaluate``."""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from consumer.cli import render
from consumer.cli.runs.feed_report import show_blank_lines
from consumer.config.config import Config
from consumer.evaluation.labelled_pairs import LabelledPair, PairsLine
from consumer.files.lines import Position
from consumer.files.source import FileSource
from consumer.model.article import Article
from consumer.model.errors import BadRecord, ConfigError, SourceError
from consumer.model.limits import ReadLimits
from consumer.wiring.components import feed_file, file_decoder

UNKNOWN_SHOWN_MAX: Final = 5
_PAIR_BYTES_MAX: Final = 1 << 16


def lines_of(path: Path) -> Iterator[PairsLine]:
    """Yield the lines of a file that are not blank. Raises ``SourceError`` if the file or a line cannot be read."""
    with closing(FileSource(path, ReadLimits(record_bytes_max=_PAIR_BYTES_MAX), Position())) as source:
        for batch in source.batches():
            for record in batch.records:
                if record.fault is not None:
                    raise SourceError(f"line {record.line} of {path}: {record.fault.detail}")
                yield PairsLine(record.line, record.data)
        show_blank_lines(render.console(stderr=True), source)


def articles_of(feed: str, config: Config, bad_records: Counter[str]) -> Iterator[list[Article]]:
    """Yield the articles and retractions of a feed in batches, with a progress bar. Count bad records by reason."""
    decode = file_decoder(config)
    console = render.console(stderr=True)
    with closing(feed_file(config, feed)) as source:
        with render.progress(console) as progress:
            update = render.follow(progress, "fingerprinting", source.progress)
            for batch in source.batches():
                articles = []
                for record in batch.records:
                    try:
                        articles.append(decode(record))
                    except BadRecord as fault:
                        bad_records[str(fault.reason)] += 1
                yield articles
                update()
        show_blank_lines(console, source)


def check_known(pairs: Sequence[LabelledPair], articles: Container[str]) -> None:
    """Raise ``ConfigError`` if the feed has no text for an id of the pairs."""
    unknown: dict[str, int] = {}
    for pair in pairs:
        for article_id in (pair.a, pair.b):
            if article_id not in articles:
                unknown.setdefault(article_id, pair.line)
    if unknown:
        shown = [f"{article_id!r} (line {line})" for article_id, line in list(unknown.items())[:UNKNOWN_SHOWN_MAX]]
        more = f" and {len(unknown) - len(shown)} more" if len(unknown) > len(shown) else ""
        raise ConfigError(
            f"the feed has no text for these ids of the pairs: {', '.join(shown)}{more}. Use the feed that was "
            "labelled, or remove these pairs"
        )


def skipped_sentences(bad_records: Counter[str], repeated_ids: int, left_out: int, repeated: int) -> Iterator[str]:
    """Yield a sentence on each kind of input that was skipped."""
    if bad_records:
        reasons = ", ".join(f"{reason} {count}" for reason, count in bad_records.most_common())
        yield f"Skipped invalid records in the feed: {bad_records.total():,} ({reasons})."
    if repeated_ids:
        yield f"Skipped articles with a repeated id: {repeated_ids:,}."
    if left_out:
        yield f"Ignored pairs with a label between --unique-below and --duplicate-from: {left_out:,}."
    if repeated:
        yield f"Ignored repeated pairs: {repeated:,}."
