"""How good verdicts are: flags against the exact pairs of a feed.

``python -m benchmarks.quality.score --feed FEED --pairs PAIRS --verdicts VERDICTS``. What counts as what:

- A flag (outcome ``duplicate``) is *right* if the article it names has Jaccard similarity >= 0.7 with it, *wrong* if
  < 0.5 or not among the pairs, else *between*.
- Precision = right / (right + wrong); those between are left out of both. Strict precision = right / all flags.
- Recall is over the articles that have an earlier kept (outcome ``unique``) one with similarity >= 0.8: *found* if
  flagged, whatever the flag names, *missed* if not. Recall = found / (found + missed).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.quality.feed import read_feed, read_lines
from benchmarks.quality.pairs import SimilarPair

RIGHT_JACCARD_MIN = 0.7
WRONG_JACCARD_BELOW = 0.5
MISSED_JACCARD_MIN = 0.8
# The 97.5 % point of the normal distribution: two-sided 95 %.
NORMAL_QUANTILE = 1.959963984540054

Outcome = Literal["unique", "duplicate", "retracted"]


class Verdict(msgspec.Struct, frozen=True):
    """What is read of a verdict event; its other fields are passed over."""

    id: str
    outcome: Outcome
    duplicate_of: str | None = None
    similarity: float | None = None
    distance: int | None = None


class Likeness(NamedTuple):
    """How alike two articles are; nought where the pair is not listed."""

    jaccard: float
    containment: float


class Finding(NamedTuple):
    """A wrong flag, or a miss: the article, the one that it was (or was not) matched to, and how alike they are.

    ``stated_similarity`` and ``distance`` are the flag's own; None for a miss.
    """

    id: str
    other: str
    jaccard: float
    containment: float
    stated_similarity: float | None
    distance: int | None


class Rate(NamedTuple):
    """A share with its Wilson 95 % interval; ``value`` is None if there is nothing to count."""

    value: float | None
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Quality:
    """Counts of articles and the rates made of them; ``wrong_flags`` the least alike first, ``misses`` the most."""

    articles: int
    kept: int
    retracted: int
    right: int
    between: int
    wrong: int
    found: int
    missed: int
    precision: Rate
    precision_strict: Rate
    recall: Rate
    f1: float | None
    wrong_flags: tuple[Finding, ...]
    misses: tuple[Finding, ...]

    @property
    def flags(self) -> int:
        """All flags, whatever they name."""
        return self.right + self.between + self.wrong


def wilson(hits: int, trials: int) -> Rate:
    """Return the share with its interval (Wilson, "Probable inference", JASA 22, 1927); without trials it is 0 to 1."""
    if not trials:
        return Rate(None, 0.0, 1.0)
    share = hits / trials
    z2 = NORMAL_QUANTILE**2
    centre = share + z2 / (2 * trials)
    reach = NORMAL_QUANTILE * sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    scale = 1 + z2 / trials
    return Rate(share, max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale))


def by_id(verdicts: Iterable[Verdict], feed_ids: Sequence[str]) -> dict[str, Verdict]:
    """Return the one verdict of each article of the feed.

    ``ValueError`` where an article has none, where a verdict is of no article of the feed, and where an article has two
    that differ (the same one delivered twice is no error).
    """
    known = set(feed_ids)
    found: dict[str, Verdict] = {}
    for verdict in verdicts:
        if verdict.id not in known:
            raise ValueError(f"the verdict of {verdict.id!r} belongs to no article of the feed")
        if found.setdefault(verdict.id, verdict) != verdict:
            raise ValueError(f"{verdict.id!r} has two verdicts that differ")
    without = [article_id for article_id in feed_ids if article_id not in found]
    if without:
        raise ValueError(f"{len(without)} of {len(feed_ids)} articles have no verdict, the first is {without[0]!r}")
    return found


def measure(
    feed_ids: Sequence[str],
    pairs: Iterable[SimilarPair],
    verdicts: Iterable[Verdict],
    counted: Collection[str] | None = None,
) -> Quality:
    """Compare verdicts with the pairs of a feed, by the rules at the top of this module.

    ``counted`` are the ids of the articles whose verdicts are counted; without it all are.

    ``ValueError`` as ``by_id``, and where a pair names an article that is not in the feed.
    """
    judged = by_id(verdicts, feed_ids)
    listed = tuple(pairs)
    of_these = {article_id: judged[article_id] for article_id in feed_ids if counted is None or article_id in counted}
    flags = [verdict for verdict in of_these.values() if verdict.outcome == "duplicate"]
    likeness = _likeness(listed)
    named = [(flag, _likeness_of_named(flag, likeness)) for flag in flags]
    right = sum(alike.jaccard >= RIGHT_JACCARD_MIN for _, alike in named)
    wrong = sorted(
        (
            Finding(flag.id, flag.duplicate_of or "", *alike, flag.similarity, flag.distance)
            for flag, alike in named
            if alike.jaccard < WRONG_JACCARD_BELOW
        ),
        key=lambda finding: finding.jaccard,
    )
    owed = {article_id: pair for article_id, pair in _most_alike_kept(listed, judged).items() if article_id in of_these}
    misses = sorted(
        (
            Finding(article_id, pair.earlier, pair.jaccard, pair.containment, None, None)
            for article_id, pair in owed.items()
            if judged[article_id].outcome == "unique"
        ),
        key=lambda finding: -finding.jaccard,
    )
    found = sum(judged[article_id].outcome == "duplicate" for article_id in owed)
    precision, recall = wilson(right, right + len(wrong)), wilson(found, found + len(misses))
    return Quality(
        articles=len(of_these),
        kept=sum(verdict.outcome == "unique" for verdict in of_these.values()),
        retracted=sum(verdict.outcome == "retracted" for verdict in of_these.values()),
        right=right,
        between=len(flags) - right - len(wrong),
        wrong=len(wrong),
        found=found,
        missed=len(misses),
        precision=precision,
        precision_strict=wilson(right, len(flags)),
        recall=recall,
        f1=_f1(precision.value, recall.value),
        wrong_flags=tuple(wrong),
        misses=tuple(misses),
    )


def _likeness(pairs: Iterable[SimilarPair]) -> dict[frozenset[str], Likeness]:
    """Index pairs without their order, for consumers side by side need not judge in the order of the feed."""
    return {frozenset((pair.earlier, pair.later)): Likeness(pair.jaccard, pair.containment) for pair in pairs}


def _likeness_of_named(flag: Verdict, likeness: Mapping[frozenset[str], Likeness]) -> Likeness:
    return likeness.get(frozenset((flag.id, flag.duplicate_of or "")), Likeness(0.0, 0.0))


def _most_alike_kept(pairs: Iterable[SimilarPair], judged: Mapping[str, Verdict]) -> dict[str, SimilarPair]:
    """For each article with an earlier kept one at 0.8 or more, return the pair with the most alike of those."""
    best: dict[str, SimilarPair] = {}
    for pair in pairs:
        if pair.earlier not in judged or pair.later not in judged:
            raise ValueError(f"the pair {pair.earlier!r}, {pair.later!r} is not of this feed")
        if pair.jaccard < MISSED_JACCARD_MIN or judged[pair.earlier].outcome != "unique":
            continue
        if pair.later not in best or pair.jaccard > best[pair.later].jaccard:
            best[pair.later] = pair
    return best


def _f1(precision: float | None, recall: float | None) -> float | None:
    """Return the harmonic mean; None where one of the two is missing or both are nought."""
    if precision is None or recall is None or precision + recall == 0:
        return None
    return 2 * precision * recall / (precision + recall)


def _rate_text(rate: Rate) -> str:
    return "–" if rate.value is None else f"{rate.value:.4f}  ({rate.low:.4f} – {rate.high:.4f})"


def _counts_table(quality: Quality) -> Table:
    table = Table(title="Quality of verdicts", show_header=False)
    between_share = quality.between / quality.flags if quality.flags else 0.0
    rows = {
        "articles": f"{quality.articles}",
        "kept": f"{quality.kept}",
        "retracted": f"{quality.retracted}",
        "flags": f"{quality.flags}",
        "  right (named article >= 0.7)": f"{quality.right}",
        "  between (0.5 to 0.7)": f"{quality.between}  ({between_share:.1%} of flags)",
        "  wrong (< 0.5)": f"{quality.wrong}",
        "earlier kept one >= 0.8": f"{quality.found + quality.missed}",
        "  found": f"{quality.found}",
        "  missed": f"{quality.missed}",
        "precision, without those between": _rate_text(quality.precision),
        "precision, strict: between is wrong": _rate_text(quality.precision_strict),
        "recall": _rate_text(quality.recall),
        "F1": "–" if quality.f1 is None else f"{quality.f1:.4f}",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _findings_table(title: str, findings: Sequence[Finding]) -> Table:
    table = Table("article", "other", "Jaccard", "containment", "stated", "distance", title=title)
    for finding in findings:
        stated = "" if finding.stated_similarity is None else f"{finding.stated_similarity:.4f}"
        distance = "" if finding.distance is None else f"{finding.distance}"
        likeness = (f"{finding.jaccard:.4f}", f"{finding.containment:.4f}")
        table.add_row(finding.id, finding.other, *likeness, stated, distance)
    return table


def main(
    feed: Annotated[
        Path, typer.Option(exists=True, dir_okay=False, help="Articles as JSON lines, in feed order; .gz is unpacked.")
    ],
    pairs: Annotated[
        Path,
        typer.Option(exists=True, dir_okay=False, help="Pairs of that feed, as benchmarks.quality.pairs writes them."),
    ],
    verdicts: Annotated[
        Path, typer.Option(exists=True, dir_okay=False, help="One verdict for each article, as dupwatch writes them.")
    ],
    show: Annotated[int, typer.Option(min=0, help="How many of the worst wrong flags and misses to list.")] = 0,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Compare verdicts with the exact pairs of their feed."""
    try:
        feed_ids = [article.id for article in read_feed(feed)]
        quality = measure(feed_ids, read_lines(pairs, SimilarPair), read_lines(verdicts, Verdict))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    worst = {"wrong flags": quality.wrong_flags[:show], "misses": quality.misses[:show]}
    if json:
        shown = {"wrong_flags": worst["wrong flags"], "misses": worst["misses"]}
        report = msgspec.to_builtins(quality) | {"flags": quality.flags} | shown
        typer.echo(msgspec.json.encode(report))
        return
    console = Console()
    console.print(_counts_table(quality))
    for title, findings in worst.items():
        if findings:
            console.print(_findings_table(f"Worst {title}", findings))


if __name__ == "__main__":
    typer.run(main)
