"""Articles made for measuring: Chinese vocabulary with its real frequencies, in any number and length.

Words are drawn from the frequency dictionary that jieba ships. Each article belongs to a field and repeats some of that
field's words: without, nearly every word of a text would be another, and texts on one subject would share no more than
any two. Fields and shares are set so that 500 and 2,000 characters have about as many distinct words as real Chinese
pages of that length, and fingerprints as long rows. A share of the articles are edited copies of earlier ones.
"""

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

FIELDS: Final = 24
FIELD_WORDS: Final = 240
TOPIC_WORDS: Final = 80
TOPIC_SHARE: Final = 0.76
COPY_EDITS_SHARE_MAX: Final = 0.03
"""Of the words of a copy: up to here its Jaccard similarity with the original stays above 0.8."""
_TOKENS_A_CHARACTER: Final = 0.7
_COMMA_EVERY: Final = 9
_STOP_EVERY: Final = 27
_FIGURES: Final = ("2024", "3.5%", "120", "17", "1.2", "60%", "8", "2019", "AI", "5G", "GDP", "App")
_FIGURE_SHARE: Final = 0.02
_FIELDS_SEED: Final = 20
_HAN: Final = ("\u4e00", "\u9fff")


class FeedText(NamedTuple):
    """An article; ``original`` is the id of the one it is an edited copy of, None where it is of its own."""

    id: str
    body: str
    original: str | None


class _Vocabulary(NamedTuple):
    """Words, the running sum of their frequencies, and the words of each field: int64[fields, words], by number."""

    words: npt.NDArray[np.object_]
    cumulated: npt.NDArray[np.float64]
    fields: npt.NDArray[np.int64]


def make_feed(articles: int, chars: int, *, copies_share: float = 0.2, seed: int = 1) -> list[FeedText]:
    """Make articles of about ``chars`` characters; equal arguments make equal articles."""
    rng = np.random.default_rng(seed)
    drafts: list[npt.NDArray[np.int64]] = []
    feed: list[FeedText] = []
    for number in range(articles):
        original = None
        if drafts and rng.random() < copies_share:
            copied = int(rng.integers(len(drafts)))
            original = feed[copied].original or feed[copied].id
            draft = _edited(drafts[copied], rng)
        else:
            draft = _draft(chars, rng)
        drafts.append(draft)
        feed.append(FeedText(f"{seed}-{chars}-{number}", "".join(_written(draft, chars, rng)), original))
    return feed


def _draft(chars: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Choose the words, by number."""
    vocabulary = _vocabulary()
    tokens = int(chars * _TOKENS_A_CHARACTER)
    field = vocabulary.fields[rng.integers(FIELDS)]
    # In a field some words are in most texts; and in a text, too, the first words are said more often than the last.
    topic = field[(FIELD_WORDS * rng.random(TOPIC_WORDS) ** 2).astype(np.int64)]
    places = (TOPIC_WORDS * rng.random(tokens) ** 2).astype(np.int64)
    return np.where(rng.random(tokens) < TOPIC_SHARE, topic[places], _drawn_words(tokens, rng))


def _edited(draft: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Replace some words by others."""
    return np.where(rng.random(len(draft)) < rng.uniform(0, COPY_EDITS_SHARE_MAX), _drawn_words(len(draft), rng), draft)


def _written(draft: npt.NDArray[np.int64], chars: int, rng: np.random.Generator) -> Iterator[str]:
    """Write the words with punctuation and figures, until the length is reached."""
    words = _vocabulary().words[draft].tolist()
    # By the word, not by chance: a copy has its figures where the original has them.
    figures = (draft * 2654435761 % 1000 < _FIGURE_SHARE * 1000).tolist()
    written = 0
    for place, (word, is_figure) in enumerate(zip(words, figures, strict=True), 1):
        token = _FIGURES[len(word) * place % len(_FIGURES)] if is_figure else word
        if place % _STOP_EVERY == 0:
            token += "。" if place % (4 * _STOP_EVERY) else "。\n"
        elif place % _COMMA_EVERY == 0:
            token += "，"
        yield token
        written += len(token)
        if written >= chars:
            return
    yield str(rng.integers(10))


def _drawn_words(count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw words as often as they are said."""
    cumulated = _vocabulary().cumulated
    drawn: npt.NDArray[np.int64] = np.searchsorted(cumulated, rng.random(count) * cumulated[-1], side="right")
    return drawn


@cache
def _vocabulary() -> _Vocabulary:
    words: list[str] = []
    frequencies: list[float] = []
    for line in _dictionary().read_text(encoding="utf-8").splitlines():
        word, frequency, _ = line.split(" ", 2)
        if all(_HAN[0] <= character <= _HAN[1] for character in word):
            words.append(word)
            frequencies.append(float(frequency))
    counts = np.array(frequencies)
    topical = np.flatnonzero((np.array([len(word) for word in words]) > 1) & (counts > 0))
    # What a field is about is not what is said most: the square root lifts the rare words.
    shares = np.sqrt(counts[topical])
    rng = np.random.default_rng(_FIELDS_SEED)
    fields = rng.choice(topical, (FIELDS, FIELD_WORDS), p=shares / shares.sum())
    return _Vocabulary(np.array(words, dtype=object), np.cumsum(counts), fields)


def _dictionary() -> Path:
    spec = find_spec("jieba")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("jieba is not installed; its dictionary is needed", name="jieba")
    return Path(spec.submodule_search_locations[0]) / "dict.txt"
