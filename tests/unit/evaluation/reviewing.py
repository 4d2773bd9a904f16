"""Reviews as lines of a file, and those by people who draw a line that nobody is told of."""

import json
from collections.abc import Sequence
from typing import Any

from benchmarks.quality.reviews import People, made_reviews
from consumer.evaluation.labelled_pairs import PairsLine
from consumer.text.timestamps import rfc3339


def lines_of(rows: list[dict[str, Any]]) -> list[PairsLine]:
    """The rows as lines of a file."""
    return [PairsLine(number, json.dumps(row).encode()) for number, row in enumerate(rows, 1)]


def review(similarity: float | None = 0.9, decision: str | None = "right", **members: object) -> dict[str, Any]:
    """A reviewed flag."""
    return {"schema": "dupwatch.review/1", "kind": "flag", "similarity": similarity, "decision": decision} | members


def near_miss(similarity: float = 0.7, decision: str | None = "wrong", **members: object) -> dict[str, Any]:
    """A reviewed near miss, one of ten."""
    return review(similarity, decision, kind="near_miss", sampled_in=10) | members


def reviews_by(
    line: float, seed: int, *, near_misses: bool = True, sources: Sequence[str] = ("wire",)
) -> list[dict[str, Any]]:
    """What people say who call two articles copies from this similarity on, of flags alone or of near misses too."""
    return [
        review(
            pair.similarity,
            {True: "right", False: "wrong", None: None}[pair.right],
            kind=pair.kind,
            sampled_in=pair.sampled_in,
            source=sources[number % len(sources)],
            arrived_at=rfc3339(pair.arrived_ms or 0),
        )
        for number, pair in enumerate(made_reviews(People(line), seed))
        if near_misses or pair.kind == "flag"
    ]
