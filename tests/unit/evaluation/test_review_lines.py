"""Reading reviewed pairs, and saying what is wrong with a line."""

import json
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from consumer.evaluation.labelled_pairs import PairsLine
from consumer.evaluation.reviewed_pairs import ReviewedPair, reviewed_pairs
from consumer.model.errors import ConfigError
from tests.unit.evaluation.reviewing import lines_of, near_miss, review, reviews_by

SCHEMA: Final = json.loads((Path(__file__).parents[3] / "docs/schemas/review.schema.json").read_text())


def test_a_line_is_read_with_all_its_members() -> None:
    """Those that are not needed may be missing, and unknown ones are ignored."""
    whole = near_miss(0.7123, "right", distance=9, source="blog", original_source="wire", person="li", later="member")
    whole |= {"arrived_at": "1970-01-01T00:00:01.000Z", "at": "1970-01-01T00:00:02.500Z"}
    found = reviewed_pairs(
        lines_of([whole, {"schema": "dupwatch.review/1", "kind": "flag", "similarity": 1, "decision": "wrong"}])
    )
    assert found.pairs == (
        ReviewedPair(
            "near_miss",
            0.7123,
            right=True,
            source="blog",
            original_source="wire",
            sampled_in=10,
            arrived_ms=1_000,
            at_ms=2_500,
        ),
        ReviewedPair("flag", 1.0, right=False),
    )
    assert found.without_similarity == 0


def test_a_byte_order_mark_is_ignored() -> None:
    """Editors write one."""
    (line,) = lines_of([review()])
    assert len(reviewed_pairs([PairsLine(1, b"\xef\xbb\xbf" + line.data)]).pairs) == 1


def test_what_was_not_decided_is_read_too() -> None:
    """It says how many pairs there are."""
    found = reviewed_pairs(lines_of([review(0.8, None), review(0.9)]))
    assert [pair.right for pair in found.pairs] == [None, True]


def test_pairs_without_a_similarity_are_counted() -> None:
    """Plain SimHash flags them, and no threshold of similarity does."""
    found = reviewed_pairs(lines_of([review(None), review(0.9)]))
    assert (len(found.pairs), found.without_similarity) == (1, 1)


def test_repairs_of_stories_are_passed_over() -> None:
    """They say what belongs together, and nothing of a threshold."""
    names = {"id": "b", "version": "00", "original": "a", "original_version": None}
    repairs = [review(0.9, "wrong", kind="split", **names), review(None, "right", kind="merge", **names)]
    found = reviewed_pairs(lines_of([*repairs, review(0.8)]))
    assert [pair.similarity for pair in found.pairs] == [0.8]
    assert (found.without_similarity, found.reported.similarities) == (0, ())
    for row in repairs:
        jsonschema.validate(row, SCHEMA)
    with pytest.raises(ConfigError, match="decide nothing"):
        reviewed_pairs(lines_of(repairs))


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b"{", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"[]", "it is not a valid dupwatch.review/1: expected `object`"),
        (json.dumps(review() | {"schema": "dupwatch.review/2"}).encode(), "`$.schema`"),
        (json.dumps(review() | {"kind": "miss"}).encode(), "`$.kind`"),
        (json.dumps(review(1.5)).encode(), "`$.similarity`"),
        (json.dumps(review(decision="skip")).encode(), "`$.decision`"),
        (json.dumps(review(sampled_in=0.5)).encode(), "`$.sampled_in`"),
        (json.dumps({"schema": "dupwatch.review/1", "kind": "flag", "similarity": 0.9}).encode(), "`decision`"),
        (json.dumps(review(at="yesterday")).encode(), "at is not a time"),
        (json.dumps(review(arrived_at="2026")).encode(), "arrived_at is not a time"),
    ],
)
def test_a_line_that_is_none_is_named(line: bytes, named: str) -> None:
    """By its number, with the reason."""
    with pytest.raises(ConfigError) as raised:
        reviewed_pairs([*lines_of([review()]), PairsLine(2, line)])
    assert "line 2 of the reviews" in str(raised.value)
    assert named in str(raised.value)


@pytest.mark.parametrize("rows", [[], [review(0.9, None)], [review(None)]])
def test_reviews_that_decide_nothing(rows: list[dict[str, Any]]) -> None:
    """There is nothing to evaluate."""
    with pytest.raises(ConfigError, match="decide nothing"):
        reviewed_pairs(lines_of(rows))


def test_the_schema_describes_what_is_read() -> None:
    """What tests write, and the examples of the documentation, fit it."""
    unknown = review(source=None, original_source=None, at=None, arrived_at=None, person=None, distance=None)
    assert reviewed_pairs(lines_of([unknown])).pairs == (ReviewedPair("flag", 0.9, right=True),)
    for row in (review(), near_miss(), unknown, review(None, None), *reviews_by(0.7, 1)[:50]):
        jsonschema.validate(row, SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(review(decision="skip"), SCHEMA)
