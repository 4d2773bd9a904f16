"""Plots of an evaluation: precision and recall with their intervals, and F1.

The plot of labelled pairs has one panel per setting. The plot of reviewed pairs has one panel, and marks the 95 %
interval of the similarity at which reviewers begin to accept copies.
"""

from collections.abc import Sequence
from math import floor, nan
from pathlib import Path
from typing import Any, Final

from consumer.cli.evaluation.evaluation_tables import NOTE
from consumer.cli.plots import new_figure, save_figure
from consumer.evaluation.curves import Curve, Evaluation, Setting
from consumer.evaluation.recommendations import Recommendation
from consumer.evaluation.review_figures import ReviewFigures

# Okabe and Ito's colours, which colour-blind readers can distinguish; the line styles help in print.
_PRECISION_COLOUR: Final = "#0072B2"
_RECALL_COLOUR: Final = "#D55E00"
_F1_COLOUR: Final = "#000000"
_BEST_COLOUR: Final = "#009E73"
_PANEL_INCHES: Final = (5.0, 4.4)
_TITLES: Final[dict[Setting, str]] = {
    "max_distance": "max_distance, without verification",
    "similarity_min": "similarity_min, if all pairs were found",
    "reach": "reach, with verification",
}
_AXES: Final[dict[Setting, str]] = {
    "max_distance": "maximum Hamming distance (bits)",
    "similarity_min": "minimum similarity",
    "reach": "reach (bits)",
}
_REVIEWS_INCHES: Final = (7.0, 4.8)


def plot(path: Path, evaluation: Evaluation, recommended: Sequence[Recommendation], mode: int) -> None:
    """Draw the curves into a PNG or SVG file; a new file gets this mode. Raises ``SinkError`` if writing fails."""
    width, height = _PANEL_INCHES
    panels = len(evaluation.curves)
    figure = new_figure((width * panels, height))
    axes = figure.subplots(1, panels, sharey=True)
    for panel, curve, recommendation in zip(axes, evaluation.curves, recommended, strict=True):
        _draw(panel, curve, recommendation)
    axes[0].set_ylim(_floor(evaluation.curves), 1.01)
    axes[0].set_ylabel("share of labelled pairs")
    named = {name: line for panel in axes for line, name in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside upper center", ncols=len(named), frameon=False)
    pairs = f"{evaluation.duplicates:,} labelled duplicates, {evaluation.unique:,} labelled unique pairs."
    figure.supxlabel(f"{pairs} Bands are Wilson 95 % intervals.\n{NOTE}", fontsize=8)
    save_figure(figure, path, mode)


def plot_reviews(path: Path, figures: ReviewFigures, mode: int) -> None:
    """Draw the evaluation of reviews into a PNG or SVG file; a new file gets this mode. Raises ``SinkError``."""
    figure = new_figure(_REVIEWS_INCHES)
    panel = figure.subplots()
    thresholds = [point.threshold for point in figures.points]
    rates = [("precision", _PRECISION_COLOUR, "-", [point.precision for point in figures.points])]
    recalls = [point.recall for point in figures.points if point.recall is not None]
    if len(recalls) == len(thresholds):
        rates.append(("recall", _RECALL_COLOUR, "--", recalls))
        panel.plot(thresholds, [_plot_value(point.f1) for point in figures.points], ":", color=_F1_COLOUR, label="F1")
    for name, colour, style, curve in rates:
        has_value = [rate.value is not None for rate in curve]
        low, high = [rate.low for rate in curve], [rate.high for rate in curve]
        panel.fill_between(thresholds, low, high, where=has_value, color=colour, alpha=0.18, linewidth=0)
        panel.plot(thresholds, [_plot_value(rate.value) for rate in curve], style, color=colour, label=name)
    panel.axvline(figures.now, color="0.6", linewidth=1, label="configured")
    line = figures.line
    span = [min(max(end, thresholds[0]), thresholds[-1]) for end in (line.low, line.high)]
    panel.axvspan(*span, color="0.85", label="where reviewers draw the line")
    panel.set_xlabel("minimum similarity")
    panel.grid(color="0.9")
    panel.margins(x=0.03)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    save_figure(figure, path, mode)


def _draw(panel: Any, curve: Curve, recommended: Recommendation) -> None:  # noqa: ANN401  # Matplotlib is optional
    thresholds = [point.threshold for point in curve.points]
    # Dots for settings that take only whole numbers.
    marker = "" if curve.setting == "similarity_min" else "."
    for name, colour, style, rates in (
        ("precision", _PRECISION_COLOUR, "-", [point.precision for point in curve.points]),
        ("recall", _RECALL_COLOUR, "--", [point.recall for point in curve.points]),
    ):
        has_value = [rate.value is not None for rate in rates]
        low, high = [rate.low for rate in rates], [rate.high for rate in rates]
        panel.fill_between(thresholds, low, high, where=has_value, color=colour, alpha=0.18, linewidth=0)
        panel.plot(
            thresholds, [_plot_value(rate.value) for rate in rates], style, marker=marker, color=colour, label=name
        )
    panel.plot(thresholds, [_plot_value(point.f1) for point in curve.points], ":", color=_F1_COLOUR, label="F1")
    best = recommended.best_f1
    panel.axvline(recommended.now, color="0.6", linewidth=1, label="configured")
    if best is not None:
        panel.axvline(best.point.threshold, color=_BEST_COLOUR, linewidth=1.5, linestyle="-.", label="best F1")
    panel.set_title(_TITLES[curve.setting])
    panel.set_xlabel(_AXES[curve.setting])
    panel.margins(x=0.03)
    panel.grid(color="0.9")


def _plot_value(share: float | None) -> float:
    """Return the share, or nan, which leaves a gap in the curve."""
    return nan if share is None else share


def _floor(curves: Sequence[Curve]) -> float:
    """Return the lower end of the axis: the greatest multiple of 0.1 that is not above any end of an interval."""
    drawn = [
        rate.low
        for curve in curves
        for point in curve.points
        for rate in (point.precision, point.recall)
        if rate.value is not None
    ]
    return floor(min(drawn, default=0.0) * 10) / 10
