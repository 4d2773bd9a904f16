"""Metrics of the cost of judging. The detector's tally counts; this module only describes the counts."""

from collections.abc import Mapping
from typing import Final

from consumer.model.histogram import COUNT_BOUNDS
from consumer.telemetry.metrics.instruments import Measure, MetricGroup

CANDIDATES: Final = Measure(
    "dupwatch_article_candidates",
    "histogram",
    "Earlier versions that share a key with an article and may be near it.",
    "candidates",
    bounds=COUNT_BOUNDS,
)
SUSPECTS: Final = Measure(
    "dupwatch_article_suspects",
    "histogram",
    "Candidates whose fingerprint is farther than max_distance from the article's, so that only the sketch can decide.",
    "candidates",
    bounds=COUNT_BOUNDS,
)
VERIFICATIONS: Final = Measure(
    "dupwatch_article_verifications",
    "histogram",
    "Records that an article was compared with in one batch of reads.",
    "records",
    bounds=COUNT_BOUNDS,
)
ROW_READS: Final = Measure("dupwatch_posting_row_reads_total", "counter", "Posting rows read.", "rows")
POSTINGS_READ: Final = Measure("dupwatch_postings_read_total", "counter", "Postings in the rows read.", "postings")
SKETCH_READS: Final = Measure(
    "dupwatch_sketch_reads_total",
    "counter",
    "Sketches of candidates that the store returned without reading the candidates.",
    "sketches",
)
RECORD_READS: Final = Measure("dupwatch_record_reads_total", "counter", "Records read from the store.", "records")
LOST_COMPARE_AND_SETS: Final = Measure(
    "dupwatch_lost_compare_and_sets_total",
    "counter",
    "Verdicts that another consumer had already written.",
    "verdicts",
)
CROWDED_ROWS: Final = Measure(
    "dupwatch_crowded_row_reads_total",
    "counter",
    "Rows with more than store.row_postings_max postings, which a look-up read only in part.",
    "rows",
)
CROWDED_ARTICLES: Final = Measure(
    "dupwatch_crowded_articles_total",
    "counter",
    "Articles with a crowded fingerprint, whose search among many candidates was cut short.",
    "articles",
)
GROUP: Final = MetricGroup(
    "Cost of judging",
    (
        CANDIDATES, SUSPECTS, VERIFICATIONS, ROW_READS, POSTINGS_READ, SKETCH_READS, RECORD_READS,
        LOST_COMPARE_AND_SETS, CROWDED_ROWS, CROWDED_ARTICLES,
    ),
)  # fmt: skip
TALLIED: Final[Mapping[str, Measure]] = {
    "candidates": CANDIDATES,
    "suspects": SUSPECTS,
    "verifications": VERIFICATIONS,
    "row_reads": ROW_READS,
    "postings_read": POSTINGS_READ,
    "sketch_reads": SKETCH_READS,
    "record_reads": RECORD_READS,
    "lost_compare_and_sets": LOST_COMPARE_AND_SETS,
    "crowded_rows": CROWDED_ROWS,
    "crowded_articles": CROWDED_ARTICLES,
}
"""Metrics that are fields of the detector's tally."""
