"""A feed with halves of its articles put into other texts, and with a common footer below some.

The copies come at a random place after their originals, with ``~`` and their kind in the id:

- ``half``: one half of an article of 800 characters and more, alone;
- ``framed``: such a half between sentences of another article, 100 to 400 characters of them before and behind;
- ``embedded``: such a half between two sentences of a whole other article of the same script.

One article in twenty gets the footer, in Chinese or in English; no half has a part of it.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from benchmarks.quality.edits import SENTENCE, with_copies
from benchmarks.quality.feed import Article, is_cjk

CHARS_MIN: Final = 800
"""Of the articles that are halved, so that 400 and more are in a copy."""
FRAME_CHARS: Final = (100, 400)
FOOTER_SHARE: Final = 0.05
FOOTERS: Final = {
    True: (
        "版权声明：本页文字由晨风资讯的编辑整理，未经书面许可不得用于商业目的。转载时请保留这一段声明，并写明出处与日期。"
        "文中观点只代表作者本人，不代表本站立场。如果发现错误，请写信给编辑部，我们会在三个工作日之内回复。"
        "读者可以订阅每周一期的简报，也可以在手机上阅读。本站使用的图片来自公开的图库，图片的权利属于它们的作者。"
        "联系方式、招聘信息和广告价目都在网站底部的链接里。晨风资讯，每天早晨与您见面，感谢您一直以来的支持。"
    ),
    False: (
        "The text on this page was put together by the editors of the Morning Breeze and may not be used commercially "
        "without a written permission. Whoever prints it elsewhere keeps this notice, names the source and gives the "
        "date. The views above are those of the author and not of this site. If you find a mistake, write to the desk, "
        "and somebody will answer within three working days. Readers can subscribe to a weekly letter or read on their "
        "phones. The pictures come from public collections, and the rights in them remain with whoever took them. "
        "Addresses, vacancies and prices of advertisements are behind the links at the bottom of every page."
    ),
}

Kind = Callable[[str, Article, random.Random], str]


def halved(text: str, rng: random.Random) -> str:
    """Cut the first, the second or a middle half out of a text."""
    length = len(text) // 2
    start = rng.choice((0, len(text) - length, rng.randrange(len(text) - length + 1)))
    return text[start : start + length]


def _half(half: str, _other: Article, _rng: random.Random) -> str:
    return half


def _framed(half: str, other: Article, rng: random.Random) -> str:
    before, behind = (other.body[: rng.randint(*FRAME_CHARS)], other.body[-rng.randint(*FRAME_CHARS) :])
    return f"{before} {half} {behind}"


def _embedded(half: str, other: Article, rng: random.Random) -> str:
    sentences = SENTENCE.findall(other.body)
    cut = rng.randrange(len(sentences) + 1)
    return f"{''.join(sentences[:cut])} {half} {''.join(sentences[cut:])}"


KINDS: Final[Mapping[str, Kind]] = {"half": _half, "framed": _framed, "embedded": _embedded}


def feed_of_parts(articles: Sequence[Article], seed: int, share: float) -> list[Article]:
    """Return the feed with footers, and with a copy of a ``share`` of the articles that are long enough."""
    rng = random.Random(seed)
    written = [_with_footer(article) if rng.random() < FOOTER_SHARE else article for article in articles]
    by_script = {
        cjk: [article for article in written if article.body and is_cjk(article.lang, article.body) == cjk]
        for cjk in (True, False)
    }
    long = [place for place, article in enumerate(articles) if len(article.body) >= CHARS_MIN]
    copies = []
    for place in sorted(rng.sample(long, round(share * len(long)))):
        article = articles[place]
        name = rng.choice(list(KINDS))
        other = rng.choice(by_script[is_cjk(article.lang, article.body)])
        body = KINDS[name](halved(article.body, rng), other, rng)
        copies.append((place, msgspec.structs.replace(article, id=f"{article.id}~{name}", body=body)))
    return with_copies(written, copies, rng)


def _with_footer(article: Article) -> Article:
    footer = FOOTERS[is_cjk(article.lang, article.body)]
    return msgspec.structs.replace(article, body=f"{article.body}\n\n{footer}")
