"""The results of an engine for a batch of texts, and functions that split and join batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprints:
    """The results of an engine for n texts, as arrays whose first axis is the text.

    ``codes`` uint64[n, bits // 64]: fingerprints, the most significant word first.
    ``sketches`` uint8[n, 256], or uint8[n, 0] without sketches. ``one_bits`` uint64[n]: one-bit minima.
    ``bands`` uint64[n, bands]: full-width folds for lane 1. ``keywords``: the heaviest keywords of at most 64
    characters, with their weights; in schemes for every script, a text without keywords has ``text_kinds.runs``.
    ``kinds`` uint8[n]: see ``TextKind``. ``text_digests`` uint8[n, 16]: BLAKE2b of the compared form.
    ``facts``: packed facts or slots, see the modules of these names; empty if the scheme has neither.
    ``keyword_counts`` int64[n]: the number of distinct keywords, also beyond ``keywords_max``.
    ``written_digests`` uint8[n, 16]: BLAKE2b of the normalised text, None in schemes that compare this text itself.
    ``anchors`` and ``samples``: see ``consumer.fingerprint.parts``; empty unless requested. ``known_shingles``: the
    hashes of known shingles, 8 bytes each, see ``consumer.fingerprint.known_shingles``; empty unless a set is given.
    ``is_marked``: whether empty bins have the byte 0, as in schemes that compare letters.
    """

    codes: npt.NDArray[np.uint64]
    sketches: npt.NDArray[np.uint8]
    one_bits: npt.NDArray[np.uint64]
    bands: npt.NDArray[np.uint64]
    keywords: tuple[tuple[tuple[str, float], ...], ...]
    kinds: npt.NDArray[np.uint8]
    text_digests: npt.NDArray[np.uint8]
    keyword_counts: npt.NDArray[np.int64]
    facts: tuple[bytes, ...] = ()
    written_digests: npt.NDArray[np.uint8] | None = None
    anchors: tuple[bytes, ...] = ()
    samples: tuple[bytes, ...] = ()
    known_shingles: tuple[bytes, ...] = ()
    is_marked: bool = False

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.codes)


def chunks(texts: Sequence[str], characters_max: int) -> list[slice]:
    """Split a batch into chunks of one text, or of several with at most ``characters_max`` characters in all."""
    cuts, characters = [0], 0
    for place, text in enumerate(texts):
        if place > cuts[-1] and characters + len(text) > characters_max:
            cuts.append(place)
            characters = 0
        characters += len(text)
    return [slice(start, end) for start, end in pairwise([*cuts, len(texts)])]


def join_batches(parts: Sequence[Fingerprints]) -> Fingerprints:
    """Join the results of one or more batches. Results do not depend on how texts are batched."""
    if len(parts) == 1:
        return parts[0]
    written = [part.written_digests for part in parts if part.written_digests is not None]
    return Fingerprints(
        codes=np.concatenate([part.codes for part in parts]),
        sketches=np.concatenate([part.sketches for part in parts]),
        one_bits=np.concatenate([part.one_bits for part in parts]),
        bands=np.concatenate([part.bands for part in parts]),
        keywords=tuple(chain.from_iterable(part.keywords for part in parts)),
        kinds=np.concatenate([part.kinds for part in parts]),
        text_digests=np.concatenate([part.text_digests for part in parts]),
        keyword_counts=np.concatenate([part.keyword_counts for part in parts]),
        facts=tuple(chain.from_iterable(part.facts for part in parts)),
        written_digests=np.concatenate(written) if written else None,
        anchors=tuple(chain.from_iterable(part.anchors for part in parts)),
        samples=tuple(chain.from_iterable(part.samples for part in parts)),
        known_shingles=tuple(chain.from_iterable(part.known_shingles for part in parts)),
        is_marked=parts[0].is_marked,
    )
