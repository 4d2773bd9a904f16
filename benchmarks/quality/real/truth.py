"""What counts as right on a set of real texts, and how flags are counted by it.

A flag names an earlier text for a later one. ``Counts`` has the numbers from which precision and recall are computed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

from benchmarks.quality.feed import Article
from benchmarks.quality.pairs import SimilarPair
from benchmarks.quality.score import Verdict, measure

SAME: Final = "S"
VARIANT: Final = "V"
DOUBTFUL: Final = "D"
EQUAL_OF_ANOTHER_YEAR: Final = "E"
SPAM_EXPECTED_MIN: Final = 0.5
"""Spam with an earlier one of this Jaccard similarity should be flagged."""
SPAM_RIGHT_MIN: Final = 0.4
"""A flag on messages that are less alike is wrong."""


class Flag(NamedTuple):
    """The ids of the text that a detector names, and of the later one that it flags."""

    earlier: str
    later: str


class Counts(NamedTuple):
    """Flags: all, right and wrong ones; others count nowhere. ``found`` of the ``expected`` texts or pairs are flagged.

    ``variants`` of the right flags are on texts that differ in a name, place or date.
    """

    flags: int
    right: int
    wrong: int
    found: int
    expected: int
    variants: int = 0

    @property
    def precision(self) -> float | None:
        """Return right / (right + wrong); None without either."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else None

    @property
    def recall(self) -> float | None:
        """Return found / expected; None if nothing is expected."""
        return self.found / self.expected if self.expected else None

    @property
    def f1(self) -> float | None:
        """Return the harmonic mean of precision and recall; None without recall, 0 if nothing right is found."""
        if self.recall is None:
            return None
        both = (self.precision or 0.0) + self.recall
        return 2 * (self.precision or 0.0) * self.recall / both if both else 0.0


def total(counts: Iterable[Counts]) -> Counts:
    """Add counts of several runs on one set."""
    return Counts(*(sum(column) for column in zip(*counts, strict=True)))


class Truth(Protocol):
    """Counts flags by the labels or the computed similarities of a set."""

    def count(self, flags: Sequence[Flag]) -> Counts:
        """Count the flags of a whole run."""
        ...


@dataclass(frozen=True, slots=True)
class RealSet:
    """Texts in the order of their arrival, and the truth about them.

    If ``in_pairs`` is set, texts 0 and 1, 2 and 3 and so on are pairs, and each is judged alone.
    """

    name: str
    articles: Sequence[Article]
    truth: Truth
    in_pairs: bool = False

    def feeds(self) -> Iterator[Sequence[Article]]:
        """Yield what is judged together: all texts, or two at a time."""
        if not self.in_pairs:
            yield self.articles
            return
        for place in range(0, len(self.articles), 2):
            yield self.articles[place : place + 2]


class Groups:
    """Texts joined by labels; a text without a label is a group of its own."""

    def __init__(self, joined: Iterable[tuple[str, str]]) -> None:
        self._up: dict[str, str] = {}
        for one, other in joined:
            self._up[self[other]] = self[one]

    def __getitem__(self, text: str) -> str:
        while self._up.get(text, text) != text:
            text = self._up[text]
        return text


@dataclass(frozen=True, slots=True)
class LabelledPosts:
    """Posts of which people labelled pairs: the same post, a variant, doubtful, or something else.

    Same posts form groups. A post is expected to be flagged if an earlier one is in its group. Flags on variants count
    as right, doubtful ones nowhere, and all others are wrong.
    """

    ids: Sequence[str]
    labels: Mapping[tuple[str, str], str]

    def count(self, flags: Sequence[Flag]) -> Counts:
        """Count the flags."""
        labels = sorted(self.labels.items())
        same = Groups(pair for pair, label in labels if label == SAME)
        with_variants = Groups(pair for pair, label in labels if label in {SAME, VARIANT})
        order = {text: place for place, text in enumerate(self.ids)}
        kinds = []
        for earlier, later in flags:
            pair = (earlier, later) if order[earlier] < order[later] else (later, earlier)
            label = self.labels.get(pair, "")
            if label and label != SAME:
                kinds.append(label)
            elif same[earlier] == same[later]:
                kinds.append(SAME)
            else:
                kinds.append(VARIANT if with_variants[earlier] == with_variants[later] else label)
        expected = later_members(self.ids, same)
        flagged = {later for _, later in flags}
        right = sum(kind in {SAME, VARIANT} for kind in kinds)
        doubtful = kinds.count(DOUBTFUL)
        found = sum(text in flagged for text in expected)
        return Counts(
            len(flags), right, len(flags) - right - doubtful, found, len(expected), variants=kinds.count(VARIANT)
        )


