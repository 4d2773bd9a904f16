"""Opens files and standard streams as sources and sinks of runs."""

import hashlib
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from typing_extensions import override

from consumer.decode.article import FieldMap
from consumer.decode.feed_format import FormatGuess, RejectedRecord, framing, guess, guess_of_table
from consumer.files.checkpoint import Checkpoint, FileJournal, began_ms
from consumer.files.distinct_files import check_distinct
from consumer.files.letters import (
    DEAD_LETTERS_SUFFIX,
    WHOLE_LETTERS,
    FileDeadLetters,
    FileLetterReader,
    dead_letters_path,
)
from consumer.files.line_file import check_suffix
from consumer.files.lines import Position
from consumer.files.sinks import WHOLE_VERDICTS, FileSink, NullSink, StreamDeadLetters, StreamSink
from consumer.files.source import STREAM, FileSource
from consumer.files.tables import FileForm
from consumer.model.errors import ConfigError, SourceError, TooManyDeadLetters
from consumer.model.letter import LetterReader
from consumer.model.ports import Emit, OutputSizes, Rejection
from consumer.model.record import RawBatch
from consumer.pipeline.arrivals import ArchiveArrivals, Arrivals, FileArrivals, StreamArrivals
from consumer.pipeline.dead_letter_policy import Gate, PoisonLimit, Window, totals
from consumer.pipeline.feed_kind import OpenedSink, OpenedSource, Outputs, SinkArguments, SourceArguments, Streams
from consumer.pipeline.journal import Journal, NoJournal
from consumer.text.visible import cut
from storage.clock import now_ms
from storage.files import WriteOptions

_SAMPLES_MAX: Final = 100
_FRAMED_RECORDS_MIN: Final = 8
"""The number of records at the beginning of a feed that show whether it is JSON within another format.

Fewer are not enough: a program may write a line or two of its own log before the first article.
"""
_OPENING_BYTES_MAX: Final = 64 * 1024
_DETAIL_CHARS_MAX: Final = 160
_FIRST_LINE_BYTES_MAX: Final = 4096
_FEED_NAME_CHARS_MAX: Final = 16
_FEED_DIGEST_BYTES: Final = 4
"""The length of the digest that distinguishes files with the same name in the origins of records."""


