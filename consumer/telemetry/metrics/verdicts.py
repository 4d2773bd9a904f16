"""Metrics of verdicts and dead letters."""

from collections import Counter as Tallied
from collections.abc import Mapping
from typing import Final, get_args

from prometheus_client import Counter

from consumer.kafka.sink.record_times import RecordTimeMoved
from consumer.kafka.source.arrivals import RecordTimeBehind
from consumer.model.article import ExtractionOutcome, Reason, TimeFault
from consumer.model.hooks import Hooks
from consumer.model.verdict import Outcome
from consumer.pipeline.arrivals import RecordTimeReplaced
from consumer.pipeline.batches import BatchCommitted, BatchMeasured
from consumer.telemetry.metrics.drift import DUPLICATES
from consumer.telemetry.metrics.instruments import Instruments, Label, Measure, MetricGroup, reaction
from consumer.telemetry.source_names import NONE, OTHER, SourceNames

_REASONS: Final = frozenset(map(str, Reason))
_OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
_OUTCOME: Final = Label("outcome", _OUTCOMES)

ARTICLES: Final = Measure("dupwatch_articles_total", "counter", "Articles judged, by outcome.", "articles", (_OUTCOME,))
SOURCE_ARTICLES: Final = Measure(
    "dupwatch_source_articles_total",
    "counter",
    "Articles judged, by source and outcome.",
    "articles",
    (
        Label("source", (NONE, OTHER), "the sources in `[rules]`, then the first others, up to `http.sources_max`"),
        _OUTCOME,
    ),
)
DEAD_LETTERS: Final = Measure(
    "dupwatch_dead_letters_total",
    "counter",
    "Records that could not be judged, by reason.",
    "records",
    (Label("reason", (*sorted(map(str, Reason)), OTHER)),),
)
REPEATED: Final = Measure(
    "dupwatch_verdicts_repeated_total",
    "counter",
    "Versions that had been judged before and got the same verdict again.",
    "articles",
)
RETURNED: Final = Measure(
    "dupwatch_articles_returned_total",
    "counter",
    "Versions whose content is in force again after it was replaced or retracted.",
    "articles",
)
STRETCHES_LIMITED: Final = Measure(
    "dupwatch_stretches_limited_total",
    "counter",
    "Deliveries of content that came back more often than `judge.stretches_max`, and got its last verdict again.",
    "articles",
)
TRUNCATED: Final = Measure(
    "dupwatch_verdicts_truncated_total", "counter", "Versions whose search was cut short by a limit.", "articles"
)
WITHOUT_KEYWORDS: Final = Measure(
    "dupwatch_articles_without_keywords_total",
    "counter",
    "Versions that match nothing: they have no characters or, in schemes that need keywords, no keywords.",
    "articles",
)
SEEN_BEFORE: Final = Measure(
    "dupwatch_seen_before_total",
    "counter",
    "Articles whose text came before the window began, under any id; only with `judge.seen_days`.",
    "articles",
)
WITH_PARTS: Final = Measure(
    "dupwatch_with_parts_total",
    "counter",
    "Articles that share a long stretch with an earlier one; only with `judge.parts`.",
    "articles",
)
ENDED_BEFORE: Final = Measure(
    "dupwatch_ended_before_total",
    "counter",
    "Articles kept although they repeat one with another id, because the earlier article was retracted or replaced.",
    "articles",
)
NEAR_MISSES: Final = Measure(
    "dupwatch_near_misses_total",
    "counter",
    "Kept articles for which a near miss was sent, a pair just under the threshold; only with `kafka.near_miss_share`.",
    "articles",
)
COMMON_ANCHORS: Final = Measure(
    "dupwatch_common_anchors_total",
    "counter",
    "Anchors without a posting, because many articles have them; only with `judge.parts`.",
    "anchors",
)
PART_ROW_READS: Final = Measure(
    "dupwatch_part_row_reads_total", "counter", "Rows of anchors read; only with `judge.parts`.", "rows"
)
PART_POSTINGS_READ: Final = Measure(
    "dupwatch_part_postings_read_total", "counter", "Postings in the rows of anchors read.", "postings"
)
TIMES_REPLACED: Final = Measure(
    "dupwatch_record_times_replaced_total",
    "counter",
    "Records with a missing or impossible time, which was replaced by the time of reading.",
    "records",
)
TIMES_MOVED: Final = Measure(
    "dupwatch_record_times_moved_total",
    "counter",
    "Dead letters and records in `PREFIX.unique` with a time that no topic accepts; a header has the time instead.",
    "messages",
)
TIMES_BEHIND: Final = Measure(
    "dupwatch_record_times_behind_total",
    "counter",
    "Records with a time more than `kafka.behind_s_max` before the highest arrival of their partition. They get "
    "that arrival.",
    "records",
)
HEADERS_LOST: Final = Measure(
    "dupwatch_records_headers_lost_total",
    "counter",
    "Records with headers that the Kafka client cannot copy unchanged.",
    "records",
)
TIMES_UNREAD: Final = Measure(
    "dupwatch_published_at_unread_total",
    "counter",
    "Articles judged without their `published_at`, because it could not be read.",
    "articles",
    (Label("reason", tuple(sorted(map(str, TimeFault)))),),
)
PAGES: Final = Measure(
    "dupwatch_pages_total",
    "counter",
    "Web pages judged, by what was extracted.",
    "articles",
    (Label("extracted", tuple(sorted(map(str, ExtractionOutcome)))),),
)
WITHOUT_TEXT: Final = Measure(
    "dupwatch_without_text_total",
    "counter",
    "Articles judged as empty, because their markup has no text; only with `source.body_format` html or article.",
    "articles",
)
GROUP: Final = MetricGroup(
    "Verdicts and dead letters",
    (
        ARTICLES, DUPLICATES, SOURCE_ARTICLES, DEAD_LETTERS, REPEATED, RETURNED, STRETCHES_LIMITED, TRUNCATED,
        WITHOUT_KEYWORDS, SEEN_BEFORE,
        WITH_PARTS, ENDED_BEFORE, NEAR_MISSES, COMMON_ANCHORS, PART_ROW_READS, PART_POSTINGS_READ, TIMES_REPLACED,
        TIMES_MOVED, TIMES_BEHIND, HEADERS_LOST, TIMES_UNREAD, PAGES, WITHOUT_TEXT,
    ),
)  # fmt: skip
REACTIONS: Final = (
    reaction(TIMES_REPLACED, RecordTimeReplaced),
    reaction(TIMES_BEHIND, RecordTimeBehind),
    reaction(TIMES_MOVED, RecordTimeMoved),
    reaction(HEADERS_LOST, BatchMeasured, lambda batch: batch.headers_lost),
    reaction(WITHOUT_TEXT, BatchMeasured, lambda batch: batch.without_text),
)
TALLIED: Final[Mapping[str, Measure]] = {
    "replays": REPEATED,
    "returned": RETURNED,
    "stretches_limited": STRETCHES_LIMITED,
    "truncated": TRUNCATED,
    "without_keywords": WITHOUT_KEYWORDS,
    "seen_before": SEEN_BEFORE,
    "with_parts": WITH_PARTS,
    "ended_before": ENDED_BEFORE,
    "near_misses": NEAR_MISSES,
    "common_anchors": COMMON_ANCHORS,
    "part_row_reads": PART_ROW_READS,
    "part_postings_read": PART_POSTINGS_READ,
}
"""Metrics that are fields of the detector's tally."""


