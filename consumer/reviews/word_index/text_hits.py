"""Finds the flags whose texts have all words of a search."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection, select

from consumer.reviews.tables import SEARCH_PAGES, SEARCH_PARTS
from consumer.reviews.word_index.pages import NO_NUMBERS, Numbers, flags_with, unpacked_ids
from consumer.reviews.word_index.words import Terms


class TextHits(NamedTuple):
    """The numbers of flags, in order; some may have been decided lately.

    ``by_characters``: no text has the words, and these have all of their characters.
    """

    flag_ids: Numbers
    by_characters: bool


def text_hits(connection: Connection, terms: Terms) -> TextHits:
    """Return the flags whose texts have all words, or else all characters of a search."""
    in_use = select(SEARCH_PARTS.c.part_id, SEARCH_PARTS.c.flag_ids).where(SEARCH_PARTS.c.replaced_ms.is_(None))
    ids = {part_id: unpacked_ids(content) for part_id, content in connection.execute(in_use)}
    found = _with_all(connection, ids, terms.words)
    if len(found) or set(terms.characters) <= set(terms.words):
        return TextHits(found, by_characters=False)
    found = _with_all(connection, ids, terms.characters)
    return TextHits(found, by_characters=len(found) > 0)


def _with_all(connection: Connection, ids: Mapping[int, Numbers], words: Sequence[int]) -> Numbers:
    """Return the flags that have all words, given those of each part."""
    have = {part_id: np.ones(len(of_part), np.bool_) for part_id, of_part in ids.items() if words}
    for word in words:
        last = (
            select(SEARCH_PAGES.c.content)
            .where(SEARCH_PAGES.c.part_id == SEARCH_PARTS.c.part_id, SEARCH_PAGES.c.first_word <= word)
            .order_by(SEARCH_PAGES.c.first_word.desc())
            .limit(1)
            .scalar_subquery()
        )
        for part_id, content in connection.execute(
            select(SEARCH_PARTS.c.part_id, last).where(SEARCH_PARTS.c.part_id.in_(list(have)))
        ):
            has_word = np.zeros(len(ids[part_id]), np.bool_)
            has_word[NO_NUMBERS if content is None else flags_with(content, word)] = True
            have[part_id] &= has_word
        have = {part_id: which for part_id, which in have.items() if which.any()}
        if not have:
            break
    flag_ids = np.unique(np.concatenate([NO_NUMBERS, *(ids[part_id][which] for part_id, which in have.items())]))
    return flag_ids[flag_ids > 0]
