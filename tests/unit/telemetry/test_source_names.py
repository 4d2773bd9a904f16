"""Names of sources as labels."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.telemetry.source_names import CHARS_MAX, NONE, OTHER, SourceNames


def test_the_first_that_come_have_names_of_their_own() -> None:
    """Later sources share one label for good; earlier ones keep theirs."""
    names = SourceNames(2)
    assert [names.label(source) for source in ("a", "b", "a", "c", "d", "b")] == ["a", "b", "a", OTHER, OTHER, "b"]
    assert names.labels == ("a", "b", NONE, OTHER)


def test_known_sources_come_first() -> None:
    """They exist before the first article, and count towards the limit."""
    names = SourceNames(2, ["ours"])
    assert names.labels == ("ours", NONE, OTHER)
    assert [names.label(source) for source in ("a", "b", "ours")] == ["a", OTHER, "ours"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", NONE),
        (" \t\n", NONE),
        ("\u200b\u202e", NONE),
        ("新华社", "新华社"),
        ("  The\u00a0 Daily\r\nPost ", "The Daily Post"),
        ("\u202eevil\u2066\x1b[31m\0", "evil[31m"),
        ("\ud800lone", "lone"),
        ("x" * 1000, "x" * CHARS_MAX),
        ("x" * (CHARS_MAX - 1) + " y", "x" * (CHARS_MAX - 1)),
        (OTHER, OTHER),
        (NONE, NONE),
    ],
)
def test_a_name_is_cleaned(source: str, expected: str) -> None:
    """No invisible characters, single spaces, bounded length; articles without a source have a label of their own."""
    assert SourceNames(10).label(source) == expected


def test_spellings_of_one_name_share_it() -> None:
    """They count as one source."""
    names = SourceNames(1)
    assert {names.label(spelling) for spelling in ("wire", " wire", "wi\u200bre")} == {"wire"}


def test_none_is_named_where_none_may_be() -> None:
    """With a limit of 0 all sources share a label, but articles without a source keep theirs."""
    names = SourceNames(0)
    assert [names.label(source) for source in ("a", "")] == [OTHER, NONE]


@given(sources=some.lists(some.text(max_size=80), max_size=8), names_max=some.integers(0, 5))
def test_whatever_comes_there_are_few_labels_and_all_are_fit(sources: list[str], names_max: int) -> None:
    """At most the limit and two more; each label is short, printable and never empty."""
    names = SourceNames(names_max)
    labels = {names.label(source) for source in sources}
    assert labels <= set(names.labels)
    assert len(names.labels) <= names_max + 2
    assert len(names._labels) <= names_max
    for label in names.labels:
        assert 0 < len(label) <= CHARS_MAX
        assert not any(unicodedata.category(char)[0] == "C" for char in label)
