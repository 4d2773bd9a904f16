"""Generates articles in any number and length. A share of them are edited copies of earlier ones.

Words are drawn by their frequencies. Each article belongs to a field and repeats some of that field's words. Otherwise
nearly all words of a text would differ, and two texts on one subject would share no more than any two. Fields and
shares are set so that Chinese texts of 500 and 2,000 characters have about as many distinct words as real pages of that
length, and fingerprints as long rows.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.stress.vocabularies import FIELD_WORDS, FIELDS, SCRIPTS, Vocabulary, vocabulary

CHINESE: Final = "zh"
TOPIC_WORDS: Final = 80
TOPIC_SHARE: Final = 0.76
COPY_EDITS_SHARE_MAX: Final = 0.03
"""The largest share of a copy's words that are replaced. Its Jaccard similarity with the original stays above 0.8."""
ORIGINALS_MAX: Final = 10_000
"""A copy repeats one of the latest articles, at most this many."""
_COMMA_EVERY: Final = 9
_STOP_EVERY: Final = 27
_FIGURES: Final = ("2024", "3.5%", "120", "17", "1.2", "60%", "8", "2019", "AI", "5G", "GDP", "App")
_FIGURE_SHARE: Final = 0.02


class FeedText(NamedTuple):
    """An article. ``original`` is the id of the article that it is an edited copy of, or None."""

    id: str
    body: str
    original: str | None
    language: str = CHINESE


class _Draft(NamedTuple):
    """The words of an article, by number, and the id of the article whose words they are."""

    words: npt.NDArray[np.int32]
    language: str
    original: str


def make_feed(articles: int, chars: int, *, copies_share: float = 0.2, seed: int = 1) -> list[FeedText]:
    """Return Chinese articles of about ``chars`` characters; equal arguments give equal articles."""
    return list(islice(made_feed(chars, copies_share=copies_share, seed=seed), articles))


def made_feed(
    chars: int,
    *,
    languages: Sequence[str] = (CHINESE,),
    copies_share: float = 0.2,
    seed: int = 1,
    prefix: str | None = None,
) -> Iterator[FeedText]:
    """Yield articles without end; equal arguments give equal articles.

    ``chars`` is the approximate number of characters. The languages take turns, and a copy has that of its original.
    Ids are ``prefix``, a hyphen, and a number from 0 on; the default of the prefix is made from seed and length.
    """
    rng = np.random.default_rng(seed)
    drafts: deque[_Draft] = deque(maxlen=ORIGINALS_MAX)
    number = 0
    while True:
        article_id = f"{f'{seed}-{chars}' if prefix is None else prefix}-{number}"
        if drafts and rng.random() < copies_share:
            original = drafts[int(rng.integers(len(drafts)))]
            draft = original._replace(words=_edited(original, rng))
        else:
            language = languages[number % len(languages)]
            draft = _Draft(_new_words(chars, language, rng), language, article_id)
        drafts.append(draft)
        body = "".join(_written(draft, chars, rng))
        yield FeedText(article_id, body, None if draft.original == article_id else draft.original, draft.language)
        number += 1


def _new_words(chars: int, language: str, rng: np.random.Generator) -> npt.NDArray[np.int32]:
    """Return the words of a new article, by number."""
    words = vocabulary(language)
    count = max(int(chars * SCRIPTS[language].words_a_character), 1)
    field = words.fields[rng.integers(FIELDS)]
    # Some words of a field are in most of its texts, and some words of a text are repeated more often than others.
    topic = field[(FIELD_WORDS * rng.random(TOPIC_WORDS) ** 2).astype(np.int64)]
    places = (TOPIC_WORDS * rng.random(count) ** 2).astype(np.int64)
    chosen: npt.NDArray[np.int32] = topic[places].astype(np.int32)
    _draw_words(words, chosen, rng.random(count) >= TOPIC_SHARE, rng)
    return chosen


def _edited(draft: _Draft, rng: np.random.Generator) -> npt.NDArray[np.int32]:
    """Return the words of a draft, with a few replaced."""
    edited: npt.NDArray[np.int32] = draft.words.copy()
    is_replaced = rng.random(len(edited)) < rng.uniform(0, COPY_EDITS_SHARE_MAX)
    _draw_words(vocabulary(draft.language), edited, is_replaced, rng)
    return edited


def _written(draft: _Draft, chars: int, rng: np.random.Generator) -> Iterator[str]:
    """Yield the words with punctuation and figures, until the length is reached."""
    script = SCRIPTS[draft.language]
    words = vocabulary(draft.language).words[draft.words].tolist()
    # The word decides, so that a copy has its figures where the original has them.
    figures = (draft.words.astype(np.int64) * 2654435761 % 1000 < _FIGURE_SHARE * 1000).tolist()
    written = 0
    for place, (word, is_figure) in enumerate(zip(words, figures, strict=True), 1):
        token = _FIGURES[len(word) * place % len(_FIGURES)] if is_figure else word
        if place % _STOP_EVERY == 0:
            token += script.stop if place % (4 * _STOP_EVERY) else f"{script.stop}\n"
        elif place % _COMMA_EVERY == 0:
            token += script.comma
        if not token.endswith("\n"):
            token += script.space
        yield token
        written += len(token)
        if written >= chars:
            return
    yield str(rng.integers(10))


def _draw_words(
    known: Vocabulary,
    words: npt.NDArray[np.int32],
    places: npt.NDArray[np.bool_],
    rng: np.random.Generator,
) -> None:
    """Replace the words at these places with words drawn by their frequencies."""
    points = rng.random(len(words))[places] * known.cumulated[-1]
    words[places] = np.searchsorted(known.cumulated, points, side="right")
