r"""Block plans: the index keys under which a fingerprint is stored and looked up.

A fingerprint is cut into blocks of equal width, block 0 the most significant. In a plain plan a key is one block. In
a plan with parts a key is one block and one part of the rest. The rest is the fingerprint without that block, most
significant bits first, cut into parts of equal width. A look-up probes the keys of a fingerprint (radius 0), or also
some of their one-bit neighbours (radius 1). It is exact to d if it finds every fingerprint within d bits. A plan is
named after the number of its keys and the bits in each:

    plan     bits of the     blocks    parts of    exact to, and probes       for
             fingerprint               the rest    radius 0     radius 1
    4x16     64              4 × 16    -           3, 4         7, 68         windows of up to about 2^30 articles
    16x28    64              4 × 16    4 × 12      3, 16        4, 128        larger windows
    8x16     128             8 × 16    -           7, 8         15, 136       schemes of 128 bits
    4x32     128             4 × 32    -           3, 4         7, 132        schemes of 128 bits, large windows

Key layout, 3 bytes (``4x16``, ``8x16``) or 5 bytes (``16x28``, ``4x32``):

    byte 0         lane << 4 | number      lane 0: SimHash block; lane 1: MinHash band 0..15
    2 or 4 bytes   the block, big-endian   lane 1: the top 16 or 32 bits of the band
    2 bytes        part << 12 | value      with parts only; lane 1: part number 0, then the band's next 12 bits

For example 0x0123456789abcdef has the keys 00 0123, 01 4567, 02 89ab, 03 cdef in ``4x16``, and in ``16x28`` first
00 0123 0456, 00 0123 1789, 00 0123 2abc, 00 0123 3def, then 01 4567 0012 and so on.

**Why the plans are exact.** In a plain plan of b blocks, b − 1 differing bits leave one block equal. 2b − 1 leave one
block with at most one differing bit, and radius 1 finds it, because it probes every block and its one-bit neighbours.

In ``16x28`` up to three differing bits leave one block equal, and one of the four parts of its rest. Four bits can
prevent that in only two ways:

- Each block has one of the bits. Then one of the 16 neighbours of block 0 is equal, and the three bits in its rest
  leave one of four parts equal.
- One block is equal, and each part of its rest has one of the bits. Then one of the 12 neighbours of part 0 is equal.

So radius 1 probes the 16 keys, the neighbours of block 0 with each of its parts (16 × 4), and the neighbours of part 0
with each block (12 × 4). No other choice of whole blocks and parts whose neighbours are probed is exact to 4 with fewer
probes (docs/decisions/0011-plans.md).

The constructor of a plan does not rely on this proof; it searches for a pair that the plan would miss.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

LANE_SIMHASH: Final = 0
LANE_MINHASH: Final = 1
_NUMBERS_MAX: Final = 16
_NUMBER_BITS: Final = 4
_BYTE_BITS: Final = 8
_WORD_BITS: Final = 64
_BLOCK_WIDTHS: Final = (16, 32)
_FINGERPRINT_WIDTHS: Final = (64, 128)
# The places of a code's bits count from 0. These stand for a key bit that is not from the code, and for no flipped bit.
_NOWHERE: Final = -1
_NOT_FLIPPED: Final = -2


class _PlanDefinition(NamedTuple):
    bits: int
    block_bits: int
    parts: int
    exact_to: tuple[int, int]


_DEFINITIONS: Final = {
    "4x16": _PlanDefinition(64, 16, 0, (3, 7)),
    "16x28": _PlanDefinition(64, 16, 4, (3, 4)),
    "8x16": _PlanDefinition(128, 16, 0, (7, 15)),
    "4x32": _PlanDefinition(128, 32, 0, (3, 7)),
}


class _Key(NamedTuple):
    """A key of a plan: ``places`` are the places of its bits in the fingerprint, where 0 is the most significant.

    ``mask`` has these bits set. ``neighbours`` has only the bits set that probes at radius 1 flip.
    """

    block: int
    part: int
    places: tuple[int, ...]
    mask: int
    neighbours: int


class _Tables(NamedTuple):
    """The arrays from which ``BlockPlan.keys`` and ``BlockPlan.probe_keys`` build keys.

    ``places`` has the place in the code of each bit of each key, ``fixed`` the bits of keys that are not from the code.
    By radius, ``owners`` has the key of each probe, and ``flips`` the bits that the probe flips.
    """

    places: npt.NDArray[np.int64]
    fixed: npt.NDArray[np.uint8]
    owners: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
    flips: tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """A cut of a fingerprint of ``bits`` into blocks of ``block_bits``, and of the rest of each block into ``parts``.

    ``exact_to`` has the distances up to which every pair agrees on a key at radius 0 and at radius 1. The constructor
    verifies them. Methods raise ``ValueError`` for a radius other than 0 and 1.
    """

    name: str
    bits: int
    block_bits: int
    parts: int
    exact_to: tuple[int, int]
    _keys: tuple[_Key, ...] = field(init=False, repr=False, compare=False)
    _tables: _Tables = field(init=False, repr=False, compare=False)

    RADIUS_MAX: ClassVar[int] = 1
    NAMES: ClassVar[tuple[str, ...]] = tuple(_DEFINITIONS)

    def __post_init__(self) -> None:
        """Raise ValueError for a cut that omits bits, does not fit the key layout, or is less exact than it claims."""
        if self.bits not in _FINGERPRINT_WIDTHS or self.block_bits not in _BLOCK_WIDTHS:
            raise ValueError("a plan cuts fingerprints of 64 or 128 bits into blocks of 16 or 32 bits")
        if self.parts and self.part_bits * self.parts != self.bits - self.block_bits:
            raise ValueError(f"{self.bits - self.block_bits} bits cannot be cut into {self.parts} equal parts")
        if not 0 <= self.parts <= _NUMBERS_MAX or (self.parts and (_NUMBER_BITS + self.part_bits) % _BYTE_BITS):
            raise ValueError("a plan has at most 16 parts; each must fill whole bytes with the 4 bits of its number")
        object.__setattr__(self, "_keys", tuple(_lane_0_keys(self)))
        object.__setattr__(self, "_tables", _tables(self, self._keys))
        for radius, distance in enumerate(self.exact_to):
            hidden = _hidden_difference(self._keys, distance, radius)
            if hidden is not None:
                raise ValueError(
                    f"the block plan {self.name} is not exact to {distance} bits with radius {radius}: a pair that "
                    f"differs in the {hidden.bit_count()} bits of {hidden:#x} agrees on no key"
                )

    @classmethod
    def named(cls, name: str, bits: int = 64) -> Self:
        """Return the plan with this name. Raises ``ValueError`` if no such plan supports this number of bits."""
        if name not in _DEFINITIONS:
            raise ValueError(f"unknown block plan {name!r}; choose {', '.join(_DEFINITIONS)}")
        cut = _DEFINITIONS[name]
        if cut.bits != bits:
            others = [other for other, other_cut in _DEFINITIONS.items() if other_cut.bits == bits]
            instead = f"choose {', '.join(others)}" if others else f"no plan supports {bits} bits"
            raise ValueError(f"the block plan {name} is for fingerprints of {cut.bits} bits, not of {bits}; {instead}")
        return cls(name, *cut)

    @property
    def blocks(self) -> int:
        """The number of blocks of a fingerprint."""
        return self.bits // self.block_bits

    @property
    def part_bits(self) -> int:
        """The width of a part, 0 in a plan without parts."""
        return (self.bits - self.block_bits) // self.parts if self.parts else 0

    @property
    def key_bits(self) -> int:
        """The number of bits of a fingerprint, or of a band, in a key."""
        return self.block_bits + self.part_bits

    @property
    def key_bytes(self) -> int:
        """The length of a key in bytes."""
        return int(self._tables.fixed.shape[1])

    @property
    def code_bytes(self) -> int:
        """The length of a fingerprint in bytes."""
        return self.bits // _BYTE_BITS

    def radius_for(self, max_distance: int) -> int:
        """Return the smallest look-up radius that finds every fingerprint within ``max_distance`` bits.

        Raises ``ValueError`` if no radius of this plan does; the message names plans that do.
        """
        for radius, distance in enumerate(self.exact_to):
            if 0 <= max_distance <= distance:
                return radius
        near, far = self.exact_to
        raise ValueError(
            f"the block plan {self.name} finds every pair within 0 to {far} bits (0 to {near} with radius 0, up to "
            f"{far} with radius 1), not {max_distance}; {_alternatives(self.bits, max_distance)}"
        )

    def probes(self, radius: int) -> int:
        """Return the number of lane-0 keys that ``probe_keys`` returns for a fingerprint."""
        self._check_radius(radius)
        return len(self._tables.owners[radius])

    def keys(self, codes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
        """Return the lane-0 keys under which fingerprints are stored: uint8[n, keys, key_bytes].

        ``codes`` are uint64[n, words], the most significant word first. Raises ``ValueError`` for another width.
        """
        if codes.ndim != 2 or codes.shape[1] * _WORD_BITS != self.bits:  # noqa: PLR2004  # the axes: texts, words
            raise ValueError(f"the block plan {self.name} takes codes of {self.bits // _WORD_BITS} words a text")
        return _packed(codes, self._tables.places) | self._tables.fixed

    def probe_keys(self, codes: npt.NDArray[np.uint64], radius: int) -> npt.NDArray[np.uint8]:
        """Return the lane-0 keys to look up, uint8[n, probes, key_bytes]; at radius 0 these are the stored keys.

        At radius 1 each key is followed by its neighbours, from the most significant flipped bit on.
        """
        self._check_radius(radius)
        return self.keys(codes)[:, self._tables.owners[radius]] ^ self._tables.flips[radius]

    def band_keys(self, bands: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
        """Return the lane-1 keys of bands uint64[n, b] as uint8[n, b, key_bytes]. Raises ``ValueError`` if b > 16."""
        count = bands.shape[1]
        if count > _NUMBERS_MAX:
            raise ValueError(f"keys support at most {_NUMBERS_MAX} bands, not {count}")
        top = _places_of(self, range(self.key_bits))
        keys = _packed(bands.reshape(-1, 1), top[np.newaxis]).reshape(len(bands), count, self.key_bytes)
        keys[..., 0] = LANE_MINHASH << _NUMBER_BITS | np.arange(count)
        return keys

    def finds_pair(self, a: int, b: int, radius: int) -> bool:
        """Return whether a look-up with this radius finds one fingerprint from the other; symmetric."""
        self._check_radius(radius)
        return _agreed_key(self._keys, a ^ b, radius) is not None

    def _check_radius(self, radius: int) -> None:
        if not 0 <= radius <= self.RADIUS_MAX:
            raise ValueError(f"the block plan {self.name} has the radii 0 and 1, not {radius}")


def _alternatives(bits: int, max_distance: int) -> str:
    suitable = [name for name, cut in _DEFINITIONS.items() if cut.bits == bits and 0 <= max_distance <= cut.exact_to[1]]
    if suitable:
        return f"choose {' or '.join(suitable)}"
    most = max(cut.exact_to[1] for cut in _DEFINITIONS.values() if cut.bits == bits)
    return f"no plan for {bits} bits supports more than {most}"


def _lane_0_keys(plan: BlockPlan) -> list[_Key]:
    keys = []
    for block in range(plan.blocks):
        of_block = range(block * plan.block_bits, (block + 1) * plan.block_bits)
        rest = [place for place in range(plan.bits) if place not in of_block]
        for part in range(max(plan.parts, 1)):
            of_part = rest[part * plan.part_bits : (part + 1) * plan.part_bits]
            # Probe the neighbours of every block in a plan without parts, else those of block 0 and of every part 0.
            flipped_block = of_block if block == 0 or not plan.parts else ()
            flipped_part = of_part if part == 0 else ()
            keys.append(
                _Key(
                    block=block,
                    part=part,
                    places=(*of_block, *of_part),
                    mask=_mask(plan, (*of_block, *of_part)),
                    neighbours=_mask(plan, (*flipped_block, *flipped_part)),
                )
            )
    return keys


def _mask(plan: BlockPlan, places: Sequence[int]) -> int:
    return sum(1 << plan.bits - 1 - place for place in places)


def _agreed_key(keys: Sequence[_Key], difference: int, radius: int) -> _Key | None:
    """Return a key by which two fingerprints with this difference find each other, or None if there is none."""
    for key in keys:
        differing = difference & key.mask
        if not differing or (radius and differing & key.neighbours and not differing & (differing - 1)):
            return key
    return None


def _hidden_difference(keys: Sequence[_Key], bits_max: int, radius: int) -> int | None:
    """Return a difference of at most ``bits_max`` bits that leaves no key in agreement, or None if there is none.

    A hidden pair differs in every key, so the search flips bits of a key that still agrees until none does. Bits that
    are in the same keys and in the same neighbours are equivalent. Flipping a third equivalent bit adds nothing, so the
    search is small and complete.
    """
    equivalent: dict[tuple[int, ...], list[int]] = {}
    for place in range(max(key.mask.bit_length() for key in keys)):
        bit = 1 << place
        equivalent.setdefault(tuple((key.mask & bit > 0) + (key.neighbours & bit > 0) for key in keys), []).append(bit)

    def search(difference: int, bits_left: int) -> int | None:
        agreed = _agreed_key(keys, difference, radius)
        if agreed is None:
            return difference
        unused = (next((bit for bit in bits[:2] if not bit & difference), 0) for bits in equivalent.values())
        further = (search(difference | bit, bits_left - 1) for bit in unused if bits_left and bit & agreed.mask)
        return next((hidden for hidden in further if hidden is not None), None)

    return search(0, bits_max)


def _tables(plan: BlockPlan, keys: Sequence[_Key]) -> _Tables:
    places = np.stack([_places_of(plan, key.places) for key in keys])
    fixed = np.zeros((len(keys), places.shape[1] // _BYTE_BITS), dtype=np.uint8)
    fixed[:, 0] = [LANE_SIMHASH << _NUMBER_BITS | key.block for key in keys]
    if plan.parts:
        fixed[:, 1 + plan.block_bits // _BYTE_BITS] = [key.part << _NUMBER_BITS for key in keys]
    flipped = [
        [_NOT_FLIPPED, *(place for place in key.places if _mask(plan, [place]) & key.neighbours)] for key in keys
    ]
    owners = np.repeat(np.arange(len(keys)), [len(places_flipped) for places_flipped in flipped])
    flips = np.packbits(places[owners] == np.concatenate(flipped)[:, np.newaxis], axis=-1)
    return _Tables(places, fixed, (np.arange(len(keys)), owners), (np.zeros_like(fixed), flips))


def _places_of(plan: BlockPlan, places: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the place in the code of each bit of a key, ``_NOWHERE`` for the bits of the lane and of numbers."""
    number = [_NOWHERE] * _NUMBER_BITS
    in_key = [*number * 2, *places[: plan.block_bits]]
    if plan.parts:
        in_key += [*number, *places[plan.block_bits :]]
    return np.array(in_key)


def _packed(codes: npt.NDArray[np.uint64], places: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return keys, uint8[n, keys, key_bytes], with bits of codes, uint64[n, words]. A bit from ``_NOWHERE`` is 0."""
    count, words = codes.shape
    bits = np.zeros((count, words * _WORD_BITS + 1), dtype=np.uint8)
    as_bytes = np.ascontiguousarray(codes, dtype=">u8").view(np.uint8)
    bits[:, :-1] = np.unpackbits(as_bytes, axis=1)
    return np.packbits(bits[:, places], axis=-1)