class FeedGate(Gate):
    """A gate that admits batches until too many records of the feed are bad.

    A few bad records become dead letters. Many of them mean another format, another encoding or a wrong mapping: the
    run ends with a separate exit code, and says what the feed seems to be.

    A file can be read again, so the batch that exceeds the limit is neither judged nor rejected: once the settings or
    the feed are corrected, the run resumes before it. A stream cannot be read again, so its records are answered before
    the run ends.

    A feed may end before it has enough records for the limit. It is refused if its share of bad records exceeds the
    limit, and either none of its records is an article or its format shows that none can be. A feed whose first records
    are a log or an event stream is refused after them.
    ``good_before`` counts articles of earlier runs over the same file. ``is_stream`` says whether the feed is a stream.
    """

    def __init__(
        self, limit: PoisonLimit, fields: FieldMap, name: str, *, is_stream: bool, good_before: int = 0
    ) -> None:
        self._limit = limit
        self._fields = fields
        self._name = name
        self._is_stream = is_stream
        self._resumes = good_before > 0
        self._good = good_before
        self._window: Window = ()
        self._records = 0
        self._opening: bytes | None = None
        self._samples: list[Rejection] = []
        self._refusal: TooManyDeadLetters | None = None

    @override
    def before_judging(self, batch: RawBatch, rejections: Sequence[Rejection]) -> None:
        """Count the batch. Raises ``TooManyDeadLetters`` if a file has too many bad records."""
        if not batch.records:
            return
        if self._opening is None and not self._resumes:
            self._opening = batch.records[0].data[:_OPENING_BYTES_MAX]
        self._samples = [*rejections[:_SAMPLES_MAX], *self._samples][:_SAMPLES_MAX]
        self._records += len(batch.records)
        self._good += len(batch.records) - len(rejections)
        self._window = self._limit.advance(self._window, len(batch.records), len(rejections))
        reaches_min = self._records - len(batch.records) < _FRAMED_RECORDS_MIN <= self._records
        if rejections and (self._limit.is_exceeded(self._window) or (reaches_min and self._is_framed())):
            line = batch.records[-1].line if self._is_stream else batch.records[0].line
            self._refusal = self._error(line)
        elif batch.last:
            self._refusal = self._whole_feed_error(batch.records[0].line)
        if self._refusal is not None and not self._is_stream:
            raise self._refusal

    @override
    def after_commit(self) -> None:
        """Raise ``TooManyDeadLetters`` if a stream has too many bad records; its records so far have been answered."""
        if self._refusal is not None:
            raise self._refusal

    @override
    def at_end(self) -> None:
        """Raise ``TooManyDeadLetters`` if a stream is refused at its end; the class says when."""
        if self._is_stream and (refusal := self._whole_feed_error(None)) is not None:
            raise refusal

    def _is_framed(self) -> bool:
        """Return whether the records so far show that the feed is JSON within another format.

        Always False after an article, for a table, and without a limit.
        """
        if self._good or self._is_table() or self._limit.share_max == 1:
            return False
        return framing(self._rejected_records()) is not None

    def _whole_feed_error(self, line: int | None) -> TooManyDeadLetters | None:
        seen, bad = totals(self._window)
        if not self._records or bad <= self._limit.share_max * seen:
            return None
        guessed = self._guess()
        has_no_articles = not self._good or (not self._resumes and guessed is not None and guessed.whole)
        return self._error(line) if has_no_articles else None

    def _error(self, line: int | None) -> TooManyDeadLetters:
        seen, bad = totals(self._window)
        ((reason, _),) = Counter(rejection.letter.reason for rejection in self._samples).most_common(1)
        first = next(rejection for rejection in self._samples if rejection.letter.reason == reason)
        guessed = self._guess()
        where = "" if line is None else f"; stopped {'after' if self._is_stream else 'before'} line {line}"
        why = (
            f"Line {first.record.line}: {cut(first.letter.detail, _DETAIL_CHARS_MAX)}. Correct the feed, or set"
            " source.poison_share_max=1 to turn such records into dead letters"
            if guessed is None
            else guessed.sentence
        )
        return TooManyDeadLetters(
            f"{bad:,} of {seen:,} records of {self._name} cannot be judged ({reason}){where}. {why}"
        )

    def _guess(self) -> FormatGuess | None:
        if self._is_table():
            return guess_of_table(self._rejected_records())
        return guess(self._opening or b"", self._rejected_records(), self._fields)

    def _is_table(self) -> bool:
        return any(rejection.record.table is not None for rejection in self._samples)

    def _rejected_records(self) -> list[RejectedRecord]:
        return [RejectedRecord(rejection.letter.reason, rejection.record.data) for rejection in self._samples]


class FileOptions(NamedTuple):
    """The options of files and standard input as sources.

    ``checkpoint`` is the file that keeps progress, or None for a run that cannot be resumed; ``before`` is its content.
    ``settings``, ``emit`` and ``store`` are saved there too. ``limit`` ends a run with too many bad records, and
    ``fields`` help to explain why they are bad. ``form`` is the format of the file. Articles of an ``archive`` arrived
    when they were published.
    """

    checkpoint: Path | None = None
    before: Checkpoint | None = None
    settings: str = ""
    emit: Emit = "all"
    store: str | None = None
    writing: WriteOptions = WriteOptions(durable=True)
    limit: PoisonLimit = PoisonLimit(0.5, 100)
    fields: FieldMap = FieldMap()
    form: FileForm = FileForm()
    archive: bool = False


class Continuation(NamedTuple):
    """The continuation of a sink's files by a run that can be resumed.

    ``marks`` say how much of the files to keep, or None if the run begins with empty files. Then ``why_not_append`` is
    the clause of the error that says why the run cannot append to a file that is not empty. A sink that is opened
    without a continuation keeps all whole lines: no run cuts it back.
    """

    marks: OutputSizes | None
    why_not_append: str

    @property
    def verdicts_bytes(self) -> int | None:
        """How many bytes of the file of verdicts to keep."""
        return None if self.marks is None else self.marks.verdicts_bytes

    @property
    def dead_letters_bytes(self) -> int | None:
        """How many bytes of the dead letters to keep."""
        return None if self.marks is None else self.marks.dead_letters_bytes


