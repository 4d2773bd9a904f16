"""Computes the threshold report from the reviews: first for all pairs, then for each source with enough reviews."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from consumer.console.intake.cached_result import CachedResult
from consumer.evaluation.review_figures import ReviewFigures, figures, sources_chosen
from consumer.evaluation.reviewed_pairs import ReportedCopies, ReviewedPair
from consumer.judge.settings import JudgeSettings
from consumer.reviews.database import Database
from consumer.reviews.pairs.reports import similarities
from consumer.reviews.pairs.reviewed_pairs import (
    PairCount,
    TooManyCombinations,
    count_unverified,
    pair_counts,
    reviews_by_source,
)

PRECISION: Final = 0.995
"""The default target precision, as in ``dupwatch evaluate``."""


class ReviewSnapshot(NamedTuple):
    """The figures of the reviews at ``at_ms``.

    ``overall`` is None if no pair with a similarity has been decided, or if the pairs differ in too many ways
    (``is_too_much``, see ``TooManyCombinations``). ``is_whole``: the figures of sources are computed as well.
    ``open`` counts the undecided pairs, ``without_similarity`` the decided pairs that the figures leave out.
    """

    at_ms: int
    overall: ReviewFigures | None
    sources: tuple[ReviewFigures, ...] = ()
    sources_left_out: int = 0
    without_similarity: int = 0
    reported: ReportedCopies = ReportedCopies()
    open: int = 0
    is_too_much: bool = False
    is_whole: bool = True


def cached_evaluation(
    database: Database, judging: JudgeSettings | None, now_ms: Callable[[], int]
) -> CachedResult[ReviewSnapshot] | None:
    """Return the cached report, or None if the judge settings are unknown or measure no similarity (plain SimHash)."""
    if judging is None or not judging.verify:
        return None
    return CachedResult("evaluation", lambda: evaluation_of(database, judging, now_ms))


def evaluation_of(database: Database, judging: JudgeSettings, now_ms: Callable[[], int]) -> Iterator[ReviewSnapshot]:
    """Yield the report, first without sources, then with them. Raises ``DatabaseUnavailable``.

    If ``overall`` is None, only one report is yielded.
    """
    at_ms = now_ms()
    try:
        with database.read_connection() as connection:
            counts = pair_counts(connection)
            unverified = count_unverified(connection)
            reported = ReportedCopies(tuple(similarities(connection)))
    except TooManyCombinations:
        yield ReviewSnapshot(at_ms, None, is_too_much=True)
        return
    if not any(each.decision for each in counts):
        open_pairs = sum(each.pairs for each in counts)
        yield ReviewSnapshot(at_ms, None, without_similarity=unverified, reported=reported, open=open_pairs)
        return
    overall = _figures(None, counts, judging)
    found = ReviewSnapshot(
        at_ms,
        overall,
        without_similarity=unverified,
        reported=reported,
        open=overall.counts.open,
        is_whole=False,
    )
    yield found
    sources, left_out = _sources(database, judging)
    yield found._replace(sources=sources, sources_left_out=left_out, is_whole=True)


def _sources(database: Database, judging: JudgeSettings) -> tuple[tuple[ReviewFigures, ...], int]:
    with database.read_connection() as connection:
        reviewed = reviews_by_source(connection)
        chosen = sources_chosen({source.name: source.reviews for source in reviewed})
        ids = {source.name: source.source_id for source in reviewed}
        counts = {name: pair_counts(connection, ids[name]) for name in chosen.names}
    return tuple(_figures(name, of_source, judging) for name, of_source in counts.items()), chosen.left_out


def _figures(source: str | None, counts: Sequence[PairCount], judging: JudgeSettings) -> ReviewFigures:
    current = judging.thresholds_for(*([] if source is None else [source])).similarity_min
    return figures(source, [_pair(each) for each in counts], current, PRECISION)


def _pair(count: PairCount) -> ReviewedPair:
    return ReviewedPair(
        kind=count.kind,
        similarity=count.similarity,
        right=None if count.decision is None else count.decision == "right",
        sampled_in=count.sampled_in,
        arrived_ms=count.first_ms,
        pairs=count.pairs,
        last_ms=count.last_ms,
    )