@dataclass(frozen=True, slots=True)
class LabelledFrames:
    """News in frames that return with other facts: a flag is right only if its label says that the text is the same.

    No copies are expected, so there is no recall.
    """

    labels: Mapping[tuple[str, str], str]

    def count(self, flags: Sequence[Flag]) -> Counts:
        """Count the flags."""
        labels = [self.labels.get((one, other), self.labels.get((other, one))) for one, other in flags]
        right = sum(label in {SAME, EQUAL_OF_ANOTHER_YEAR} for label in labels)
        return Counts(len(flags), right, len(flags) - right, 0, 0)


@dataclass(frozen=True, slots=True)
class SpamPairs:
    """Messages with their Jaccard similarities: spam that returns is expected.

    A flag is wrong if it joins spam with another message, or messages that are hardly alike.
    """

    spam: Collection[str]
    similarities: Mapping[tuple[str, str], float]

    def count(self, flags: Sequence[Flag]) -> Counts:
        """Count the flags."""
        expected = {
            later
            for (earlier, later), similarity in self.similarities.items()
            if similarity >= SPAM_EXPECTED_MIN and earlier in self.spam and later in self.spam
        }
        flagged = {later for _, later in flags}
        wrong = sum(
            (flag.earlier in self.spam) != (flag.later in self.spam)
            or self.similarities.get(flag, 0.0) < SPAM_RIGHT_MIN
            for flag in flags
        )
        return Counts(len(flags), len(flags) - wrong, wrong, len(expected & flagged), len(expected))


@dataclass(frozen=True, slots=True)
class LabelledPairs:
    """Pairs that people called the same or not; without ``different``, all pairs that are not the same are not."""

    same: frozenset[frozenset[str]]
    different: frozenset[frozenset[str]] | None = None

    def count(self, flags: Sequence[Flag]) -> Counts:
        """Count the flags on labelled pairs."""
        flagged = {frozenset(flag) for flag in flags}
        right = len(flagged & self.same)
        wrong = len(flagged - self.same if self.different is None else flagged & self.different)
        return Counts(len(flags), right, wrong, right, len(self.same))


@dataclass(frozen=True, slots=True)
class LabelledGroups:
    """Documents in groups of copies: one is expected to be flagged if an earlier one is in its group."""

    ids: Sequence[str]
    groups: Groups

    def count(self, flags: Sequence[Flag]) -> Counts:
        """Count the flags."""
        right = sum(self.groups[earlier] == self.groups[later] for earlier, later in flags)
        flagged = {later for _, later in flags}
        expected = later_members(self.ids, self.groups)
        found = sum(text in flagged for text in expected)
        return Counts(len(flags), right, len(flags) - right, found, len(expected))


@dataclass(frozen=True, slots=True)
class ComputedPairs:
    """Texts with the exact similarities of all pairs, counted by the rules of ``benchmarks.quality.score``."""

    ids: Sequence[str]
    pairs: Sequence[SimilarPair]

    def count(self, flags: Sequence[Flag]) -> Counts:
        """Count the flags."""
        named = {later: earlier for earlier, later in flags}
        outcomes: dict[bool, Literal["unique", "duplicate"]] = {False: "unique", True: "duplicate"}
        verdicts = [Verdict(text, outcomes[text in named], named.get(text)) for text in self.ids]
        quality = measure(self.ids, self.pairs, verdicts)
        return Counts(len(flags), quality.right, quality.wrong, quality.found, quality.found + quality.missed)


def later_members(ids: Sequence[str], groups: Groups) -> list[str]:
    """Return the texts with an earlier one in their group, in order."""
    seen: set[str] = set()
    found = []
    for text in ids:
        group = groups[text]
        if group in seen:
            found.append(text)
        seen.add(group)
    return found
