"""Metrics of floods of copies, and of changes in a feed's texts and their similarities."""

from collections import Counter as Tallied
from collections.abc import Mapping
from typing import Final, Literal, get_args

from consumer.judge.known_originals import FLOOD_COPIES_MIN
from consumer.model.histogram import COUNT_BOUNDS, SHARE_BOUNDS
from consumer.model.hooks import Hooks
from consumer.model.verdict import Verdict
from consumer.pipeline.batches import BatchCommitted, BatchMeasured
from consumer.telemetry.metrics.instruments import Instruments, Label, Measure, MetricGroup

Kind = Literal["copy", "near"]

_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_DISTANCES: Final = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32)

DUPLICATES: Final = Measure(
    "dupwatch_duplicates_total",
    "counter",
    "Duplicates. A 'copy' has the fingerprint of its original and similarity 1; all others are 'near'.",
    "articles",
    (Label("kind", _KINDS),),
)
FLOODS: Final = Measure(
    "dupwatch_floods_total",
    "counter",
    f"Originals of which this process has seen {FLOOD_COPIES_MIN} copies.",
    "floods",
)
FLOOD_COPIES: Final = Measure(
    "dupwatch_flood_copies_total",
    "counter",
    f"Copies in floods: of one original, the copies from number {FLOOD_COPIES_MIN} on.",
    "articles",
)
KNOWN_COPIES: Final = Measure(
    "dupwatch_known_copies_total",
    "counter",
    "Duplicates of a known original, settled without writing postings.",
    "articles",
)
KEYWORDS: Final = Measure(
    "dupwatch_article_keywords", "histogram", "Distinct keywords of an article.", "keywords", bounds=COUNT_BOUNDS
)
DUPLICATE_SIMILARITY: Final = Measure(
    "dupwatch_duplicate_similarity_ratio",
    "histogram",
    "Similarity of a duplicate to its original.",
    "ratio",
    bounds=SHARE_BOUNDS,
)
DUPLICATE_DISTANCE: Final = Measure(
    "dupwatch_duplicate_distance",
    "histogram",
    "Distance of a duplicate from its original: the number of fingerprint bits that differ.",
    "distance in bits",
    bounds=_DISTANCES,
)
COMPARED_SIMILARITY: Final = Measure(
    "dupwatch_compared_similarity_ratio",
    "histogram",
    "Similarity of each compared pair, near or not.",
    "ratio",
    bounds=SHARE_BOUNDS,
)
GROUP: Final = MetricGroup(
    "Floods and drift",
    (FLOODS, FLOOD_COPIES, KNOWN_COPIES, KEYWORDS, DUPLICATE_SIMILARITY, DUPLICATE_DISTANCE, COMPARED_SIMILARITY),
)
TALLIED: Final[Mapping[str, Measure]] = {
    "floods": FLOODS,
    "flood_copies": FLOOD_COPIES,
    "known_copies": KNOWN_COPIES,
    "similarities": COMPARED_SIMILARITY,
}
"""Metrics that are fields of the detector's tally."""


class DriftMetrics:
    """Counts of duplicates by kind, and distributions of keywords, similarities and distances."""

    def __init__(self, instruments: Instruments) -> None:
        duplicates = instruments.counter(DUPLICATES)
        self._duplicates = {kind: duplicates.labels(kind) for kind in _KINDS}
        self._similarity = instruments.distribution(DUPLICATE_SIMILARITY)
        self._distance = instruments.distribution(DUPLICATE_DISTANCE)
        self._keywords = instruments.distribution(KEYWORDS)

    def listen(self, hooks: Hooks) -> None:
        """Count batches from now on."""
        hooks.on(BatchCommitted, self._count_duplicates)
        hooks.on(BatchMeasured, lambda batch: self._keywords.add(batch.keyword_counts.tolist()))

    def _count_duplicates(self, batch: BatchCommitted) -> None:
        duplicates = [verdict for verdict in batch.verdicts if verdict.outcome == "duplicate"]
        for kind, articles in Tallied(map(_kind, duplicates)).items():
            self._duplicates[kind].inc(articles)
        self._similarity.add(flag.similarity for flag in duplicates if flag.similarity is not None)
        self._distance.add(flag.distance for flag in duplicates if flag.distance is not None)


def _kind(verdict: Verdict) -> Kind:
    return "copy" if verdict.distance == 0 and verdict.similarity == 1 else "near"
