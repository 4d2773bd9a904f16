"""Short posts: sent again verbatim, and with one character changed, which makes another post.

``python -m benchmarks.quality.short_posts FEED`` takes the beginnings of sentences of the feed's articles, up to 30
characters, and posts of emoji that are made here. dupwatch judges them all, with each scheme: first the posts, then
their verbatim copies and their changed ones, mixed. Every verbatim copy should be flagged as one of its post, and
nothing else should be flagged.
"""

import random
import tempfile
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
import typer

from benchmarks.quality.edits import SENTENCE
from benchmarks.quality.feed import Article, in_feed_order, read_feed, write_lines
from benchmarks.quality.schemes import SCHEMES, judge_with_scheme
from benchmarks.quality.score import Verdict
from benchmarks.quality.shingles import INVISIBLE
from benchmarks.speed.report import OUT, Row, publish, tell

PART: Final = "short_posts"
POST_CHARS_MIN, POST_CHARS_MAX = 10, 30
POSTS_OF_LANG_MAX: Final = 120
EMOJI_LANG: Final = "emoji"
EMOJI_POSTS: Final = 60
EMOJI_IN_POST_MAX: Final = 8
# Of one character, and of several: a flag, a skin tone, a profession.
EMOJI: Final = (
    *"😀😂😍🤔😭😎🙏👏🔥🎉🚀🌍🌧🌈🍎🍜🍵🎂⚽🏆🚲🚢📷📚💡🔒🐈🐕🐟🌲🌻⭐",
    "🇻🇳",
    "🇹🇷",
    "👍🏽",
    "👋🏿",
    "👩\u200d🔬",
)
VERBATIM: Final = "verbatim"
CHANGED: Final = "changed"


class Posts(NamedTuple):
    """The feed, and how many posts there are of each language."""

    articles: list[Article]
    counts: Mapping[str, int]


def beginnings(articles: Iterable[Article]) -> Iterator[Article]:
    """Yield the beginning of the second sentence of each article, in whole words up to 30 characters.

    The first sentence of a passage may lack its own beginning.
    """
    for article in articles:
        sentences = SENTENCE.findall(article.body)
        sentence = sentences[1].strip() if len(sentences) > 1 else ""
        cut = sentence if len(sentence) <= POST_CHARS_MAX else sentence[: POST_CHARS_MAX + 1].rpartition(" ")[0]
        if len(cut) >= POST_CHARS_MIN and any(not char.isascii() for char in cut):
            yield Article(id=article.id, body=cut, lang=article.lang)


def emoji_posts(rng: random.Random) -> Iterator[Article]:
    """Yield posts of one to eight emoji."""
    for number in range(EMOJI_POSTS):
        body = "".join(rng.choices(EMOJI, k=rng.randint(1, EMOJI_IN_POST_MAX)))
        yield Article(id=f"{EMOJI_LANG}/{number}", body=body, lang=EMOJI_LANG)


def feed_of_posts(articles: Sequence[Article], seed: int) -> Posts:
    """Return different posts, with a verbatim and a changed copy of each after all of them."""
    rng = random.Random(seed)
    drawn = rng.sample(articles, len(articles))
    posts: list[Article] = []
    seen: set[str] = set()
    counts: defaultdict[str, int] = defaultdict(int)
    for post in (*beginnings(drawn), *emoji_posts(rng)):
        if as_seen(post.body) in seen or counts[post.lang] == POSTS_OF_LANG_MAX:
            continue
        seen.add(as_seen(post.body))
        counts[post.lang] += 1
        posts.append(post)
    copies = [_copy(post, VERBATIM, post.body) for post in posts]
    copies += [_copy(post, CHANGED, _changed(post, posts, seen, rng)) for post in posts]
    return Posts(list(in_feed_order([*posts, *rng.sample(copies, len(copies))])), dict(sorted(counts.items())))


def as_seen(body: str) -> str:
    """Return what makes a post another one: all but case, width, white space and what is invisible."""
    return " ".join(INVISIBLE.sub("", unicodedata.normalize("NFKC", body).casefold()).split())


def _copy(post: Article, kind: str, body: str) -> Article:
    return msgspec.structs.replace(post, id=f"{post.id}~{kind}", body=body)


def _changed(post: Article, posts: Sequence[Article], seen: set[str], rng: random.Random) -> str:
    """Put another letter of the language, or another emoji, in the place of one, so that it is no post of the feed."""
    if post.lang == EMOJI_LANG:
        letters, parts = list(EMOJI), list(_emoji_of(post.body))
    else:
        letters = sorted({char for other in posts if other.lang == post.lang for char in other.body if char.isalpha()})
        parts = list(post.body)
    places = [place for place, part in enumerate(parts) if part in letters]
    while True:
        place, letter = rng.choice(places), rng.choice(letters)
        body = "".join([*parts[:place], letter, *parts[place + 1 :]])
        if as_seen(body) not in seen:
            seen.add(as_seen(body))
            return body


def _emoji_of(body: str) -> Iterator[str]:
    by_length = sorted(EMOJI, key=len, reverse=True)
    while body:
        emoji = next(emoji for emoji in by_length if body.startswith(emoji))
        yield emoji
        body = body.removeprefix(emoji)


def rows(posts: Posts, judged: Mapping[str, Sequence[Verdict]]) -> list[Row]:
    """Return a row for each language and scheme: what was flagged of each kind."""
    langs = {article.id: article.lang for article in posts.articles}
    found: list[Row] = []
    for lang, count in posts.counts.items():
        for scheme, verdicts in judged.items():
            flags = [verdict for verdict in verdicts if langs[verdict.id] == lang and verdict.outcome == "duplicate"]
            own = [flag for flag in flags if flag.id == f"{flag.duplicate_of}~{VERBATIM}"]
            found.append(
                {
                    "language": lang,
                    "scheme": scheme,
                    "posts": count,
                    "verbatim found": len(own),
                    "changed flagged": sum(flag.id.endswith(CHANGED) for flag in flags),
                    "other flags": sum(not flag.id.endswith(CHANGED) for flag in flags) - len(own),
                }
            )
    return found


def main(
    feed: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Articles as JSON lines, with languages.")],
    seed: Annotated[int, typer.Option(help="Of the posts, the changes and the order.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Count which copies of short posts are flagged."""
    posts = feed_of_posts(read_feed(feed), seed)
    judged = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "posts.jsonl"
        write_lines(path, posts.articles)
        for scheme in SCHEMES:
            tell(f"{scheme} …")
            judged[scheme] = judge_with_scheme(path, scheme)
    publish(PART, f"Short posts of {feed.name.partition('.')[0]}", rows(posts, judged), out=out, feed=feed.name)


if __name__ == "__main__":
    typer.run(main)
