"""The length of a folded text, computed before it is folded."""

import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint.characters.folding import GROWTH_MAX, folded_length
from consumer.fingerprint.characters.normalise import normalise


def alone(character: str) -> int:
    """How many characters one becomes by itself."""
    return len(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold()))


def test_every_character_is_counted_as_what_it_becomes() -> None:
    """Those outside of the ranges that are looked at do not grow, in this version of Unicode as in the next."""
    characters = [chr(code) for code in range(sys.maxunicode + 1)]
    grown = {character: length for character in characters if (length := alone(character)) > 1}
    assert max(grown.values()) == GROWTH_MAX
    assert {character: folded_length(character) for character in grown} == grown
    others = "".join(character for character in characters if character not in grown)
    assert folded_length(others) == len(others)


@given(st.text(st.characters() | st.sampled_from("ﷺ㌖…ﬃẞΐ½①ｶﾞ\u0301\u0308\u0345\u0f81\u1112\u1161\u11ab"), max_size=40))
def test_no_text_becomes_longer(text: str) -> None:
    """Folding joins characters, and takes some out; nothing but the characters themselves makes a text longer."""
    assert len(normalise(text)) <= folded_length(text)
    assert len(text) <= folded_length(text) <= GROWTH_MAX * len(text)
