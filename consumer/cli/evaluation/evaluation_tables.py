"""Shows the results of an evaluation as tables on a terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Column, Table

from consumer.cli import render
from consumer.evaluation.curves import Curve, Evaluation, ProfileFigures, QualityFigures, Rate, Setting
from consumer.evaluation.recommendations import Choice, Recommendation
from consumer.judge.settings import JudgeSettings

NOTE: Final = (
    "Recall counts labelled duplicates only: missed duplicates without a label are not counted. Precision counts "
    "labelled pairs only: it depends on how many unique pairs are labelled, and how similar they are."
)
_ROW_STEP_PERCENT: Final = 5
_CANNOT_BE_SET: Final = "✗"
"""Marks a threshold that cannot be set."""
_FIGURES: Final = ("right", "wrong", "precision", "precision 95 %", "recall", "recall 95 %", "F1")
_TIES_NOTE: Final = (
    "Equally good thresholds flag the same labelled pairs. The configured threshold is recommended if it is among "
    "them. If it is not, the lowest is recommended for max_distance and reach, where fewer bits are cheaper to look "
    "up, and the middle one for similarity_min, which is as far from wrong flags as from misses."
)


def tables(
    evaluation: Evaluation, recommended: Sequence[Recommendation], settings: JudgeSettings, precision_min: float
) -> Iterator[RenderableType]:
    """Yield all tables and notes, in order."""
    yield _judge_table(evaluation, settings)
    judge = evaluation.judge
    yield (
        f"precision {rate(judge.precision)} ({interval(judge.precision)}), "
        f"recall {rate(judge.recall)} ({interval(judge.recall)}), F1 {_share(judge.f1)}"
    )
    for curve, recommendation in zip(evaluation.curves, recommended, strict=True):
        yield ""
        yield _curve_table(curve, recommendation, settings)
        yield from _limits(curve, recommendation, settings)
    yield (
        f"now: as configured; F1: best F1; P: best recall with precision {precision_min:g}; "
        f"{_CANNOT_BE_SET}: cannot be set"
    )
    yield ""
    yield _recommended_table(recommended, precision_min)
    yield f"{_TIES_NOTE}\n\n{NOTE}"


def profile_tables(profiles: Sequence[ProfileFigures], precision_min: float) -> Iterator[RenderableType]:
    """Yield a table that compares profiles, and a line that recommends one. Yield nothing without profiles."""
    if not profiles:
        return
    profile = Column("profile", no_wrap=True)
    table = new_table("judge.profile: what a store of each profile flags", profile, *render.number_columns(*_FIGURES))
    for each in profiles:
        table.add_row(each.profile, *_figure_cells(each.figures))
    yield from ("", table)
    precise = [each for each in profiles if (each.figures.precision.value or 0.0) >= precision_min]
    if precise:
        best = max(precise, key=lambda each: each.figures.recall.value or 0.0)
        yield f"Recommended: {best.profile}, the best recall with precision {precision_min:g}"
    else:
        best = max(profiles, key=lambda each: each.figures.f1 or 0.0)
        yield f"Recommended: {best.profile}, the best F1; neither has precision {precision_min:g}"


def _limits(curve: Curve, recommended: Recommendation, settings: JudgeSettings) -> Iterator[str]:
    """Yield a note that says why some thresholds of a curve cannot be set; nothing if all can be set."""
    if all(recommended.can_be_set(point.threshold) for point in curve.points):
        return
    if curve.setting == "max_distance":
        yield (
            f"{_CANNOT_BE_SET} The plan {settings.plan.name} misses some pairs more than {recommended.highest:.0f} "
            "bits apart, so max_distance cannot be higher."
        )
    else:
        yield f"{_CANNOT_BE_SET} reach is at least max_distance, {settings.max_distance}."


def threshold_text(setting: Setting, threshold: float) -> str:
    """Return a threshold in the format of the configuration."""
    return f"{threshold:.2f}" if setting == "similarity_min" else f"{threshold:.0f}"


def _judge_table(evaluation: Evaluation, settings: JudgeSettings) -> Table:
    rules = (
        f"reach {settings.reach}, similarity_min {settings.similarity_min:g}"
        if settings.verify
        else f"max_distance {settings.max_distance}, verify off"
    )
    names = ("duplicates: flagged", "missed", "unique: flagged", "not flagged")
    columns = [Column(name, justify="right") for name in names]
    table = new_table(f"The judge as configured: {rules}", "found by", *columns)
    for row in evaluation.found:
        counts = (row.duplicates_flagged, row.duplicates_passed, row.unique_flagged, row.unique_passed)
        table.add_row(row.found_by, *(f"{count:,}" for count in counts))
    return table


def _curve_table(curve: Curve, recommended: Recommendation, settings: JudgeSettings) -> Table:
    titles: dict[Setting, str] = {
        "max_distance": "max_distance: flags pairs at most this many bits apart, without verification",
        "similarity_min": "similarity_min: flags pairs at least this similar, if all pairs were found",
        "reach": f"reach: flags found pairs with a similarity of at least {settings.similarity_min:g}",
    }
    unit = "minimum" if curve.setting == "similarity_min" else "bits"
    table = new_table(titles[curve.setting], *render.number_columns(unit, *_FIGURES), Column("", no_wrap=True))
    for point in curve.points:
        marks = _mark_cell(point.threshold, recommended)
        if curve.setting != "similarity_min" or marks or round(point.threshold * 100) % _ROW_STEP_PERCENT == 0:
            table.add_row(threshold_text(curve.setting, point.threshold), *_figure_cells(point), marks)
    return table


def _recommended_table(recommended: Sequence[Recommendation], precision_min: float) -> Table:
    table = new_table(
        "Recommended",
        Column("setting", no_wrap=True),
        *render.number_columns("now"),
        Column("goal", no_wrap=True),
        *render.number_columns("set to", "equally good", "precision", "recall", "F1"),
    )
    for advice in recommended:
        now = threshold_text(advice.setting, advice.now)
        for goal, choice in (("best F1", advice.best_f1), (f"precision {precision_min:g}", advice.reaching)):
            table.add_row(advice.setting, now, goal, *_choice_cells(advice.setting, choice))
    return table


def _choice_cells(setting: Setting, choice: Choice | None) -> tuple[str, ...]:
    if choice is None:
        return ("none",)
    ends = [threshold_text(setting, choice.ties[end]) for end in (0, -1)]
    span = "–" if len(choice.ties) == 1 else " to ".join(ends)
    point = choice.point
    return (
        threshold_text(setting, point.threshold),
        span,
        rate(point.precision),
        rate(point.recall),
        _share(point.f1),
    )


def _figure_cells(figures: QualityFigures) -> tuple[str, ...]:
    return (
        f"{figures.right:,}",
        f"{figures.wrong:,}",
        rate(figures.precision),
        interval(figures.precision),
        rate(figures.recall),
        interval(figures.recall),
        _share(figures.f1),
    )


def _mark_cell(threshold: float, recommended: Recommendation) -> str:
    marks = (
        ("now", recommended.now),
        ("F1", recommended.best_f1 and recommended.best_f1.point.threshold),
        ("P", recommended.reaching and recommended.reaching.point.threshold),
    )
    if not recommended.can_be_set(threshold):
        return _CANNOT_BE_SET
    return " ".join(name for name, value in marks if value == threshold)


def rate(value: Rate) -> str:
    """Return a rate with three decimals, or a dash if there were no trials."""
    return _share(value.value)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def interval(rate: Rate) -> str:
    """Return the 95 % interval of a rate as text, with three decimals."""
    return f"{rate.low:.3f}–{rate.high:.3f}"


def new_table(title: str, *columns: Column | str) -> Table:
    """Return an empty table with these columns."""
    return Table(
        *columns,
        title=title,
        box=None,
        padding=(0, 1, 0, 0),
        title_justify="left",
        title_style="bold",
        pad_edge=False,
    )
