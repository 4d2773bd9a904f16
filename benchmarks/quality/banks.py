"""How well items of banks are found: edited copies of known texts, and known texts within other articles.

``python -m benchmarks.quality.banks FEED``. Every second article with enough letters is an item of a ``deny`` bank. The
feed that is matched has, for each item, a copy with each edit of ``benchmarks.quality.edits`` and an article of its own
with the item in the middle, and all other articles as they are. What is right is known exactly: the Jaccard similarity
of the sets of shingles, and the share of an item's shingles that an article has.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import numpy as np
import typer

from benchmarks.quality.edits import EDITS, TOKEN
from benchmarks.quality.feed import Article, is_cjk, read_feed
from benchmarks.quality.judging import BATCH, KEYED, default_settings, lexicon
from benchmarks.quality.shingles import ShingleSets, normalise, shingle_sets
from benchmarks.speed.report import Row, publish
from consumer.banks.bank import Bank, BankItem, letters_in
from consumer.banks.known_texts import PART_LETTERS_MIN, KnownTexts
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model import article as model
from consumer.workers.engines import chosen_engine, new_engine
from storage.records import BankMatch

PART: Final = "banks_quality"
LETTERS_MIN: Final = 150
"""Shorter articles are no items here: an edit changes too much of them."""
_BANK: Final = Bank(bank="known", action="deny")
_CLASSES: Final = ((0.85, 1.01), (0.8, 0.85), (0.7, 0.8))


class Case(NamedTuple):
    """An article that is matched, the item that it was made from, None for one of its own, and how it was made."""

    text: str
    item: int | None
    kind: str


def cases_of(items: Sequence[Article], others: Sequence[Article], seed: int) -> Iterator[Case]:
    """Yield the articles to match."""
    rng = random.Random(seed)
    words = [token for other in others[:200] for token in TOKEN.findall(other.body) if token[0].isalnum()]
    for place, item in enumerate(items):
        for name, edit in EDITS.items():
            yield Case(edit(item, rng, words), place, name)
        around = others[place % len(others)].body
        middle = len(around) // 2
        yield Case(f"{around[:middle]}\n{item.body}\n{around[middle:]}", place, "part")
    for other in others:
        yield Case(other.body, None, "other")


def matches_of(items: Sequence[Article], cases: Sequence[Case]) -> list[tuple[BankMatch, ...]]:
    """Return what each article is found to repeat."""
    settings, words = default_settings(), lexicon()
    engine = new_engine(chosen_engine("auto", KEYED, words).name, KEYED, words, sketched=True, parts=False)
    known = KnownTexts(engine, settings, lambda: 0)
    known.change(
        [_BANK, *(BankItem(bank=_BANK.bank, item=str(place), text=item.body) for place, item in enumerate(items))]
    )
    builder = VersionBuilder(KEYED.name, settings.plan, settings.lane1)
    found: list[tuple[BankMatch, ...]] = []
    for start in range(0, len(cases), BATCH):
        texts = [case.text for case in cases[start : start + BATCH]]
        versions = builder.versions(
            [model.Article(str(place), text) for place, text in enumerate(texts)],
            [ArrivalTime(0, place) for place in range(len(texts))],
            engine.fingerprint(texts, None, known.known_shingles),
        )
        found += [version.record.bank_matches or () for version in known.with_matches(versions)]
    return found


class Truth(NamedTuple):
    """Exact similarities of articles and items, from the sets of their shingles; items come first."""

    sets: ShingleSets
    items: int

    def of(self, case: int, item: int) -> tuple[float, float]:
        """Return the Jaccard similarity, and the share of the item that stands in the article."""
        one, other = self._set(self.items + case), self._set(item)
        shared = len(np.intersect1d(one, other, assume_unique=True))
        return shared / max(1, len(one) + len(other) - shared), shared / max(1, len(other))

    def _set(self, place: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return self.sets.members[self.sets.starts[place] : self.sets.starts[place + 1]]


def rows_of(cases: Sequence[Case], found: Sequence[tuple[BankMatch, ...]], truth: Truth) -> list[Row]:
    """Return the recall of copies by their similarity, that of parts, and the precision of all matches."""
    hits, all_ = Counter[str](), Counter[str]()
    right = wrong = 0
    for place, (case, matches) in enumerate(zip(cases, found, strict=True)):
        if case.item is not None:
            similarity, share = truth.of(place, case.item)
            named = _class_of(similarity, share, case.kind)
            all_[named] += 1
            hits[named] += any(match.item == str(case.item) for match in matches)
        for match in matches:
            similarity, share = truth.of(place, int(match.item))
            is_right = (share if match.form == "part" else similarity) >= 0.5
            right, wrong = right + is_right, wrong + (not is_right)
    rows: list[Row] = [
        {"what": named, "cases": all_[named], "recall": hits[named] / all_[named]} for named in sorted(all_)
    ]
    return [*rows, {"what": "all matches", "cases": right + wrong, "precision": right / max(1, right + wrong)}]


def _class_of(similarity: float, share: float, kind: str) -> str:
    if kind == "part":
        return "parts, whole" if share > 0.99 else "parts, less at their ends"
    for low, high in _CLASSES:
        if low <= similarity < high:
            return f"copies, similarity {low:.2f} to {min(high, 1):.2f}"
    return "copies, less similar"


def main(
    feed: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Articles as JSON lines.")],
    seed: Annotated[int, typer.Option(help="Of the edits.")] = 1,
    items_max: Annotated[int, typer.Option("--items", min=1, help="At most so many items.")] = 2_000,
) -> None:
    """Measure how well items of banks are found."""
    articles = [each for each in read_feed(feed) if letters_in(each.body) >= max(LETTERS_MIN, PART_LETTERS_MIN)]
    items, others = articles[::2][:items_max], articles[1::2][:items_max]
    cases = list(cases_of(items, others, seed))
    found = matches_of(items, cases)
    texts = [
        normalise(text, drop_invisible=True)
        for text in (*(item.body for item in items), *(case.text for case in cases))
    ]
    truth = Truth(shingle_sets(texts, 9, 5), len(items))
    scripts = sum(is_cjk(item.lang, item.body) for item in items)
    publish(
        PART, f"Items of banks in {feed.name}: {len(items):,} items, {scripts:,} of them in Chinese or Japanese",
        rows_of(cases, found, truth), feed=feed.name, seed=seed,
    )  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
