"""Computes precision and recall of named parts on labelled pairs. Pure functions.

A pair is labelled true if one of the articles contains a stretch of the other. It counts as named if the verdict on
either article names the other one, as a part or as near.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec
import numpy as np

from consumer.evaluation.curves import QualityFigures, figures_of
from consumer.evaluation.labelled_pairs import LabelledPair
from consumer.model.verdict import Verdict

NamedPair = tuple[str, str]
"""Two ids, the lesser first."""


class PartEvaluation(msgspec.Struct, frozen=True):
    """The quality of named parts. ``parts`` pairs are labelled true, ``others`` are labelled false.

    ``unlabelled`` counts pairs that verdicts name as parts and that have no label.
    """

    parts: int
    others: int
    figures: QualityFigures
    unlabelled: int


def pair_of(a: str, b: str) -> NamedPair:
    """Return two ids in order."""
    return (min(a, b), max(a, b))


def named_pairs(verdicts: Iterable[Verdict]) -> tuple[set[NamedPair], set[NamedPair]]:
    """Return the pairs that verdicts name as parts, and the pairs that they name as near."""
    parts, near = set(), set()
    for verdict in verdicts:
        if isinstance(verdict.parts, tuple):
            parts |= {pair_of(verdict.id, part.id) for part in verdict.parts}
        near |= {pair_of(verdict.id, match.id) for match in verdict.matches}
    return parts, near


def part_evaluation(
    pairs: Sequence[LabelledPair], parts: Collection[NamedPair], near: Collection[NamedPair]
) -> PartEvaluation:
    """Compare the pairs that verdicts name, as parts and as near, with the labels."""
    labels = {pair_of(pair.a, pair.b): pair.duplicate for pair in pairs}
    named = [labels[pair] for pair in {*parts, *near} if pair in labels]
    right = sum(named)
    positives = sum(labels.values())
    (figures,) = figures_of(np.array([right]), np.array([len(named) - right]), positives)
    return PartEvaluation(positives, len(labels) - positives, figures, sum(pair not in labels for pair in parts))
