"""Rules out candidates by their sketches, before their versions are read.

In a large window the fingerprints of hundreds of versions may be near an article's, and only sketches tell which of
them are similar. A sketch is small and never changes, so a store may return it for less than the cost of a read.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import tee
from typing import NamedTuple

from consumer.fingerprint import SketchSimilarity
from consumer.judge.candidates import Candidates
from consumer.judge.comparison import SKETCHED, estimated_similarities
from storage.interface import Store
from storage.records import Record


class FilteredCandidates(NamedTuple):
    """The candidates of each article that may be similar enough.

    ``sketches_read`` is the number of sketches that the store returned. ``similarities`` has the similarity of each
    candidate that was ruled out.
    """

    candidates: Sequence[Candidates]
    sketches_read: int
    similarities: Sequence[float]


class _Pair(NamedTuple):
    """An article at a place in the batch, a candidate with its reference, and the sketches of both."""

    place: int
    reference: bytes
    sketch: bytes
    other_sketch: bytes


def without_dissimilar(
    store: Store,
    records: Sequence[Record],
    candidates: Sequence[Candidates],
    similarity_min: float,
    estimate: SketchSimilarity,
) -> FilteredCandidates:
    """Return the candidates without those whose sketches are less similar than ``similarity_min``.

    Verification would reject them too. Articles that are not verified by sketch keep all candidates, and candidates
    with the same fingerprint stay, because their texts may be equal. All records must have sketches of one width.
    Raises the store's errors.
    """
    by_sketch = [place for place, record in enumerate(records) if record.kind in SKETCHED]
    references = sorted({reference for place in by_sketch for reference in candidates[place].references})
    if not references:
        return FilteredCandidates(candidates, 0, ())
    by_reference = dict(zip(references, store.sketches(references), strict=True))
    dissimilar_by_place: defaultdict[int, set[bytes]] = defaultdict(set)
    similarities: list[float] = []
    pairs, compared = tee(_pairs(records, candidates, by_sketch, by_reference))
    estimates = estimated_similarities(((pair.sketch, pair.other_sketch) for pair in compared), estimate)
    for pair, similarity in zip(pairs, estimates, strict=True):
        if similarity < similarity_min:
            dissimilar_by_place[pair.place].add(pair.reference)
            similarities.append(similarity)
    kept = list(candidates)
    for place, dissimilar in dissimilar_by_place.items():
        kept[place] = candidates[place]._replace(
            references=tuple(reference for reference in candidates[place].references if reference not in dissimilar)
        )
    return FilteredCandidates(kept, sum(map(bool, by_reference.values())), similarities)


def _pairs(
    records: Sequence[Record], candidates: Sequence[Candidates], places: Sequence[int], sketches: Mapping[bytes, bytes]
) -> Iterator[_Pair]:
    """Yield the pairs whose sketches may rule out the candidate."""
    for place in places:
        own, same_code = records[place].sketch, candidates[place].same_code
        for reference in candidates[place].references:
            if reference not in same_code and len(sketches[reference]) == len(own):
                yield _Pair(place, reference, own, sketches[reference])
