"""``dupwatch evaluate --reviews``: the threshold that reviewed pairs suggest."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from rich.console import RenderableType
from rich.table import Column, Table

from consumer.cli import render
from consumer.cli.evaluation.evaluation_feed import lines_of
from consumer.cli.evaluation.evaluation_plot import plot_reviews
from consumer.cli.evaluation.evaluation_tables import interval, new_table, rate
from consumer.cli.results import answer
from consumer.config.config import Config
from consumer.evaluation.profile_thresholds import ProfileThreshold, profile_at, profile_thresholds, reached_profile
from consumer.evaluation.review_figures import (
    REVIEWS_MIN,
    SOURCES_MAX,
    ReviewEvaluation,
    ReviewFigures,
    ReviewPoint,
    evaluate_reviews,
    whole_count,
)
from consumer.evaluation.reviewed_pairs import ReportedCopies, reviewed_pairs
from consumer.judge.settings import JudgeSettings
from consumer.model.errors import ConfigError
from consumer.text.counts import counted
from consumer.wiring.components import judge_settings, lexicon_of

_SHOWN_EVERY: Final = 5
NOTE: Final = (
    "Recall counts copies that a look-up finds and that are at least as similar as the least similar near miss. The "
    "numbers of flags that would come are estimates, because near misses are a sample."
)
_UNKNOWN: Final = (
    "Recall is unknown: only flags were reviewed, and no pairs below the threshold. Thresholds "
    "below {now} cannot be judged. With kafka.near_miss_share consumers send a sample of the pairs just "
    "under the threshold."
)


class _Report(msgspec.Struct, frozen=True):
    """The output of ``--json``."""

    reviews: ReviewEvaluation
    profile: str | None
    recall_known: bool
    without_similarity: int
    reported: ReportedCopies
    note: str = NOTE


def evaluate_reviewed(config: Config, reviews: Path, precision: float, plot_file: Path | None, *, json: bool) -> None:
    """Read the reviews, print their evaluation, and plot it if ``plot_file`` is given.

    Raises ``SourceError`` if the reviews cannot be read, ``ConfigError`` if they cannot be evaluated, and ``SinkError``
    if the results cannot be written.
    """
    settings = judge_settings(config, lexicon_of(config))
    if not settings.verify:
        raise ConfigError("--reviews judges similarity_min, which plain SimHash (judge.verify = false) does not have")
    read = reviewed_pairs(lines_of(reviews))
    found, profiles = evaluate_reviews(read.pairs, _thresholds(settings), precision), profile_thresholds(settings)
    console = render.console(stderr=True)
    if read.without_similarity:
        console.print(f"Left out pairs without a similarity, flagged by plain SimHash: {read.without_similarity:,}.")
    profile = profile_at(profiles, found.overall.now)
    report = _Report(found, profile, found.overall.recall_known, read.without_similarity, read.reported)
    answer(json=json, lines=[report], text=_parts(found, read.reported, profiles, precision))
    if plot_file is not None:
        plot_reviews(plot_file, found.overall, config.files.bits)
        console.print(f"Plot: {render.plain(str(plot_file))}")


def _thresholds(settings: JudgeSettings) -> Callable[[str | None], float]:
    def threshold_of(source: str | None) -> float:
        return settings.thresholds_for(*([] if source is None else [source])).similarity_min

    return threshold_of


def _parts(
    found: ReviewEvaluation, reported: ReportedCopies, profiles: Sequence[ProfileThreshold], precision: float
) -> Iterator[RenderableType]:
    yield from _figures(found.overall, profiles, precision)
    if reported.similarities:
        yield _reported_sentences(found.overall, reported)
    if found.sources:
        yield ""
        yield _sources(found)
    if found.sources_left_out:
        left_out = f"{found.sources_left_out:,}"
        yield (
            f"Sources without figures of their own, because they have fewer than {REVIEWS_MIN} reviews or are not "
            f"among the {SOURCES_MAX} with the most: {left_out}."
        )
    yield f"\n{NOTE}"


def _figures(
    figures: ReviewFigures, profiles: Sequence[ProfileThreshold], precision: float
) -> Iterator[RenderableType]:
    counts, line, profile = figures.counts, figures.line, profile_at(profiles, figures.now)
    now = f"{figures.now:g}" if profile is None else f"{figures.now:g}, that of the profile {profile}"
    yield (
        f"Reviewed flags: {counts.flags_right:,} right, {counts.flags_wrong:,} wrong; near misses: "
        f"{counts.near_misses_right:,} copies, {counts.near_misses_wrong:,} not. Not reviewed: {counts.open:,}."
    )
    if not figures.recall_known:
        yield _UNKNOWN.format(now=f"{figures.now:g}")
    if line_is_known(figures):
        yield f"Reviewers draw the line at a similarity of {line_text(figures)}; the threshold is {now}."
        beyond = f"{line.right_below:.1%} right below it, {line.wrong_above:.1%} wrong above"
        yield f"On the other side of that line: {beyond}."
    else:
        yield f"These reviews do not show where reviewers draw the line; the threshold is {now}."
    yield ""
    yield _curve(figures)
    yield "go, come: flags that this threshold would remove and add"
    yield f"now: as configured; F1: best F1; P: most flags with precision {precision:g}"
    for name, point in (("Best F1", figures.best_f1), (f"Precision {precision:g}", figures.reaching)):
        yield f"{name}: {'none' if point is None else _advice(figures, point)}"
        reached = None if point is None else reached_profile(profiles, figures.now, point.threshold)
        if reached is not None:
            yield f"  {_profile_advice(figures, reached)}"


def _reported_sentences(figures: ReviewFigures, reported: ReportedCopies) -> str:
    """Return sentences on the copies reported as missed: how many reach the configured and the advised thresholds."""
    thresholds = {figures.now} | {point.threshold for point in (figures.best_f1, figures.reaching) if point is not None}
    reached = "; ".join(f"{threshold:g} or more: {reported.reached(threshold):,}" for threshold in sorted(thresholds))
    count = len(reported.similarities)
    return (
        f"Reported as missed: {count:,} {'copy' if count == 1 else 'copies'}. With a similarity: "
        f"{reported.measured:,} ({reached}). No figure above counts them, since they are not a sample."
    )


def line_is_known(figures: ReviewFigures) -> bool:
    """Return whether the reviews show where reviewers draw the line."""
    return figures.line.low > 0 or figures.line.high < 1


def line_text(figures: ReviewFigures) -> str:
    """Return as text where reviewers draw the line, with its interval, which may be open."""
    line = figures.line
    if not line_is_known(figures):
        return "unknown"
    if line.low <= 0:
        return f"{line.high:.3f} or less"
    if line.high >= 1:
        return f"{line.low:.3f} or more"
    return f"{line.value:.3f} ({line.low:.3f}–{line.high:.3f})"


def _advice(figures: ReviewFigures, point: ReviewPoint) -> str:
    if point.threshold == figures.now:
        return f"{point.threshold:.2f}, the current threshold"
    return f"{point.threshold:.2f}: {change_text(figures, point)}"


def _profile_advice(figures: ReviewFigures, reached: ProfileThreshold) -> str:
    """Return sentences on a profile that the advised threshold reaches: the user can set this profile instead."""
    setting = f'profile = "{reached.name}"'
    profile = f"That reaches the profile {reached.name} ({reached.similarity_min:g})"
    if reached.similarity_min < figures.now:
        return f"{profile}. {setting} in [judge] also finds copies that look-ups miss now; it needs a migration."
    return (
        f'{profile}. {setting} in [rules."SOURCE"] raises the threshold of one source and changes no keys; in [judge]'
        " it needs a migration."
    )


def change_text(figures: ReviewFigures, point: ReviewPoint) -> str:
    """Return as text how many flags another threshold would remove and add, and over how many days, if known."""
    change = point.change
    span = "" if figures.days is None else f" over {counted(round(figures.days), 'day')}"
    changes = [
        f"{counted(whole_count(all_of), 'flag')} would {what}{span}, {whole_count(wrong):,} of them wrong"
        for what, all_of, wrong in (("go", change.gone, change.wrong_gone), ("come", change.come, change.wrong_come))
        if all_of
    ]
    return "; ".join(changes) or "no flag would go or come"


def _curve(figures: ReviewFigures) -> Table:
    names = ("minimum", "precision", "95 %", "recall", "95 %", "F1", "go", "come")
    table = new_table("similarity_min", *render.number_columns(*names), Column("", no_wrap=True))
    for point in figures.points:
        marks = _marks(point, figures)
        if marks or round(point.threshold * 100) % _SHOWN_EVERY == 0:
            table.add_row(f"{point.threshold:.2f}", *_row(point), marks)
    return table


def _row(point: ReviewPoint) -> tuple[str, ...]:
    recall = ("?", "unknown") if point.recall is None else (rate(point.recall), interval(point.recall))
    f1 = "–" if point.f1 is None else f"{point.f1:.3f}"
    return (
        rate(point.precision),
        interval(point.precision),
        *recall,
        f1,
        f"{whole_count(point.change.gone):,}",
        f"{whole_count(point.change.come):,}",
    )


def _marks(point: ReviewPoint, figures: ReviewFigures) -> str:
    marks = (
        ("now", figures.now),
        ("F1", figures.best_f1 and figures.best_f1.threshold),
        ("P", figures.reaching and figures.reaching.threshold),
    )
    return " ".join(name for name, value in marks if value == point.threshold)


def _sources(found: ReviewEvaluation) -> Table:
    columns = render.number_columns("reviews", "now", "precision 95 %", "recall 95 %", "line", "P")
    source = Column("source", overflow="fold")
    table = new_table("By source of the later article, at its threshold", source, *columns)
    for figures in found.sources:
        at_now = figures.at_now
        table.add_row(
            render.plain(figures.source or ""),
            f"{figures.counts.reviews:,}",
            f"{figures.now:g}",
            interval(at_now.precision),
            "unknown" if at_now.recall is None else interval(at_now.recall),
            line_text(figures),
            "none" if figures.reaching is None else f"{figures.reaching.threshold:.2f}",
        )
    return table
