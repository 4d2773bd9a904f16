r"""
The block plan: which index keys a fingerprint is stored under and looked up by.

Key layout of plan `4x16`, 3 bytes:

    byte 0      lane << 4 | number     lane 0: SimHash block 0..3; lane 1: MinHash band 0..15
    bytes 1-2   value, big-endian      lane 0: the block's 16 bits; lane 1: the top 16 bits of the band

Block 0 is the most significant. The first byte keeps lanes and blocks apart, so one table holds all of
them; the value that follows spreads each evenly over its range. For example the fingerprint
0x0123456789abcdef has the keys 00 0123, 01 4567, 02 89ab, 03 cdef.

Two fingerprints that differ in at most 3 bits agree in one of four blocks at least; within 7 bits at least
one block differs in at most one bit, and is met by probing every block value and its 16 neighbours.
"""

from dataclasses import dataclass
from typing import ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

LANE_SIMHASH: Final = 0
LANE_MINHASH: Final = 1
_NUMBERS_MAX: Final = 16
_VALUE_BITS: Final = 16
_CODE_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """A cut of a fingerprint into blocks of 16 bits; a value, so that another cut is another value."""

    name: str
    bits: int
    blocks: int
    block_bits: int

    RADIUS_MAX: ClassVar[int] = 1
    NAMES: ClassVar[tuple[str, ...]] = ("4x16",)

    def __post_init__(self) -> None:
        """Refuse a cut that leaves bits of the fingerprint out or that the key layout cannot hold."""
        if self.blocks * self.block_bits != self.bits:
            raise ValueError(f"{self.blocks} blocks of {self.block_bits} bits do not make {self.bits} bits")
        if self.block_bits != _VALUE_BITS or not 1 <= self.blocks <= _NUMBERS_MAX or self.bits > _CODE_BITS:
            raise ValueError("a key holds one of at most 16 blocks, of 16 bits each, of at most 64 bits")

    @classmethod
    def named(cls, name: str, bits: int = 64) -> Self:
        """Build the plan of that name; ValueError when there is none, or none for that many bits."""
        if name not in cls.NAMES:
            raise ValueError(f"there is no block plan {name!r}; there is {', '.join(cls.NAMES)}")
        if bits != _CODE_BITS:
            raise ValueError(f"the block plan {name} is for fingerprints of 64 bits, not of {bits}")
        return cls(name=name, bits=bits, blocks=4, block_bits=16)

    @property
    def key_bytes(self) -> int:
        """Length of a key in bytes."""
        return 1 + self.block_bits // 8

    def radius_for(self, max_distance: int) -> int:
        """
        Tell the look-up radius that finds every fingerprint within `max_distance` bits.

        Spread over the blocks, d bits leave one block with at most d // blocks of them.
        ValueError when no radius of this plan does.
        """
        reach = self.blocks * (self.RADIUS_MAX + 1) - 1
        if not 0 <= max_distance <= reach:
            raise ValueError(
                f"the block plan {self.name} finds every pair within 0 to {reach} bits "
                f"(0 to {self.blocks - 1} with radius 0, up to {reach} with radius 1); {max_distance} was asked for"
            )
        return max_distance // self.blocks

    def keys(self, codes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
        """Tell the lane-0 keys that fingerprints are stored under: uint8[n, blocks, key_bytes]."""
        return _keys(LANE_SIMHASH, np.arange(self.blocks), self._values(codes))

    def probe_keys(self, codes: npt.NDArray[np.uint64], radius: int) -> npt.NDArray[np.uint8]:
        """
        Tell the lane-0 keys to look up: uint8[n, probes, key_bytes], 4 probes at radius 0 and 68 at radius 1.

        Block after block; in each the value itself first, then its neighbours, from the most significant bit.
        """
        self._check_radius(radius)
        flips = np.zeros(1 + radius * self.block_bits, dtype=np.uint16)
        flips[1:] = [1 << bit for bit in reversed(range(self.block_bits))][: len(flips) - 1]
        values = self._values(codes)[:, :, np.newaxis] ^ flips
        numbers = np.repeat(np.arange(self.blocks), len(flips))
        return _keys(LANE_SIMHASH, numbers, values.reshape(len(codes), len(numbers)))

    def band_keys(self, bands: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
        """Tell the lane-1 keys of bands given as uint64[n, b]: uint8[n, b, key_bytes]; b is at most 16."""
        if bands.shape[1] > _NUMBERS_MAX:
            raise ValueError(f"a key can number {_NUMBERS_MAX} bands, not {bands.shape[1]}")
        values = (bands >> np.uint64(_CODE_BITS - self.block_bits)).astype(np.uint16)
        return _keys(LANE_MINHASH, np.arange(bands.shape[1]), values)

    def agree(self, a: int, b: int, radius: int) -> bool:
        """Tell whether a look-up with this radius brings the two fingerprints together (symmetric)."""
        self._check_radius(radius)
        difference = a ^ b
        block_mask = (1 << self.block_bits) - 1
        return any(
            (difference >> shift & block_mask).bit_count() <= radius for shift in range(0, self.bits, self.block_bits)
        )

    def _values(self, codes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint16]:
        shifts = np.arange(self.bits - self.block_bits, -1, -self.block_bits, dtype=np.uint64)
        return (codes[:, np.newaxis] >> shifts).astype(np.uint16)

    def _check_radius(self, radius: int) -> None:
        if not 0 <= radius <= self.RADIUS_MAX:
            raise ValueError(f"the block plan {self.name} has the radii 0 and 1, not {radius}")


def _keys(lane: int, numbers: npt.NDArray[np.int64], values: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint8]:
    keys = np.empty((*values.shape, 3), dtype=np.uint8)
    keys[..., 0] = lane << 4 | numbers
    keys[..., 1] = values >> np.uint16(8)
    keys[..., 2] = values & np.uint16(0xFF)
    return keys
