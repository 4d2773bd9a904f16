"""Readers of labelled sets: ``NAME.jsonl.gz``, ``NAME-pairs.jsonl.gz`` and ``NAME-labels.jsonl``.

A feed is JSON lines of articles. Pairs are objects with the ids ``a`` and ``b`` and the similarities ``raw``, or, of
stories, lists of two ids and whether they are the same. Labels are objects with ``a``, ``b`` and ``label``.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

import msgspec

from benchmarks.quality.feed import Article, read_lines
from benchmarks.quality.real.layout import LayoutError, required
from benchmarks.quality.real.truth import (
    LabelledFrames,
    LabelledPairs,
    LabelledPosts,
    RealSet,
    SpamPairs,
)

_SPAM: Final = "spam"
_Line = TypeVar("_Line")


class FeedLine(msgspec.Struct, frozen=True):
    """What is read of a line of a feed."""

    id: str
    body: str
    lang: str = ""


class Label(msgspec.Struct, frozen=True):
    """The label of a pair, the earlier text first."""

    a: str
    b: str
    label: str


class MeasuredPair(msgspec.Struct, frozen=True):
    """A pair with its Jaccard similarity, and the share of each text in the other."""

    a: str
    b: str
    raw: tuple[float, float, float]


class StoryPair(NamedTuple):
    """Two articles and whether they are about the same story."""

    one: str
    other: str
    same: bool


def feed_of(folder: Path, name: str) -> list[Article]:
    """Read the texts of a set. Raises ``LayoutError``."""
    lines = _lines(folder / f"{name}.jsonl.gz", FeedLine)
    return [Article(id=line.id, body=line.body, lang=line.lang) for line in lines]


def posts(folder: Path) -> Iterator[RealSet]:
    """Read the labelled Weibo posts."""
    articles = feed_of(folder, "weibo")
    ids = [article.id for article in articles]
    yield RealSet("weibo", articles, LabelledPosts(ids, _labels(folder, "weibo", set(ids))))


def evening_news(folder: Path) -> Iterator[RealSet]:
    """Read the labelled items of the evening news."""
    articles = feed_of(folder, "lianbo")
    yield RealSet("lianbo", articles, LabelledFrames(_labels(folder, "lianbo", {article.id for article in articles})))


def messages(folder: Path) -> Iterator[RealSet]:
    """Read the messages with their similarities; the id of spam ends in ``spam``."""
    articles = feed_of(folder, "sms")
    pairs = {(pair.a, pair.b): pair.raw[0] for pair in _lines(folder / "sms-pairs.jsonl.gz", MeasuredPair)}
    spam = frozenset(article.id for article in articles if article.id.endswith(_SPAM))
    yield RealSet("sms", articles, SpamPairs(spam, pairs))


def stories(folder: Path) -> Iterator[RealSet]:
    """Read the news of the energy business; only the listed pairs are the same story."""
    same = frozenset(frozenset(pair[:2]) for pair in _story_pairs(folder, "chains") if pair.same)
    yield RealSet("chains", feed_of(folder, "chains"), LabelledPairs(same))


def channels(folder: Path) -> Iterator[RealSet]:
    """Read the news of channels; one truth for each language, over the feed of both."""
    articles = feed_of(folder, "telegram")
    langs = {article.id: article.lang for article in articles}
    pairs = list(_story_pairs(folder, "telegram"))
    for lang in sorted(set(langs.values())):
        of_lang = [pair for pair in pairs if langs.get(pair.one) == lang]
        same, different = (
            frozenset(frozenset(pair[:2]) for pair in of_lang if pair.same is kind) for kind in (True, False)
        )
        yield RealSet(f"telegram {lang}", articles, LabelledPairs(same, different))


def _labels(folder: Path, name: str, ids: set[str]) -> Mapping[tuple[str, str], str]:
    path = folder / f"{name}-labels.jsonl"
    labels = {(line.a, line.b): line.label for line in _lines(path, Label)}
    unknown = next((text for pair in labels for text in pair if text not in ids), None)
    if unknown is not None:
        raise LayoutError(f"{path} names {unknown}, which is not in the feed")
    return labels


def _story_pairs(folder: Path, name: str) -> Iterator[StoryPair]:
    return _lines(folder / f"{name}-pairs.jsonl.gz", StoryPair)


def _lines(path: Path, line_type: type[_Line]) -> Iterator[_Line]:
    try:
        yield from read_lines(required(path), line_type)
    except LayoutError:
        raise
    except (ValueError, OSError, EOFError) as error:
        raise LayoutError(f"{path} cannot be read: {error}") from error


Reader = Callable[[Path], Iterator[RealSet]]
READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {"weibo": posts, "lianbo": evening_news, "sms": messages, "chains": stories, "telegram": channels}
)
