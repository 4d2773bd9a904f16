"""Where the development feed is: real articles that tests may read and the repository does not hold."""

import gzip
import json
import os
from pathlib import Path

import pytest

FOLDER_VARIABLE = "DEV_DATA"
REQUIRED_VARIABLE = "REQUIRE_DEV_DATA"
_REPOSITORY = Path(__file__).resolve().parent.parent
_FEED = "articles-dev.jsonl.gz"
_PARTS = 8
EVERY_PART = (0, *(pytest.param(part, marks=pytest.mark.load) for part in range(1, _PARTS)))
"""The parts of the feed, for tests that compare two programs article by article: one at every change, all at times."""


def dev_data_dir() -> Path:
    """
    Find the folder with the development feed, or skip the test.

    `DEV_DATA` names it; without, it is `shared/data` beside the repository. With
    `REQUIRE_DEV_DATA=1` the test fails instead of being skipped.
    """
    folder = Path(os.environ.get(FOLDER_VARIABLE) or _REPOSITORY.parent / "shared" / "data")
    if not (folder / _FEED).is_file():
        reason = f"no {_FEED} in the folder of the development feed ({FOLDER_VARIABLE})"
        if os.environ.get(REQUIRED_VARIABLE) == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


def dev_articles() -> list[dict[str, str]]:
    """Read the articles of the development feed, in feed order."""
    with gzip.open(dev_data_dir() / _FEED, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def dev_part(part: int) -> list[dict[str, str]]:
    """Read an eighth of the development feed, spread over all of it."""
    return dev_articles()[part::_PARTS]


def dev_pairs() -> list[tuple[str, str, float, float]]:
    """Read the pairs with Jaccard similarity ≥ 0.4: earlier id, later id, similarity, containment."""
    with gzip.open(dev_data_dir() / "articles-dev-pairs.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [tuple(json.loads(line)) for line in lines]
