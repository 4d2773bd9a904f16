"""Labelled pairs: every form that is read, and the errors for invalid lines."""

import json

import pytest

from consumer.evaluation.labelled_pairs import LabelCut, LabelledPair, LabelledPairs, PairsLine, labelled_pairs
from consumer.model.errors import ConfigError

CUT = LabelCut(duplicate_from=0.8, unique_below=0.5)


def read(*rows: object) -> LabelledPairs:
    """Read rows as the lines of a file; bytes are used unchanged."""
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    return labelled_pairs([PairsLine(number, data) for number, data in enumerate(lines, 1)], CUT)


@pytest.mark.parametrize("label", [True, "duplicate", 1, 1.0, 0.8, 0.93])
def test_what_says_duplicate(label: object) -> None:
    """Duplicate is a boolean, a word, a digit, or a similarity from the cut on."""
    assert read(["x", "y", label]).pairs == (LabelledPair("x", "y", duplicate=True, line=1),)


@pytest.mark.parametrize("label", [False, "unique", 0, 0.0, 0.4999])
def test_what_says_unique(label: object) -> None:
    """Unique is a boolean, a word, a digit, or a similarity below the cut."""
    assert read(["x", "y", label]).pairs == (LabelledPair("x", "y", duplicate=False, line=1),)


def test_a_similarity_in_between_is_left_out_and_counted() -> None:
    """A similarity between the cuts is not a label."""
    found = read(["x", "y", True], ["x", "z", 0.5], ["y", "z", 0.7999])
    assert (len(found.pairs), found.left_out) == (1, 2)


def test_objects_and_lists_say_the_same() -> None:
    """A line may be an object or a list, may have additional values, and ids may be integers."""
    more = {"a": "x", "b": 7, "label": "unique", "who": "me"}
    assert read(more).pairs == read(["x", 7, 0.41, 0.9]).pairs == read(["x", "7", False]).pairs


def test_a_byte_order_mark_is_passed_over() -> None:
    """Some editors write a byte order mark at the beginning of a file."""
    assert read(b'\xef\xbb\xbf["x", "y", true]').pairs[0].a == "x"


def test_a_repeated_pair_counts_once() -> None:
    """The same two ids are the same pair in either order; the line is the first one."""
    found = read(["x", "y", True], ["y", "x", 1], ["x", "y", "duplicate"], ["x", "z", 0.6], ["z", "x", 0.7])
    assert found == LabelledPairs((LabelledPair("x", "y", duplicate=True, line=1),), left_out=1, repeated=3)


def test_a_contradiction_is_an_error_with_both_lines() -> None:
    """A pair cannot have two labels."""
    with pytest.raises(ConfigError, match=r"^line 3 of the pairs: 'y' and 'x' have another label on line 1$"):
        read(["x", "y", True], ["x", "z", True], ["y", "x", False])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"[1, 2", "not JSON"),
        (b'["\xff", "y", true]', "not JSON"),
        (b"[" * 100_000, "this is not JSON: it is nested too deep"),
        ("x", "not a labelled pair"),
        (["x", "y"], "not a labelled pair"),
        ({"a": "x"}, "the object lacks 'b', 'label'"),
        (["", "y", True], "a is not an id"),
        (["x", None, True], "b is not an id"),
        ([True, "y", True], "a is not an id"),
        (["x", "x", True], "cannot be a duplicate of itself"),
        ([7, "7", True], "cannot be a duplicate of itself"),
        (["x", "y", "yes"], "the label must be"),
        (["x", "y", None], "the label must be"),
        (["x", "y", 1.01], "the label must be"),
        (["x", "y", -0.1], "the label must be"),
        (["x", "y", []], "the label must be"),
    ],
)
def test_a_line_that_is_no_pair_is_an_error_with_its_reason(row: object, reason: str) -> None:
    """The error has the line number and the reason."""
    with pytest.raises(ConfigError, match=f"^line 2 of the pairs: .*{reason}"):
        read(["x", "y", True], row)


@pytest.mark.parametrize(("rows", "fault"), [([], "is empty"), ([["x", "y", 0.6]], "no pair has a label")])
def test_no_label_at_all_is_an_error(rows: list[object], fault: str) -> None:
    """Without labels there is nothing to measure."""
    with pytest.raises(ConfigError, match=fault):
        read(*rows)
