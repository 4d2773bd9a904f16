"""Rules candidates out by their sketches alone, before their versions are read.

In a large window hundreds of versions may be near an article by fingerprint and by nothing else: the sketch tells them
apart. It is a small part of a version, and never changes: what a store knows of it for less than a read is asked first.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from consumer.fingerprint import SketchSimilarity
from consumer.judge.candidates import Candidates
from consumer.judge.comparison import SKETCHED
from storage.interface import Store
from storage.records import Record

_PAIRS_AT_ONCE: Final = 4_096
"""As many pairs of sketches as are compared in one pass: some MiB of arrays."""


class FilteredCandidates(NamedTuple):
    """For each article the candidates that may be similar enough.

    ``sketches_read`` is the number of sketches that the store knew, ``similarities`` has those to candidates left out.
    """

    candidates: Sequence[Candidates]
    sketches_read: int
    similarities: Sequence[float]


class _Pair(NamedTuple):
    """An article by its place, and a candidate by its reference, with the sketches of both."""

    place: int
    reference: bytes
    sketch: bytes
    other: bytes


def without_unlike(
    store: Store,
    records: Sequence[Record],
    candidates: Sequence[Candidates],
    similarity_min: float,
    estimate: SketchSimilarity,
) -> FilteredCandidates:
    """Leave out candidates whose sketch is less similar than ``similarity_min``, as verification would.

    An article that is not verified by its sketch keeps all; those that may be equal texts by their fingerprint stay.
    The sketches of these records have one width. Raises the store's errors.
    """
    by_sketch = [place for place, record in enumerate(records) if record.kind in SKETCHED]
    references = sorted({reference for place in by_sketch for reference in candidates[place].references})
    if not references:
        return FilteredCandidates(candidates, 0, ())
    by_reference = dict(zip(references, store.sketches(references), strict=True))
    unlike: defaultdict[int, set[bytes]] = defaultdict(set)
    similarities: list[float] = []
    for pair, similarity in _compared(_pairs(records, candidates, by_sketch, by_reference), estimate):
        if similarity < similarity_min:
            unlike[pair.place].add(pair.reference)
            similarities.append(similarity)
    kept = list(candidates)
    for place, left_out in unlike.items():
        of_record = candidates[place]
        kept[place] = of_record._replace(
            references=tuple(reference for reference in of_record.references if reference not in left_out)
        )
    return FilteredCandidates(kept, sum(map(bool, by_reference.values())), similarities)


def _pairs(
    records: Sequence[Record], candidates: Sequence[Candidates], places: Sequence[int], sketches: Mapping[bytes, bytes]
) -> Iterator[_Pair]:
    """Yield the pairs that the sketches may rule out."""
    for place in places:
        own, same_code = records[place].sketch, candidates[place].same_code
        for reference in candidates[place].references:
            if reference not in same_code and len(sketches[reference]) == len(own):
                yield _Pair(place, reference, own, sketches[reference])


def _compared(pairs: Iterator[_Pair], estimate: SketchSimilarity) -> Iterator[tuple[_Pair, float]]:
    """Yield each pair with its similarity. Most articles have a candidate or two, so all of them share the calls."""
    while some := list(islice(pairs, _PAIRS_AT_ONCE)):
        ours = np.frombuffer(b"".join(pair.sketch for pair in some), np.uint8).reshape(len(some), -1)
        theirs = np.frombuffer(b"".join(pair.other for pair in some), np.uint8).reshape(len(some), -1)
        yield from zip(some, estimate(ours, theirs).tolist(), strict=True)
