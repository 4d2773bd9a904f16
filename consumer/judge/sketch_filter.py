"""Rules candidates out by their sketches alone, before their versions are read.

In a large window hundreds of versions may be near an article by fingerprint and by nothing else: the sketch tells them
apart. It is a small part of a version, and never changes: what a store knows of it for less than a read is asked first.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from consumer.fingerprint import SketchSimilarity
from consumer.judge.candidates import Candidates
from consumer.judge.comparison import SKETCHED
from storage.interface import Store
from storage.records import Record

MANY: Final = 4
"""An article with so many candidates, or fewer, has all of them read."""


class Filtered(NamedTuple):
    """For each article the candidates that may be similar enough.

    ``sketches_read`` is the number of sketches that the store knew, ``similarities`` has those to candidates left out.
    """

    candidates: Sequence[Candidates]
    sketches_read: int
    similarities: Sequence[float]


def without_unlike(
    store: Store,
    records: Sequence[Record],
    candidates: Sequence[Candidates],
    similarity_min: float,
    estimate: SketchSimilarity,
) -> Filtered:
    """Leave out candidates whose sketch is less similar than ``similarity_min``, as verification would.

    An article that is not verified by its sketch keeps all, and so does one with few; those that may be equal texts by
    their fingerprint stay. Raises the store's errors.
    """
    crowded = [
        place
        for place, (record, of_record) in enumerate(zip(records, candidates, strict=True))
        if record.kind in SKETCHED and len(of_record.references) > MANY
    ]
    references = sorted({reference for place in crowded for reference in candidates[place].references})
    if not references:
        return Filtered(candidates, 0, ())
    by_reference = dict(zip(references, store.sketches(references), strict=True))
    kept, similarities = list(candidates), list[float]()
    for place in crowded:
        of_record = candidates[place]
        unlike = _unlike(
            records[place].sketch,
            {each: by_reference[each] for each in of_record.references if each not in of_record.same_code},
            similarity_min,
            estimate,
        )
        kept[place] = of_record._replace(references=tuple(each for each in of_record.references if each not in unlike))
        similarities += unlike.values()
    return Filtered(kept, sum(map(bool, by_reference.values())), similarities)


def _unlike(
    sketch: bytes, others: dict[bytes, bytes], similarity_min: float, estimate: SketchSimilarity
) -> dict[bytes, float]:
    """Return which of the others are less similar, and how similar they are; those without a sketch are not."""
    comparable = {reference: other for reference, other in others.items() if len(other) == len(sketch)}
    stacked = np.frombuffer(b"".join(comparable.values()), np.uint8).reshape(-1, len(sketch))
    similarities = estimate(np.frombuffer(sketch, np.uint8), stacked).tolist()
    return {
        reference: similarity
        for reference, similarity in zip(comparable, similarities, strict=True)
        if similarity < similarity_min
    }
