"""The plot of ``dupwatch stress``: times to verdicts over the course of the run, and their distribution."""

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consumer.cli.plots import new_figure, save_figure
from consumer.stress.trial import Trial
from storage.clock import MS_PER_S

_INCHES: Final = (10.0, 4.4)
_INTERVALS: Final = 120
"""The run is drawn in about this many intervals, of at least a second."""
# Okabe and Ito's colours, which colour-blind readers can distinguish; the line styles help in print.
_LINES: Final = (("p50", 50.0, "#0072B2", "-"), ("p99", 99.0, "#D55E00", "--"), ("max", 100.0, "#000000", ":"))
_TICKS: Final = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999)


def plot_waits(path: Path, trial: Trial, mode: int) -> None:
    """Draw the times of all articles with a verdict, at least one, into a PNG or SVG file; a new file gets this mode.

    Raises ``SinkError`` if writing fails.
    """
    has_verdict = ~np.isnan(trial.answered_s)
    due_s = trial.due_s[has_verdict]
    waits_ms = (trial.answered_s[has_verdict] - due_s) * MS_PER_S
    figure = new_figure(_INCHES)
    course, distribution = figure.subplots(1, 2, sharey=True)
    _draw_course(course, due_s, waits_ms)
    _draw_distribution(distribution, np.sort(waits_ms))
    course.set_yscale("log")
    for axis_format in (course.yaxis.set_major_formatter, course.yaxis.set_minor_formatter):
        axis_format("{x:,g}")
    course.set_ylabel("time from arrival to verdict (ms)")
    figure.legend(loc="outside upper center", ncols=len(_LINES), frameon=False)
    for panel in (course, distribution):
        panel.grid(color="0.9")
    save_figure(figure, path, mode)


def _draw_course(panel: Any, due_s: npt.NDArray[np.float64], waits_ms: npt.NDArray[np.float64]) -> None:  # noqa: ANN401  # Matplotlib is optional
    length_s = max(float(due_s[-1]) / _INTERVALS, 1.0)
    intervals, starts = np.unique((due_s // length_s).astype(int), return_index=True)
    parts = np.split(waits_ms, starts[1:])
    for name, percent, colour, style in _LINES:
        values = [float(np.percentile(part, percent)) for part in parts]
        panel.plot((intervals + 0.5) * length_s, values, style, color=colour, label=name)
    panel.set_xlabel("second of the run in which an article was due")
    panel.set_title("Over time")


def _draw_distribution(panel: Any, waits_ms: npt.NDArray[np.float64]) -> None:  # noqa: ANN401  # as above
    """Draw waits by percentile, on a scale that gives as much room to 99 to 99.9 as to 90 to 99."""
    count = len(waits_ms)
    panel.plot(count / (count - np.arange(count)), waits_ms, color=_LINES[0][2])
    ticks = [percent for percent in _TICKS if 100 / (100 - percent) <= count]
    panel.set_xscale("log")
    panel.set_xticks([100 / (100 - percent) for percent in ticks], [f"{percent:g}" for percent in ticks])
    panel.minorticks_off()
    panel.set_xlabel("percentile")
    panel.set_title("Distribution")
