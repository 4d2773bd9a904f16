"""Names are visible, and names that look the same are one name."""

import pytest

from consumer.text.names import is_name, name_key


@pytest.mark.parametrize("name", ["Ann", "می\u200cخواهم", "क्\u200dष", "王伟", "Other figures", "👩\u200d🌾"])
def test_names_of_all_scripts(name: str) -> None:
    """With the joiners that their words are spelled with."""
    assert is_name(name)


@pytest.mark.parametrize("name", ["", " ", "\u200c", "a\nb", "a\u202eb", "a\u200bb", "a\x1b[31m", "\ue000"])
def test_what_is_not_visible_is_no_name(name: str) -> None:
    """Line ends, control characters, overrides of direction, and nothing at all."""
    assert not is_name(name)


def test_names_that_look_the_same_have_one_key() -> None:
    """In any case or width, with or without joiners; other letters are another name."""
    assert len({name_key(name) for name in ("Ann", "ann", "ANN", "Ａｎｎ", "An\u200dn")}) == 1
    assert name_key("Straße") == name_key("STRASSE")
    assert name_key("Ann") != name_key("Anna")
