"""Finds the flags whose texts contain all words of a search."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection, select

from consumer.reviews.tables import SEARCH_PAGES, SEARCH_PARTS
from consumer.reviews.word_index.pages import NO_NUMBERS, Numbers, flags_with_word, unpack_ids
from consumer.reviews.word_index.words import Terms


class TextHits(NamedTuple):
    """The ids of flags, in order, including some that were recently decided.

    ``by_characters``: no text has all words, and the texts of these flags have all characters of the words.
    """

    flag_ids: Numbers
    by_characters: bool


def text_hits(connection: Connection, terms: Terms) -> TextHits:
    """Return the flags whose texts have all words of a search or, if no text does, all its characters."""
    in_use = select(SEARCH_PARTS.c.part_id, SEARCH_PARTS.c.flag_ids).where(SEARCH_PARTS.c.replaced_ms.is_(None))
    ids = {part_id: unpack_ids(content) for part_id, content in connection.execute(in_use)}
    found = _flags_with_all(connection, ids, terms.words)
    if len(found) or set(terms.characters) <= set(terms.words):
        return TextHits(found, by_characters=False)
    found = _flags_with_all(connection, ids, terms.characters)
    return TextHits(found, by_characters=len(found) > 0)


def _flags_with_all(connection: Connection, ids: Mapping[int, Numbers], words: Sequence[int]) -> Numbers:
    """Return the flags that have all words, given the flags of each part. Without words, there are none."""
    masks = {part_id: np.ones(len(of_part), np.bool_) for part_id, of_part in ids.items() if words}
    for word in words:
        last = (
            select(SEARCH_PAGES.c.content)
            .where(SEARCH_PAGES.c.part_id == SEARCH_PARTS.c.part_id, SEARCH_PAGES.c.first_word <= word)
            .order_by(SEARCH_PAGES.c.first_word.desc())
            .limit(1)
            .scalar_subquery()
        )
        for part_id, content in connection.execute(
            select(SEARCH_PARTS.c.part_id, last).where(SEARCH_PARTS.c.part_id.in_(list(masks)))
        ):
            has_word = np.zeros(len(ids[part_id]), np.bool_)
            has_word[NO_NUMBERS if content is None else flags_with_word(content, word)] = True
            masks[part_id] &= has_word
        masks = {part_id: mask for part_id, mask in masks.items() if mask.any()}
        if not masks:
            break
    flag_ids = np.unique(np.concatenate([NO_NUMBERS, *(ids[part_id][mask] for part_id, mask in masks.items())]))
    return flag_ids[flag_ids > 0]
