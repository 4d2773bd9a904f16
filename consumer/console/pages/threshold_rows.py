"""Formats the figures of thresholds and of sources for the page of thresholds."""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from consumer.console.faults import N_
from consumer.console.i18n import Language
from consumer.evaluation.curves import Rate
from consumer.evaluation.review_figures import ReviewFigures, ReviewPoint, greatest_recall, whole_count
from consumer.evaluation.reviewer_line import MISTAKES_MIN

SHORT_TABLE_STEP: Final = 5
"""Percentage points between thresholds in the short table."""
_PLACES: Final = 3

ThresholdMark = Literal["now", "moved", "f1", "precision"]


@dataclass(frozen=True, slots=True)
class ThresholdTableInput:
    """The input of the table: all figures, two points to mark, and whether to show ``every`` threshold.

    ``at_precision`` is the point with the greatest recall at the target precision, or None if no point reaches that
    precision. ``moved`` is the point whose effect the page shows, or None.
    """

    language: Language
    figures: ReviewFigures
    at_precision: ReviewPoint | None
    moved: ReviewPoint | None
    every: bool


class ThresholdRow(NamedTuple):
    """A threshold in the table, compared with the current one. An unknown recall or F1 is ""."""

    threshold: str
    value: float
    precision: str
    precision_interval: str
    recall: str
    recall_interval: str
    f1: str
    flags_lost: str
    flags_gained: str
    marks: tuple[ThresholdMark, ...]


class SourceRow(NamedTuple):
    """A source in the table, at its configured threshold. ``line``: the lowest similarity that reviewers accept.

    An unknown recall is "". ``at_precision`` is the threshold with the greatest recall at the target precision, or ""
    if no threshold reaches that precision.
    """

    name: str
    reviews: int
    now: str
    precision_interval: str
    recall_interval: str
    line: "LineText"
    at_precision: str


class LineText(NamedTuple):
    """The lowest similarity that reviewers accept: a value with its interval, an upper or lower bound, or unknown."""

    kind: Literal["value", "most", "least", "any"]
    value: str = ""
    interval: str = ""


def threshold_rows(rows: ThresholdTableInput) -> list[ThresholdRow]:
    """Return the rows of the table: marked thresholds and multiples of 5 %, or all thresholds with ``rows.every``."""
    marked = [(point, _marks(rows, point)) for point in rows.figures.points]
    return [
        _row(rows.language, point, marks)
        for point, marks in marked
        if rows.every or marks or round(point.threshold * 100) % SHORT_TABLE_STEP == 0
    ]


def line_text(language: Language, figures: ReviewFigures) -> LineText:
    """Return the lowest similarity that reviewers accept; if its interval reaches 0 or 1, only the other bound."""
    line = figures.line
    if line.low <= 0 and line.high >= 1:
        return LineText("any")
    if line.low <= 0:
        return LineText("most", language.decimal(line.high, _PLACES))
    if line.high >= 1:
        return LineText("least", language.decimal(line.low, _PLACES))
    return LineText("value", language.decimal(line.value, _PLACES), _span(language, line.low, line.high))


def mistakes_text(language: Language, figures: ReviewFigures) -> tuple[str, str]:
    """Return the shares of decisions that contradict the line: *the same* below it, *different* above it."""
    line = figures.line
    return _mistakes(language, line.right_below), _mistakes(language, line.wrong_above)


def _mistakes(language: Language, share: float) -> str:
    # The fit never assumes a share below ``MISTAKES_MIN``.
    shown = f"{language.number(round(100 * share))}\u00a0%"
    return language.gettext(N_("at most %(share)s"), share=shown) if share <= MISTAKES_MIN else shown


def rate_text(language: Language, rate: Rate) -> str:
    """Return a rate, or a dash if there is nothing to count."""
    return "–" if rate.value is None else language.decimal(rate.value, _PLACES)


def interval_text(language: Language, rate: Rate) -> str:
    """Return the interval of a rate, or a dash if there is nothing to count."""
    return "–" if rate.value is None else _span(language, rate.low, rate.high)


def _row(language: Language, point: ReviewPoint, marks: tuple[ThresholdMark, ...]) -> ThresholdRow:
    return ThresholdRow(
        threshold=threshold_text(language, point.threshold),
        value=point.threshold,
        precision=rate_text(language, point.precision),
        precision_interval=interval_text(language, point.precision),
        recall="" if point.recall is None else rate_text(language, point.recall),
        recall_interval="" if point.recall is None else interval_text(language, point.recall),
        f1="" if point.f1 is None else language.decimal(point.f1, _PLACES),
        flags_lost=language.number(whole_count(point.change.gone)),
        flags_gained=language.number(whole_count(point.change.come)),
        marks=marks,
    )


def threshold_text(language: Language, threshold: float) -> str:
    """Return a threshold with at least two decimal places, and more if it has more."""
    return language.decimal(threshold, max(len(f"{threshold:g}".partition(".")[2]), 2))


def _marks(rows: ThresholdTableInput, point: ReviewPoint) -> tuple[ThresholdMark, ...]:
    marked: tuple[tuple[ThresholdMark, ReviewPoint | None], ...] = (
        ("moved", rows.moved),
        ("f1", rows.figures.best_f1),
        ("precision", rows.at_precision),
    )
    now: tuple[ThresholdMark, ...] = ("now",) if point.threshold == rows.figures.now else ()
    return now + tuple(mark for mark, other in marked if other is not None and other.threshold == point.threshold)


def source_row(language: Language, figures: ReviewFigures, precision: float) -> SourceRow:
    """Return the row of a source."""
    now = figures.at_now
    at_precision = greatest_recall(figures.points, precision)
    return SourceRow(
        name=figures.source or "",
        reviews=figures.counts.reviews,
        now=threshold_text(language, figures.now),
        precision_interval=interval_text(language, now.precision),
        recall_interval="" if now.recall is None else interval_text(language, now.recall),
        line=line_text(language, figures),
        at_precision="" if at_precision is None else threshold_text(language, at_precision.threshold),
    )


def _span(language: Language, low: float, high: float) -> str:
    return f"{language.decimal(low, _PLACES)}–{language.decimal(high, _PLACES)}"
