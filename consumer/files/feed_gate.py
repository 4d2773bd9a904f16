"""The limit on dead letters of a run over a file or a stream.

A few bad records become dead letters. Many of them mean another format, another encoding or a wrong mapping: the run
ends with its own exit code, and says what the feed seems to be.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from consumer.decode.article import FieldMap
from consumer.decode.feed_format import Guess, Rejected, guess
from consumer.model.errors import TooManyDeadLetters
from consumer.model.ports import Rejection
from consumer.model.record import RawBatch
from consumer.pipeline.dead_letter_policy import Gate
from consumer.pipeline.poison_limit import PoisonLimit, Window, totals
from consumer.text.visible import cut

_SAMPLES_MAX: Final = 100
_OPENING_BYTES_MAX: Final = 64 * 1024
_DETAIL_CHARS_MAX: Final = 160


class FeedGate(Gate):
    """Admits batches until too many records of the feed are bad.

    A file can be read again, so the batch that crosses the limit is neither judged nor rejected: when the settings or
    the feed are corrected, the run resumes before it. A stream cannot, so its records are answered before the run ends.

    A feed that ends before it has enough records for the limit is refused if none of them is an article, or if its
    format shows that none can be. ``good_before`` counts articles of earlier runs over the same file.
    """

    def __init__(self, limit: PoisonLimit, fields: FieldMap, name: str, *, streams: bool, good_before: int = 0) -> None:
        self._limit = limit
        self._fields = fields
        self._name = name
        self._streams = streams
        self._resumes = good_before > 0
        self._good = good_before
        self._window: Window = ()
        self._records = 0
        self._opening: bytes | None = None
        self._samples: list[Rejection] = []
        self._refusal: TooManyDeadLetters | None = None

    @override
    def before_judging(self, batch: RawBatch, rejections: Sequence[Rejection]) -> None:
        """Count the batch. Raises ``TooManyDeadLetters`` if a file has too many."""
        if not batch.records:
            return
        if self._opening is None and not self._resumes:
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

    @override
    def after_commit(self) -> None:
        """Raise ``TooManyDeadLetters`` if a stream has too many: all that was read of it is answered now."""
        if self._refusal is not None:
            raise self._refusal

    @override
    def at_end(self) -> None:
        """Raise ``TooManyDeadLetters`` if a stream has ended without any article."""
        if self._streams and (refusal := self._refused_whole(None)) is not None:
            raise refusal

    def _refused_whole(self, line: int | None) -> TooManyDeadLetters | None:
        seen, bad = totals(self._window)
        if not self._records or bad <= self._limit.share_max * seen:
            return None
        found = self._guess()
        return (
            self._refused(line) if not self._good or (not self._resumes and found is not None and found.whole) else None
        )

    def _refused(self, line: int | None) -> TooManyDeadLetters:
        seen, bad = totals(self._window)
        ((reason, _),) = Counter(rejection.letter.reason for rejection in self._samples).most_common(1)
        first = next(rejection for rejection in self._samples if rejection.letter.reason == reason)
        found = self._guess()
        where = "" if line is None else f"; stopped {'after' if self._streams else 'before'} line {line}"
        why = (
            f"Line {first.record.line}: {cut(first.letter.detail, _DETAIL_CHARS_MAX)}. Correct the feed, or set"
            " source.poison_share_max=1 for dead letters"
            if found is None
            else found.sentence
        )
        return TooManyDeadLetters(
            f"{bad:,} of {seen:,} records of {self._name} cannot be judged ({reason}){where}. {why}"
        )

    def _guess(self) -> Guess | None:
        rejected = [Rejected(rejection.letter.reason, rejection.record.data) for rejection in self._samples]
        return guess(self._opening or b"", rejected, self._fields)
