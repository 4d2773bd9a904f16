"""Fingerprints of bank items as arrays. They are slow to compute, so they can be cached."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from consumer.banks.bank import BankItem, encode_entry
from consumer.banks.index import NO_SHINGLES, NO_TEXTS, TextFeatures
from consumer.banks.rows import KeyIndex, Places, Words
from consumer.fingerprint import held_hashes

DIGEST_WORDS: Final = 2
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class ItemFingerprints:
    """The fingerprints of n items.

    ``digests`` uint64[n, 2] identify the entries that were fingerprinted; see ``entry_digest``. ``facts`` maps the
    positions of items in ``allow`` banks to their facts.
    """

    digests: Words
    texts: TextFeatures
    shingles: KeyIndex
    facts: Mapping[int, bytes]

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.digests)

    def select(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return the fingerprints of the items where ``chosen`` bool[n] is true."""
        if chosen.all():
            return self
        new_places = np.cumsum(chosen) - 1
        return type(self)(
            self.digests[chosen],
            self.texts.select(chosen),
            self.shingles.of_items(chosen),
            {int(new_places[place]): facts for place, facts in self.facts.items() if chosen[place]},
        )

    def prepared(self) -> Self:
        """Return the same fingerprints, with shingles in a form that ``KnownShingles`` uses without copying."""
        return replace(self, shingles=KeyIndex(held_hashes(self.shingles.keys), self.shingles.items))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Concatenate the fingerprints of one or more parts."""
        sizes = [len(part) for part in parts]
        offsets = np.cumsum([0, *sizes[:-1]]).tolist()
        return cls(
            np.concatenate([part.digests for part in parts]),
            TextFeatures.concatenate([part.texts for part in parts]),
            KeyIndex.concatenate([part.shingles for part in parts], sizes),
            {
                place + offset: facts
                for part, offset in zip(parts, offsets, strict=True)
                for place, facts in part.facts.items()
            },
        )

    def look_up(self, digests: Words) -> "DigestLookUp":
        """Return the fingerprints of the items whose entries have these distinct digests, and the digests not found."""
        if not len(self):
            return DigestLookUp(self, np.zeros(0, np.intp), np.arange(len(digests)))
        order = np.argsort(self.digests[:, 0], kind="stable")
        places = np.searchsorted(self.digests[order, 0], digests[:, 0])
        places = order[np.minimum(places, len(order) - 1)]
        is_present = (self.digests[places] == digests).all(axis=1)
        positions = np.full(len(self), -1, np.intp)
        positions[places[is_present]] = np.flatnonzero(is_present)
        chosen = positions >= 0
        return DigestLookUp(self.select(chosen), positions[chosen], np.flatnonzero(~is_present))


class FingerprintSnapshot(NamedTuple):
    """The fingerprints that a process holds, in parts, and the number of items it has fingerprinted so far."""

    parts: tuple[ItemFingerprints, ...]
    computed: int


class DigestLookUp(NamedTuple):
    """The result of looking up digests: the fingerprints of the m items found.

    ``positions`` intp[m] has the position of each item's digest in the request, ``missing`` the positions of the
    digests that were not found.
    """

    fingerprints: ItemFingerprints
    positions: Places
    missing: Places


NO_FINGERPRINTS: Final = ItemFingerprints(np.zeros((0, DIGEST_WORDS), np.uint64), NO_TEXTS, NO_SHINGLES, {})

CacheLoader = Callable[[], ItemFingerprints | None]
"""Returns the cached fingerprints, or None without a cache. Entries may have changed since the cache was written."""


def entry_digest(item: BankItem, action: str | None) -> bytes:
    """Return a digest of everything that an item's fingerprints depend on: its entry and the action of its bank."""
    return hashlib.blake2b(encode_entry(item), digest_size=_DIGEST_BYTES, key=(action or "").encode()).digest()


def digests_of(packed: Iterable[bytes]) -> Words:
    """Return digests of n entries as numbers, uint64[n, 2]."""
    return np.frombuffer(b"".join(packed), np.uint64).reshape(-1, DIGEST_WORDS)
