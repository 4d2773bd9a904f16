"""An evaluation as tables for a person."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Table

from consumer.evaluation.curves import (
    DISTANCES,
    Choice,
    Curve,
    Evaluation,
    Figures,
    Rate,
    Recommendation,
    Setting,
    found_max,
)
from consumer.judge.settings import JudgeSettings

NOTE: Final = (
    "Recall is of the labelled duplicates only: one that nobody labelled is not missed here. Precision is of the "
    "labelled pairs only: it depends on how many unique pairs were labelled, and how hard they are to tell."
)
_PERCENT_A_ROW: Final = 5
_TIES: Final = (
    "Thresholds that are equally good flag the same labelled pairs. Of those, what is configured stays; else "
    "max_distance and reach take the fewest bits, which cost the least to look up, and similarity_min takes the "
    "middle, as far from wrong flags as from misses."
)


def tables(
    evaluation: Evaluation, recommended: Sequence[Recommendation], settings: JudgeSettings, precision_min: float
) -> Iterator[RenderableType]:
    """All of it, in the order in which it is read."""
    yield _judge_table(evaluation, settings)
    judge = evaluation.judge
    yield (
        f"precision {_rate(judge.precision)} ({_interval(judge.precision)}), "
        f"recall {_rate(judge.recall)} ({_interval(judge.recall)}), F1 {_share(judge.f1)}"
    )
    for curve, one in zip(evaluation.curves, recommended, strict=True):
        yield ""
        yield _curve_table(curve, one, settings)
    yield f"now: as configured; F1: the best F1; P: precision {precision_min:g} at the greatest recall"
    yield ""
    yield _recommended_table(recommended, precision_min)
    if found_max(settings) < DISTANCES[-1]:
        yield f"The plan {settings.plan.name} does not find all pairs more than {found_max(settings)} bits apart."
    yield f"{_TIES}\n\n{NOTE}"


def threshold_text(setting: Setting, threshold: float) -> str:
    """A threshold as it is written into a configuration."""
    return f"{threshold:.2f}" if setting == "similarity_min" else f"{threshold:.0f}"


def _judge_table(evaluation: Evaluation, settings: JudgeSettings) -> Table:
    rules = (
        f"reach {settings.reach}, similarity_min {settings.similarity_min:g}"
        if settings.verify
        else f"max_distance {settings.max_distance}, verify off"
    )
    table = _table(f"The judge as configured: {rules}")
    table.add_column("found by")
    for name in ("duplicates: flagged", "not flagged", "unique: flagged", "not flagged"):
        table.add_column(name, justify="right")
    for row in evaluation.found:
        counts = (row.duplicates_flagged, row.duplicates_passed, row.unique_flagged, row.unique_passed)
        table.add_row(row.found_by, *(f"{count:,}" for count in counts))
    return table


def _curve_table(curve: Curve, recommended: Recommendation, settings: JudgeSettings) -> Table:
    titles: dict[Setting, str] = {
        "max_distance": "max_distance: flagged is what is at most so far apart, without verification",
        "similarity_min": "similarity_min: flagged is what is at least so similar, were it all found",
        "reach": f"reach: flagged is what is found and at least {settings.similarity_min:g} similar",
    }
    table = _table(titles[curve.setting])
    for name in (_unit(curve.setting), "right", "wrong", "precision", "95 %", "recall", "95 %", "F1"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for point in curve.points:
        marks = _marks(point.threshold, recommended)
        if curve.setting != "similarity_min" or marks or round(point.threshold * 100) % _PERCENT_A_ROW == 0:
            table.add_row(threshold_text(curve.setting, point.threshold), *_figures(point), marks)
    return table


def _recommended_table(recommended: Sequence[Recommendation], precision_min: float) -> Table:
    table = _table("Recommended")
    for name in ("setting", "now", "for", "take", "equally good", "precision", "recall", "F1"):
        table.add_column(name, justify="left" if name in {"setting", "for"} else "right", no_wrap=True)
    for one in recommended:
        asked = f"precision {precision_min:g}"
        now = threshold_text(one.setting, one.now)
        for purpose, choice in (("best F1", one.best_f1), (asked, one.reaching)):
            table.add_row(one.setting, now, purpose, *_chosen(one.setting, choice))
    return table


def _chosen(setting: Setting, choice: Choice | None) -> tuple[str, ...]:
    if choice is None:
        return ("none",)
    ends = [threshold_text(setting, choice.ties[end]) for end in (0, -1)]
    span = "–" if len(choice.ties) == 1 else " to ".join(ends)
    point = choice.point
    return (
        threshold_text(setting, point.threshold),
        span,
        _rate(point.precision),
        _rate(point.recall),
        _share(point.f1),
    )


def _figures(figures: Figures) -> tuple[str, ...]:
    return (
        f"{figures.right:,}",
        f"{figures.wrong:,}",
        _rate(figures.precision),
        _interval(figures.precision),
        _rate(figures.recall),
        _interval(figures.recall),
        _share(figures.f1),
    )


def _marks(threshold: float, recommended: Recommendation) -> str:
    marks = (
        ("now", recommended.now),
        ("F1", recommended.best_f1 and recommended.best_f1.point.threshold),
        ("P", recommended.reaching and recommended.reaching.point.threshold),
    )
    return " ".join(name for name, value in marks if value == threshold)


def _unit(setting: Setting) -> str:
    return "at least" if setting == "similarity_min" else "bits"


def _rate(rate: Rate) -> str:
    return _share(rate.value)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(rate: Rate) -> str:
    return f"{rate.low:.3f}–{rate.high:.3f}"


def _table(title: str) -> Table:
    return Table(title=title, box=None, padding=(0, 1, 0, 0), title_justify="left", title_style="bold", pad_edge=False)
