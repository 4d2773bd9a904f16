"""How often what reviews teach is true, on reviews that are made: ``python -m benchmarks.quality.reviews``.

The line: people who see how similar texts are, and call them copies from a hidden similarity on, have looked at flags
and near misses; is the hidden line within the interval? The rates: flags counted one by one and near misses one in N;
do the intervals of several methods have the true recall and precision? Both aim at 95 %.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import typer

from benchmarks.speed.report import OUT, Row, publish
from consumer.evaluation.curves import NORMAL_QUANTILE
from consumer.evaluation.reviewed_pairs import ReviewedPair
from consumer.evaluation.reviewer_line import fit_reviewer_line
from consumer.evaluation.weighted_rates import DecisionCounts, rates, weighted_pairs
from storage.clock import MS_PER_DAY

NOW: Final = 0.75
MARGIN: Final = 0.15
MISTAKES: Final = 0.04
LINES: Final = (0.66, 0.745, 0.83)
DAYS: Final = 20
_SKETCH_BINS: Final = 255
_PAIRS: Final = 4_000
_REVIEWED_FLAGS: Final = 400
_SAMPLED_IN: Final = 4
_BOOTSTRAPS: Final = 2_000

Values = npt.NDArray[np.float64]
Interval = tuple[float, float]


def _two_kinds(random: np.random.Generator) -> Values:
    return np.concatenate((random.beta(8, 1.2, _PAIRS // 2), random.beta(6, 3.5, _PAIRS // 2)))


SHAPES: Final[Mapping[str, Callable[[np.random.Generator], Values]]] = {
    "copies and templates": _two_kinds,
    "steeply more": lambda random: np.clip(1 - random.exponential(0.12, _PAIRS), 0, 1),
    "steeply fewer": lambda random: np.clip(0.5 + random.exponential(0.12, _PAIRS), 0, 1),
}
"""How the similarities of the pairs that look-ups find are spread."""


class People(NamedTuple):
    """Who reviews: the line they draw, how often they are mistaken, and whether they see texts or only the estimate."""

    line: float
    mistakes: float = MISTAKES
    sees_texts: bool = True
    shape: str = "copies and templates"


def made_reviews(people: People, seed: int) -> list[ReviewedPair]:
    """The flags of some days and a sample of the near misses, with what these people have said.

    They have looked at all near misses, and at some of the flags, more often at the less similar ones. What they have
    not looked at has no decision.
    """
    random = np.random.default_rng(seed)
    true = SHAPES[people.shape](random)
    estimated = np.round(random.binomial(_SKETCH_BINS, true) / _SKETCH_BINS, 4)
    seen = true if people.sees_texts else estimated
    copies = (seen >= people.line) ^ (random.random(len(true)) < people.mistakes)
    flagged = estimated >= NOW
    missed = ~flagged & (estimated >= NOW - MARGIN) & (random.random(len(true)) < 1 / _SAMPLED_IN)
    chance = np.where(flagged, 1.2 - estimated, 0.0)
    reviewed = missed.copy()
    reviews = min(_REVIEWED_FLAGS, int(np.count_nonzero(flagged)))
    reviewed[random.choice(len(true), reviews, replace=False, p=chance / chance.sum())] = True
    return [
        ReviewedPair(
            kind="flag" if flagged[place] else "near_miss",
            similarity=float(estimated[place]),
            right=bool(copies[place]) if reviewed[place] else None,
            sampled_in=1.0 if flagged[place] else _SAMPLED_IN,
            arrived_ms=place * DAYS * MS_PER_DAY // len(true),
        )
        for place in np.flatnonzero(flagged | missed).tolist()
    ]


def line_row(people: People, seeds: range) -> Row:
    """How often the hidden line is within its interval, and how wide that is."""
    widths, held = [], 0
    for seed in seeds:
        known = weighted_pairs(made_reviews(people, seed))
        line = fit_reviewer_line(known.similarity, known.right, known.weight)
        held += line.low <= people.line <= line.high
        widths.append(line.high - line.low)
    return {
        "pairs": people.shape,
        "people see": "texts" if people.sees_texts else "estimates",
        "mistakes": people.mistakes,
        "hidden line": people.line,
        "covered": held / len(seeds),
        "width, median": float(np.median(widths)),
    }


class Expected(NamedTuple):
    """How many pairs are expected: right and wrong flags, missed copies and other near misses, 1 in N of these sent."""

    sampled_in: int
    right: int
    wrong: int
    missed: int
    others: int


CASES: Final = tuple(
    Expected(sampled_in, *counts)
    for sampled_in in (10, 100)
    for counts in ((150, 9, 300, 600), (400, 8, 60, 3_000), (400, 8, 10, 3_000))
)


class Counted(NamedTuple):
    """How many pairs were reviewed: right and wrong flags, copies among the near misses, and the others of these."""

    right: int
    wrong: int
    missed: int
    others: int


def by_gamma(counted: Counted, weights: Values) -> tuple[Interval, Interval]:
    """Recall of the present threshold and precision of a lower one, as ``evaluate --reviews`` has them."""
    right, wrong, missed, others = (float(count) for count in counted)
    present = ([right, 0.0], [wrong, 0.0], [0.0, missed], [0.0, others])
    lower = ([right, missed], [wrong, others], [0.0, 0.0], [0.0, 0.0])
    at_present, at_lower = (
        rates(DecisionCounts(*(np.array([row]) for row in rows)), weights)[0] for rows in (present, lower)
    )
    return (at_present.recall.low, at_present.recall.high), (at_lower.precision.low, at_lower.precision.high)


def by_wilson(hits: Values, others: Values, weights: Values, random: np.random.Generator) -> Interval:
    """Wilson's interval with Kish's effective number of pairs."""
    del random
    both = hits + others
    count, share = (both @ weights) ** 2 / (both @ weights**2), hits @ weights / (both @ weights)
    z2 = NORMAL_QUANTILE**2
    centre, scale = share + z2 / (2 * count), 1 + z2 / count
    reach = NORMAL_QUANTILE * np.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    return float((centre - reach) / scale), float((centre + reach) / scale)


def by_bootstrap(hits: Values, others: Values, weights: Values, random: np.random.Generator) -> Interval:
    """Quantiles of what reviews drawn from these give."""
    counts = np.concatenate((hits, others))
    drawn = random.multinomial(int(counts.sum()), counts / counts.sum(), _BOOTSTRAPS) * np.concatenate(
        (weights, weights)
    )
    low, high = np.quantile(drawn[:, : len(hits)].sum(axis=1) / drawn.sum(axis=1), (0.025, 0.975)).tolist()
    return low, high


def by_delta(hits: Values, others: Values, weights: Values, random: np.random.Generator) -> Interval:
    """The normal approximation of a ratio."""
    del random
    hit, other = hits @ weights, others @ weights
    variance = (other**2 * (hits @ weights**2) + hit**2 * (others @ weights**2)) / (hit + other) ** 4
    reach = NORMAL_QUANTILE * np.sqrt(variance)
    return float(hit / (hit + other) - reach), float(hit / (hit + other) + reach)


SHARES: Final = {"Wilson, Kish's size": by_wilson, "bootstrap": by_bootstrap, "delta": by_delta}
"""Intervals for a share of weighted pairs, whatever they are."""


def by_share(
    method: Callable[[Values, Values, Values, np.random.Generator], Interval],
    counted: Counted,
    weights: Values,
    random: np.random.Generator,
) -> tuple[Interval, Interval]:
    """The same two by one of these."""
    right, wrong, missed, others = (float(count) for count in counted)
    return (
        method(np.array([right, 0.0]), np.array([0.0, missed]), weights, random),
        method(np.array([right, missed]), np.array([wrong, others]), weights, random),
    )


def rates_row(case: Expected, samples: int) -> Row:
    """How often each method's interval has the recall of the present threshold, and the precision of a lower one."""
    random = np.random.default_rng(samples)
    weights = np.array([1.0, case.sampled_in])
    recall = case.right / (case.right + case.missed)
    precision = (case.right + case.missed) / (case.right + case.missed + case.wrong + case.others)
    held = {name: np.zeros(2) for name in ("gamma", *SHARES)}
    for _ in range(samples):
        sent = (case.right, case.wrong, case.missed / case.sampled_in, case.others / case.sampled_in)
        counted = Counted(*random.poisson(sent).tolist())
        found = {"gamma": by_gamma(counted, weights)}
        found |= {name: by_share(method, counted, weights, random) for name, method in SHARES.items()}
        for name, ((low, high), (lowest, highest)) in found.items():
            held[name] += (low <= recall <= high, lowest <= precision <= highest)
    figures = {name: "{:.3f}, {:.3f}".format(*both / samples) for name, both in held.items()}
    return {"N": case.sampled_in, "right, wrong, missed, others": ", ".join(map(str, case[1:]))} | figures


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Reviews made for each kind of people.")] = 400,
    samples: Annotated[int, typer.Option(min=1, help="Samples for each case of the rates.")] = 1_500,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure how often intervals hold what they promise."""
    people = [
        People(line, mistakes, sees_texts, shape)
        for sees_texts in (True, False)
        for shape in SHAPES
        for mistakes in (0.0, MISTAKES, 0.1)
        for line in LINES
    ]
    lines = [line_row(each, range(seed, seed + seeds)) for each in people]
    publish("review_lines", "The line, within its 95 % interval", lines, out=out, seeds=seeds, seed=seed)
    cases = [rates_row(case, samples) for case in CASES]
    publish("review_rates", "Recall, precision, within their 95 % intervals", cases, out=out, samples=samples)


if __name__ == "__main__":
    typer.run(main)
