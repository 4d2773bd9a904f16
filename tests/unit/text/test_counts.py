"""Numbers with their nouns."""

import pytest

from consumer.text.counts import counted


@pytest.mark.parametrize(
    ("number", "noun", "plural", "told"),
    [(0, "item", None, "0 items"), (1, "item", None, "1 item"), (1_024, "item", None, "1,024 items"),
     (1, "copy", "copies", "1 copy"), (2, "copy", "copies", "2 copies")],
)  # fmt: skip
def test_one_is_singular(number: int, noun: str, plural: str | None, told: str) -> None:
    """And nothing else is."""
    assert counted(number, noun, plural) == told
