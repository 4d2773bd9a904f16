"""The limit on dead letters of a run over a file or a stream.

Some bad records are dead letters. A feed of them is another format, another encoding or a wrong mapping: the run ends
with a code of its own, and says what the feed seems to be.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from consumer.decode.article import FieldMap
from consumer.decode.feed_format import Guess, Rejected, guess
from consumer.model.errors import TooManyDeadLetters
from consumer.model.ports import Rejection
from consumer.model.record import RawBatch
from consumer.pipeline.bad_record_limit import PoisonLimit, Window, totals

_SAMPLES_MAX: Final = 100
_OPENING_BYTES_MAX: Final = 64 * 1024
_DETAIL_CHARS_MAX: Final = 80


class FeedGate:
    """Lets a batch through while not too many records of the feed are bad.

    A file is read again, so the batch that crosses the limit is neither judged nor buried: once settings or feed are
    mended, the same run goes on before it. A stream gives its records once, so they are answered before the run ends.

    A feed that ends with fewer records than the limit asks for is refused where none of them is an article, or where
    its shape shows that they cannot be. ``good_before`` counts articles of earlier runs over the same file.
    """

    def __init__(self, limit: PoisonLimit, fields: FieldMap, name: str, *, streams: bool, good_before: int = 0) -> None:
        self._limit = limit
        self._fields = fields
        self._name = name
        self._streams = streams
        self._goes_on = good_before > 0
        self._good = good_before
        self._window: Window = ()
        self._records = 0
        self._opening: bytes | None = None
        self._samples: list[Rejection] = []
        self._refusal: TooManyDeadLetters | None = None

    def see(self, batch: RawBatch, rejections: Sequence[Rejection]) -> None:
        """Count a batch that is about to be judged. Raises ``TooManyDeadLetters`` where a file has too many."""
        if not batch.records:
            return
        if self._opening is None and not self._goes_on:
            self._opening = batch.records[0].data[:_OPENING_BYTES_MAX]
        self._samples = [*rejections[:_SAMPLES_MAX], *self._samples][:_SAMPLES_MAX]
        self._records += len(batch.records)
        self._good += len(batch.records) - len(rejections)
        self._window = self._limit.after(self._window, len(batch.records), len(rejections))
        if rejections and self._limit.exceeded(self._window):
            line = batch.records[-1].line if self._streams else batch.records[0].line
            self._refusal = self._refused(line)
        elif batch.last:
            self._refusal = self._refused_whole(batch.records[0].line)
        if self._refusal is not None and not self._streams:
            raise self._refusal

    def answered(self) -> None:
        """Raise ``TooManyDeadLetters`` where a stream has too many: what was read of it is answered now."""
        if self._refusal is not None:
            raise self._refusal

    def ended(self) -> None:
        """Raise ``TooManyDeadLetters`` where a stream that has ended had nothing to be judged."""
        if self._streams and (refusal := self._refused_whole(None)) is not None:
            raise refusal

    def _refused_whole(self, line: int | None) -> TooManyDeadLetters | None:
        seen, bad = totals(self._window)
        if not self._records or bad <= self._limit.share_max * seen:
            return None
        found = self._guess()
        return (
            self._refused(line) if not self._good or (not self._goes_on and found is not None and found.whole) else None
        )

    def _refused(self, line: int | None) -> TooManyDeadLetters:
        seen, bad = totals(self._window)
        ((reason, _),) = Counter(one.letter.reason for one in self._samples).most_common(1)
        first = next(one for one in self._samples if one.letter.reason == reason)
        found = self._guess()
        where = "" if line is None else f"; ended {'behind' if self._streams else 'before'} line {line}"
        why = (
            f"Line {first.record.line}: {first.letter.detail[:_DETAIL_CHARS_MAX]}. Mend the feed, or raise"
            " source.poison_share_max"
            if found is None
            else found.sentence
        )
        return TooManyDeadLetters(
            f"{bad:,} of {seen:,} records of {self._name} cannot be judged ({reason}){where}. {why}"
        )

    def _guess(self) -> Guess | None:
        rejected = [Rejected(one.letter.reason, one.record.data) for one in self._samples]
        return guess(self._opening or b"", rejected, self._fields)
