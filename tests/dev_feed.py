"""Where the development feed is: real articles that tests may read and the repository does not hold."""

import gzip
import json
import os
from functools import lru_cache
from pathlib import Path

import pytest

from tests.examples import drawn

FOLDER_VARIABLE = "DEV_DATA"
REQUIRED_VARIABLE = "REQUIRE_DEV_DATA"
_REPOSITORY = Path(__file__).resolve().parent.parent
_FEED = "articles-dev.jsonl.gz"
_PARTS = 16
EVERY_PART = drawn(range(_PARTS), _PARTS)
"""The parts of the feed, for tests that compare two programs article by article: one in each run."""


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


@lru_cache(8)
def dev_sample(step: int, start: int = 0) -> tuple[dict[str, str], ...]:
    """Return every ``step``-th article of the development feed, read only once; the whole feed takes 40 MB."""
    return tuple(dev_articles()[start::step])


def dev_part(part: int) -> tuple[dict[str, str], ...]:
    """Return a sixteenth of the development feed, spread over all of it."""
    return dev_sample(_PARTS, part)


def dev_pairs() -> list[tuple[str, str, float, float]]:
    """Read the pairs with Jaccard similarity ≥ 0.4: earlier id, later id, similarity, containment."""
    with gzip.open(dev_data_dir() / "articles-dev-pairs.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [tuple(json.loads(line)) for line in lines]