def open_source(url: str, opening: SourceArguments) -> OpenedSource[FileSource]:
    """Open a file at the position of its checkpoint, or standard input. Raises ``ConfigError`` and ``SourceError``."""
    options = opening.own_options(FileOptions)
    before = options.before
    path = None if url == STREAM else Path(url)
    source = FileSource(path, opening.limits, Position() if before is None else before.position, options.form)
    try:
        started_ms = began_ms(before, now_ms())
        arrivals = _arrivals(url, source, started_ms, opening, options)
    except (ConfigError, SourceError):
        source.close()
        raise
    gate = FeedGate(
        options.limit,
        options.fields,
        source.name,
        is_stream=source.is_stream,
        good_before=0 if before is None else before.counts.articles,
    )

    def journal(outputs: Outputs) -> Journal:
        if source.is_stream or options.checkpoint is None:
            return NoJournal()
        first = Checkpoint(source=url, began_ms=started_ms, settings=options.settings) if before is None else before
        current = msgspec.structs.replace(
            first, source=url, began_ms=started_ms, finished=False, emit=options.emit, store=options.store
        )
        return FileJournal(options.checkpoint, current, source.beginning, outputs, options.writing)

    return OpenedSource(source, source.name, arrivals, gate, journal)


def _arrivals(
    url: str, source: FileSource, started_ms: int, opening: SourceArguments, options: FileOptions
) -> Arrivals:
    if source.is_stream:
        if options.archive:
            raise ConfigError("an archive is a file that can be read again; name one instead of a stream")
        return StreamArrivals(now_ms)
    identity = _feed_identity(url, source)
    feed = f"{Path(url).name[:_FEED_NAME_CHARS_MAX]}@{identity[:_FEED_DIGEST_BYTES].hex()}"
    if options.archive:
        return ArchiveArrivals(started_ms, identity, feed, opening.hooks)
    return FileArrivals(started_ms, identity, feed)


def _feed_identity(url: str, source: FileSource) -> bytes:
    """Return a digest of a feed's path and first line, which stays the same when lines are appended.

    Every export of a table has the same header, so for a table the first two lines count.
    """
    lines = source.beginning(_FIRST_LINE_BYTES_MAX).split(b"\n", 2)
    first = b"\n".join(lines[: 2 if source.is_table else 1])
    return hashlib.sha256(os.fsencode(Path(url).resolve()) + b"\0" + first).digest()


def open_file(url: str, opening: SinkArguments) -> OpenedSink:
    """Open a file for verdicts, and a file next to it for dead letters."""
    path, letters = Path(url), dead_letters_path(Path(url))
    continuation = opening.options_or_none(Continuation)
    if continuation is None:
        check_suffix(path, opening.output_name, gzip=False)
        check_distinct(None, {path: "the verdicts"}, opening.store)
        return OpenedSink(
            FileSink(path, WHOLE_VERDICTS, opening.writing, emit=opening.emit),
            lambda: FileDeadLetters(letters, WHOLE_LETTERS, opening.writing),
        )
    why_not, keep_bytes = continuation.why_not_append, continuation.dead_letters_bytes
    return OpenedSink(
        FileSink(path, continuation.verdicts_bytes, opening.writing, emit=opening.emit, why_not_append=why_not),
        lambda: FileDeadLetters(letters, keep_bytes, opening.writing, why_not_append=why_not),
    )


def open_stream(_url: str, opening: SinkArguments) -> OpenedSink:
    """Return sinks that write verdicts to standard output and dead letters to standard error."""
    streams = opening.streams or Streams(sys.stdout.buffer, sys.stderr.buffer)
    return OpenedSink(StreamSink(streams.out, emit=opening.emit), lambda: StreamDeadLetters(streams.err))


def open_nowhere(_url: str, _opening: SinkArguments) -> OpenedSink:
    """Return sinks that discard verdicts and dead letters."""
    sink = NullSink()
    return OpenedSink(sink, lambda: sink)


@contextmanager
def open_letters(url: str, _opening: SinkArguments) -> Iterator[LetterReader]:
    """Open the dead letters next to a file of verdicts, or a file of dead letters if ``url`` names one.

    Raises ``SourceError`` if there is no such file, and ``ConfigError`` for verdicts without dead letters.
    """
    yield FileLetterReader(_letters_path(Path(url)))


def _letters_path(path: Path) -> Path:
    if path.name.endswith(DEAD_LETTERS_SUFFIX):
        return path
    letters = dead_letters_path(path)
    try:
        exists, has_letters = path.exists(), letters.exists()
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from error
    if has_letters:
        return letters
    if exists:
        raise ConfigError(f"{path} has no dead letters: there is no {letters.name} next to it")
    raise SourceError(f"{path} does not exist, and neither does {letters.name} next to it; name an existing file")


def no_letters(_url: str, _opening: SinkArguments) -> AbstractContextManager[LetterReader]:
    """Raise ``ConfigError``, since neither a stream nor ``nowhere:`` can be read back."""
    raise ConfigError("name the dead letters: --sink FILE or --sink kafka://HOST:PORT/PREFIX")
