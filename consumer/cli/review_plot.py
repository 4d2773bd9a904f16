"""What reviews say, as a plot: precision and recall with their intervals, and where reviewers draw the line."""

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from consumer.cli.evaluation_plot import F1_COLOUR, PRECISION_COLOUR, RECALL_COLOUR, drawn, save
from consumer.evaluation.review_figures import ReviewFigures

_INCHES: Final = (7.0, 4.8)


def plot_reviews(path: Path, figures: ReviewFigures, mode: int) -> None:
    """Draw the curve into a PNG or SVG file; a new file gets this mode. Raises ``SinkError``."""
    # Optional, and slow to import: load it only for a plot.
    figure: Any = import_module("matplotlib.figure").Figure(figsize=_INCHES, dpi=120, layout="constrained")
    panel = figure.subplots()
    thresholds = [point.threshold for point in figures.points]
    rates = [("precision", PRECISION_COLOUR, "-", [point.precision for point in figures.points])]
    recalls = [point.recall for point in figures.points if point.recall is not None]
    if len(recalls) == len(thresholds):
        rates.append(("recall", RECALL_COLOUR, "--", recalls))
        panel.plot(thresholds, [drawn(point.f1) for point in figures.points], ":", color=F1_COLOUR, label="F1")
    for name, colour, style, of_name in rates:
        counted = [rate.value is not None for rate in of_name]
        low, high = [rate.low for rate in of_name], [rate.high for rate in of_name]
        panel.fill_between(thresholds, low, high, where=counted, color=colour, alpha=0.18, linewidth=0)
        panel.plot(thresholds, [drawn(rate.value) for rate in of_name], style, color=colour, label=name)
    panel.axvline(figures.now, color="0.6", linewidth=1, label="configured")
    line = figures.line
    span = [min(max(end, thresholds[0]), thresholds[-1]) for end in (line.low, line.high)]
    panel.axvspan(*span, color="0.85", label="where reviewers draw the line")
    panel.set_xlabel("minimum similarity")
    panel.grid(color="0.9")
    panel.margins(x=0.03)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    save(figure, path, mode)
