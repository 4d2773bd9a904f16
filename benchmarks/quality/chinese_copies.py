"""A feed of the Chinese articles of a feed, each with a copy in the other script, by OpenCC.

``python -m benchmarks.quality.chinese_copies FEED -o OUT``. The copy comes at a random place after its original, with
``~`` and its kind in the id. Kinds of copies of simplified articles:

- ``s2t``, ``s2tw``, ``s2hk``: in traditional characters, with the variants of Taiwan or Hong Kong;
- ``s2twp``, ``s2hkp``: with the words of Taiwan or Hong Kong, too;
- ``t2s``, ``tw2sp``: the article itself stands in the feed in traditional characters (``tw2sp``: with the words of
  Taiwan, too), and its copy is that converted back.

Of traditional articles the copies are ``t2s`` and ``tw2sp`` of them as they are. Truth is computed on texts in
simplified characters: ``benchmarks.quality.pairs --simplified``.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from benchmarks.quality.chinese import Convert, is_chinese, is_traditional, opencc
from benchmarks.quality.edits import with_copies
from benchmarks.quality.feed import Article, read_feed, write_lines

# For each kind what the original is converted by first, if at all.
OF_SIMPLIFIED: Mapping[str, str | None] = {
    **dict.fromkeys(("s2t", "s2tw", "s2hk", "s2twp", "s2hkp")),
    "t2s": "s2t",
    "tw2sp": "s2twp",
}
OF_TRADITIONAL: Mapping[str, str | None] = dict.fromkeys(("t2s", "tw2sp"))


def feed_of_copies(articles: Sequence[Article], seed: int, load: Callable[[str], Convert] = opencc) -> list[Article]:
    """Return the Chinese articles with a copy of each, of a kind that is drawn.

    A copy that is no other text than its original is left out.
    """
    rng = random.Random(seed)
    conversion = cache(load)
    originals: list[Article] = []
    copies: list[tuple[int, Article]] = []
    for article in filter(is_chinese, articles):
        kinds = OF_TRADITIONAL if is_traditional(article) else OF_SIMPLIFIED
        kind = rng.choice(list(kinds))
        first = kinds[kind]
        original = _converted(article, conversion(first)) if first else article
        copy = _converted(original, conversion(kind))
        if copy.body != original.body:
            copies.append((len(originals), msgspec.structs.replace(copy, id=f"{article.id}~{kind}")))
        originals.append(original)
    return with_copies(originals, copies, rng)


def _converted(article: Article, convert: Convert) -> Article:
    return msgspec.structs.replace(article, body=convert(article.body), title=convert(article.title))


def main(
    feed: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Articles as JSON lines, in feed order.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The new feed; .gz is packed.")],
    seed: Annotated[int, typer.Option(help="Of the kinds and places of the copies.")] = 1,
) -> None:
    """Make a feed of Chinese articles and copies of them in the other script."""
    typer.echo(f"{write_lines(output, feed_of_copies(read_feed(feed), seed))} articles")


if __name__ == "__main__":
    typer.run(main)
