"""Chinese texts in the other script, by OpenCC: what copies are made with, and what they are compared with."""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module

import msgspec

from benchmarks.quality.feed import Article

Convert = Callable[[str], str]
TRADITIONAL = {"tw", "hk", "mo", "hant"}


def opencc(name: str) -> Convert:
    """Return OpenCC's conversion of this name, s2twp for example; ``make bench`` installs the package ``opencc``."""
    convert: Convert = import_module("opencc").OpenCC(name).convert
    return convert


def is_chinese(article: Article) -> bool:
    """Say whether an article is Chinese by its language; Japanese is not, though it has the same characters."""
    return _subtags(article)[0] == "zh"


def is_traditional(article: Article) -> bool:
    """Say whether the language of a Chinese article is one that is written in traditional characters."""
    return not TRADITIONAL.isdisjoint(_subtags(article)[1:])


def _subtags(article: Article) -> list[str]:
    return article.lang.replace("_", "-").lower().split("-")


def converted(articles: Iterable[Article], convert: Convert) -> Iterator[Article]:
    """Convert the bodies of all articles, whatever language they declare: equal texts stay equal."""
    for article in articles:
        yield msgspec.structs.replace(article, body=convert(article.body))
