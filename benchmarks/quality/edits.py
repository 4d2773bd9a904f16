"""Another feed from a feed: in another order, and with edited copies of some articles after their originals.

``python -m benchmarks.quality.edits FEED -o OUT --seed N --share 0.3 --shuffle``. Equal arguments give equal bytes.
``--edit reworded --edit truncated`` makes copies of these kinds only.
Which copies are still near-duplicates is not decided here: ``benchmarks.quality.pairs`` measures it.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from benchmarks.quality.feed import CJK, Article, in_feed_order, is_cjk, read_feed, write_lines

# Two ideographs or kana stand for a word, so that an edit in Chinese is about as long as a word is.
TOKEN = re.compile(rf"{CJK.pattern}{{1,2}}|(?:(?!{CJK.pattern})\w)+|\W+")
SENTENCE = re.compile(r".+?(?:[。！？]+|[.!?]+(?=\s)|$)\s*", re.DOTALL)

WORDS_EDITED_MIN, WORDS_EDITED_MAX = 0.02, 0.10
CUT_MIN, CUT_MAX = 0.10, 0.20
NOISE_SHARE = 0.03
SENTENCES_MOVED_SHARE = 0.1
ZERO_WIDTH_SPACE = "\u200b"

FRAMES = {
    True: [
        ("【转载】本文来自晨风资讯，版权归原作者所有。", "（责任编辑：小林）关注我们，获取更多内容。"),
        ("晨风资讯讯　", "声明：以上内容仅代表作者观点，与本站立场无关。"),
    ],
    False: [
        ("Reposted from the Morning Breeze with the author's kind permission. ", " Read more stories on our site."),
        ("(Morning Breeze) ", " The views above are the author's own. Share this page with your friends."),
    ],
}

Edit = Callable[[Article, random.Random, Sequence[str]], str]


def framed(article: Article, rng: random.Random, _words: Sequence[str]) -> str:
    """Put another site's header and footer around the text."""
    header, footer = rng.choice(FRAMES[is_cjk(article.lang, article.body)])
    return f"{header}{article.body}{footer}"


def reworded(article: Article, rng: random.Random, words: Sequence[str]) -> str:
    """Swap, delete or insert 2 to 10 % of the words; ``words`` are what is inserted."""
    tokens = TOKEN.findall(article.body)
    places = [place for place, token in enumerate(tokens) if _is_word(token)]
    share = rng.uniform(WORDS_EDITED_MIN, WORDS_EDITED_MAX)
    for place in rng.sample(places, min(len(places), max(1, round(share * len(places))))):
        kind = rng.randrange(3)
        if kind == 0:
            other = rng.choice(places)
            tokens[place], tokens[other] = tokens[other], tokens[place]
        elif kind == 1:
            tokens[place] = ""
        else:
            gap = "" if CJK.match(tokens[place]) else " "
            tokens[place] += gap + rng.choice(words)
    return "".join(tokens)


def rearranged(article: Article, rng: random.Random, _words: Sequence[str]) -> str:
    """Move one sentence in ten, at least one, to another place; a single one stays where it is."""
    sentences = SENTENCE.findall(article.body)
    if len(sentences) < 2:
        return article.body
    for _ in range(max(1, round(SENTENCES_MOVED_SHARE * len(sentences)))):
        before, after = rng.sample(range(len(sentences)), 2)
        sentences.insert(after, sentences.pop(before))
    return "".join(sentences)


def truncated(article: Article, rng: random.Random, _words: Sequence[str]) -> str:
    """Cut the last 10 to 20 % off."""
    return article.body[: round((1 - rng.uniform(CUT_MIN, CUT_MAX)) * len(article.body))]


def noisy(article: Article, rng: random.Random, _words: Sequence[str]) -> str:
    """Make some ASCII characters full-width and put zero-width spaces behind others; it reads the same."""
    chars = list(article.body)
    for place in rng.sample(range(len(chars)), round(NOISE_SHARE * len(chars))):
        if "!" <= chars[place] <= "~":
            chars[place] = chr(ord(chars[place]) + 0xFEE0)
        else:
            chars[place] += ZERO_WIDTH_SPACE
    return "".join(chars)


EDITS: Mapping[str, Edit] = {
    "framed": framed,
    "reworded": reworded,
    "rearranged": rearranged,
    "truncated": truncated,
    "noisy": noisy,
}


def _is_word(token: str) -> bool:
    return token[0].isalnum()


def edited_feed(
    articles: Sequence[Article], seed: int, share: float, *, shuffle: bool, names: Sequence[str] = tuple(EDITS)
) -> list[Article]:
    """Return the feed with edited copies of a ``share`` of its articles, each somewhere after its original.

    A copy's id is the original's with ``~`` and the name of the edit; publication times rise anew.
    """
    rng = random.Random(seed)
    ordered = rng.sample(articles, len(articles)) if shuffle else list(articles)
    words = _words_by_kind(ordered)

    def copies() -> Iterator[tuple[int, Article]]:
        for place in sorted(rng.sample(range(len(ordered)), round(share * len(ordered)))):
            article = ordered[place]
            name = rng.choice(names)
            body = EDITS[name](article, rng, words[is_cjk(article.lang, article.body)])
            yield place, msgspec.structs.replace(article, id=f"{article.id}~{name}", body=body)

    return with_copies(ordered, copies(), rng)


def with_copies(
    articles: Sequence[Article], copies: Iterable[tuple[int, Article]], rng: random.Random
) -> list[Article]:
    """Return the feed with each of the copies, given with the place of its original, somewhere after that."""
    # A copy sorts by a place drawn between its original and the end; an original by its own.
    placed = [(float(place), article) for place, article in enumerate(articles)]
    placed += [(rng.uniform(place, len(articles)), copy) for place, copy in copies]
    placed.sort(key=lambda place_and_article: place_and_article[0])
    return list(in_feed_order(article for _, article in placed))


def _words_by_kind(articles: Sequence[Article]) -> dict[bool, list[str]]:
    """Collect the words that edits insert, as often as they occur: for Chinese and Japanese, and for the rest."""
    words: dict[bool, list[str]] = {True: [], False: []}
    for article in articles:
        kind = words[is_cjk(article.lang, article.body)]
        kind += (token for token in TOKEN.findall(article.body) if _is_word(token))
    return words


def main(
    feed: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Articles as JSON lines, in feed order.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The new feed; .gz is packed.")],
    seed: Annotated[int, typer.Option(help="Of the order, the choice of articles and the edits.")] = 1,
    share: Annotated[float, typer.Option(min=0, max=1, help="Of the articles that get an edited copy.")] = 0.3,
    edit: Annotated[list[str] | None, typer.Option(help="Make copies of this kind only; may be repeated.")] = None,
    *,
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Put the articles into another order first.")] = False,
) -> None:
    """Make another feed from a feed."""
    unknown = sorted(set(edit or ()) - EDITS.keys())
    if unknown:
        raise typer.BadParameter(f"{unknown[0]} is no edit; there are {', '.join(EDITS)}", param_hint="--edit")
    edited = edited_feed(read_feed(feed), seed, share, shuffle=shuffle, names=edit or tuple(EDITS))
    typer.echo(f"{write_lines(output, edited)} articles")


if __name__ == "__main__":
    typer.run(main)