class VerdictMetrics:
    """Counts of articles, dead letters, and faults of records. Only one thread may report batches."""

    def __init__(self, instruments: Instruments, names: SourceNames) -> None:
        articles = instruments.counter(ARTICLES)
        # Every batch needs these counters, so look them up only once.
        self._articles = {outcome: articles.labels(outcome) for outcome in _OUTCOMES}
        self._dead_letters = instruments.counter(DEAD_LETTERS)
        self._names = names
        self._source_articles = instruments.counter(SOURCE_ARTICLES)
        self._sources: dict[str, Mapping[Outcome, Counter]] = {}
        for source in names.labels:
            self._source(source)
        self._times_unread = instruments.counter(TIMES_UNREAD)
        self._pages = instruments.counter(PAGES)

    def listen(self, hooks: Hooks) -> None:
        """Count batches from now on."""
        hooks.on(BatchCommitted, self._count_verdicts)
        hooks.on(BatchMeasured, self._count_articles)

    def _count_verdicts(self, batch: BatchCommitted) -> None:
        for outcome, articles in Tallied(verdict.outcome for verdict in batch.verdicts).items():
            self._articles[outcome].inc(articles)
        for letter in batch.letters:
            self._dead_letters.labels(letter.reason if letter.reason in _REASONS else OTHER).inc()

    def _count_articles(self, batch: BatchMeasured) -> None:
        for fault, articles in batch.time_faults.items():
            self._times_unread.labels(fault).inc(articles)
        for extracted, articles in batch.pages.items():
            self._pages.labels(extracted).inc(articles)
        for (source, outcome), articles in Tallied(batch.outcomes).items():
            self._source(self._names.label(source))[outcome].inc(articles)

    def _source(self, source: str) -> Mapping[Outcome, Counter]:
        """Return the counters of a source by outcome. The first article creates all of them."""
        if source not in self._sources:
            self._sources[source] = {outcome: self._source_articles.labels(source, outcome) for outcome in _OUTCOMES}
        return self._sources[source]
