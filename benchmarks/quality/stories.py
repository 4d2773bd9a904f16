"""How many articles of one story verdicts name: ``python -m benchmarks.quality.stories DIR``.

DIR has feeds of news, ``SET.jsonl.gz``, such as events that several papers tell, and for each the truth,
``SET-pairs.jsonl.gz``, with lines ``["id", "other id", true]``: whether two articles tell one story. If a set has
``false`` in any line, only these pairs are others; else all pairs that are not listed. Nothing is fetched.

Each feed is judged with ``judge.parts`` and a store in memory, in its order and within one window. *Flagged* is an
article with its ``duplicate_of``, *named* an article with all that its verdict names, as near or for a part.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
import typer

from benchmarks.quality.feed import Article, read_lines
from benchmarks.quality.parts_judged import judged
from benchmarks.quality.score import Rate, wilson
from benchmarks.speed.report import Row, publish
from consumer.model.verdict import Verdict

PART: Final = "stories"
PAIRS: Final = "-pairs.jsonl.gz"

Pair = frozenset[str]


class Told(msgspec.Struct, frozen=True):
    """An article of a feed; of its other members none counts."""

    id: str
    body: str
    lang: str = ""
    title: str = ""


class Truth(NamedTuple):
    """Pairs of one story, and pairs that are not; ``others`` is None if these are all that are not of one story."""

    same: frozenset[Pair]
    others: frozenset[Pair] | None

    def counts(self, found: frozenset[Pair], articles: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return how many pairs of one story were found, and of how many; the same for others."""
        if self.others is None:
            wrong, of = len(found - self.same), articles * (articles - 1) // 2 - len(self.same)
        else:
            wrong, of = len(found & self.others), len(self.others)
        return (len(found & self.same), len(self.same)), (wrong, of)


def read_truth(path: Path, languages: dict[str, str]) -> dict[str, Truth]:
    """Return the truth for each language. Raises ``ValueError`` for a pair of an article that the feed lacks."""
    pairs: defaultdict[str, dict[bool, set[Pair]]] = defaultdict(lambda: {True: set(), False: set()})
    for first, other, same in read_lines(path, tuple[str, str, bool]):
        if not {first, other} <= languages.keys():
            raise ValueError(f"{path}: the feed does not have both {first!r} and {other!r}")
        pairs[languages[first]][same].add(frozenset((first, other)))
    has_others = any(of[False] for of in pairs.values())
    return {
        language: Truth(frozenset(of[True]), frozenset(of[False]) if has_others else None)
        for language, of in sorted(pairs.items())
    }


def flagged(verdicts: Iterable[Verdict]) -> Iterator[Pair]:
    """Yield each flagged article with the one that it repeats."""
    for verdict in verdicts:
        if verdict.duplicate_of is not None:
            yield frozenset((verdict.id, verdict.duplicate_of))


def named(verdicts: Iterable[Verdict]) -> Iterator[Pair]:
    """Yield each article with all that its verdict names."""
    for verdict in verdicts:
        parts = verdict.parts if isinstance(verdict.parts, tuple) else ()
        near = (match.id for match in verdict.matches)
        for other in {*near, *(part.id for part in parts)}:
            yield frozenset((verdict.id, other))


def rows_of(name: str, told: Sequence[Told], truth: Path) -> Iterator[Row]:
    """Yield a row for each language of a set."""
    for language, of in read_truth(truth, {each.id: each.lang for each in told}).items():
        feed = [Article(id=each.id, body=each.body, lang=each.lang) for each in told if each.lang == language]
        verdicts = judged(feed).verdicts
        (flags, same), (wrong_flags, others) = of.counts(frozenset(flagged(verdicts)), len(feed))
        (names, _), (wrong_names, _) = of.counts(frozenset(named(verdicts)), len(feed))
        rate: Rate = wilson(names, same)
        yield {
            "set": f"{name} ({language})" if language else name,
            "texts": len(feed),
            "same story": same,
            "flagged": flags,
            "named": names,
            "share": rate.value,
            "from": rate.low,
            "to": rate.high,
            "others": others,
            "of these flagged": wrong_flags,
            "of these named": wrong_names,
        }


def main(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Has the sets.")],
    sets: Annotated[list[str] | None, typer.Option("--set", help="Which; default: chains and telegram.")] = None,
) -> None:
    """Measure how many pairs of one story verdicts name."""
    rows: list[Row] = []
    for name in sets or ["chains", "telegram"]:
        feed, truth = folder / f"{name}.jsonl.gz", folder / f"{name}{PAIRS}"
        for path in (feed, truth):
            if not path.exists():
                raise typer.BadParameter(f"{path} does not exist; --set chooses other sets")
        rows += rows_of(name, list(read_lines(feed, Told)), truth)
    publish(PART, "Pairs of one story that verdicts name", rows, folder=folder.name)


if __name__ == "__main__":
    typer.run(main)
