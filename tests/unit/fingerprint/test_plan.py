"""The block plan: which keys a fingerprint has, and what they find."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint.plan import BlockPlan

PLAN = BlockPlan.named("4x16")
CODES = st.integers(0, 2**64 - 1)
POSITIONS = st.integers(0, 63)


def _array(*codes: int) -> np.ndarray:
    return np.array(codes, dtype=np.uint64)


def _key_set(keys: np.ndarray) -> set[bytes]:
    return {key.tobytes() for key in keys.reshape(-1, PLAN.key_bytes)}


def _flip(code: int, positions: set[int]) -> int:
    for position in positions:
        code ^= 1 << position
    return code


def test_keys_of_an_example() -> None:
    """A key is block number and value, big-endian, from the most significant block on."""
    keys = PLAN.keys(_array(0x0123456789ABCDEF))
    assert [key.tobytes().hex() for key in keys[0]] == ["000123", "014567", "0289ab", "03cdef"]
    assert PLAN.key_bytes == 3


def test_band_keys_of_an_example() -> None:
    """A band's key is in lane 1, with the band's number and its top 16 bits."""
    bands = np.array([[0x0123456789ABCDEF, 0xFEDCBA9876543210]], dtype=np.uint64)
    assert [key.tobytes().hex() for key in PLAN.band_keys(bands)[0]] == ["100123", "11fedc"]


def test_probes_of_an_example() -> None:
    """A block's probes are its value first, then its one-bit neighbours from the most significant bit."""
    probes = [key.tobytes().hex() for key in PLAN.probe_keys(_array(0x0123456789ABCDEF), 1)[0]]
    assert probes[:3] + probes[16:18] == ["000123", "008123", "004123", "000122", "014567"]
    assert len(probes) == len(set(probes)) == 68


@given(st.lists(CODES, max_size=5))
def test_probes_without_radius_are_the_keys(codes: list[int]) -> None:
    """With radius 0 the keys that are looked up are those that are stored."""
    assert np.array_equal(PLAN.probe_keys(_array(*codes), 0), PLAN.keys(_array(*codes)))


@given(CODES, st.sets(POSITIONS, max_size=3))
def test_within_three_bits_a_key_is_equal(code: int, flips: set[int]) -> None:
    """Two fingerprints within 3 bits share a key, wherever the bits are."""
    other = _flip(code, flips)
    assert _key_set(PLAN.keys(_array(code))) & _key_set(PLAN.keys(_array(other)))
    assert PLAN.agree(code, other, PLAN.radius_for(len(flips)))


@given(CODES, st.sets(POSITIONS, max_size=7))
def test_within_seven_bits_a_probe_meets_a_key(code: int, flips: set[int]) -> None:
    """Two fingerprints within 7 bits meet at radius 1, wherever the bits are."""
    other = _flip(code, flips)
    assert _key_set(PLAN.probe_keys(_array(code), 1)) & _key_set(PLAN.keys(_array(other)))
    assert PLAN.agree(code, other, 1)


@pytest.mark.parametrize(("radius", "per_block"), [(0, 0), (1, 1)])
def test_adversarial_spread_is_found_and_one_bit_more_is_not(radius: int, per_block: int) -> None:
    """Bits spread as evenly as can be are found up to the promise; one more may be missed, so the bound is tight."""
    rng = random.Random(7)
    for _ in range(300):
        code = rng.getrandbits(64)
        even = {16 * block + bit for block in range(4) for bit in rng.sample(range(16), per_block + 1)}
        beyond = _flip(code, even)
        within = _flip(code, even - {rng.choice(sorted(even))})
        probes = _key_set(PLAN.probe_keys(_array(code), radius))
        assert probes & _key_set(PLAN.keys(_array(within)))
        assert not probes & _key_set(PLAN.keys(_array(beyond)))


@given(CODES, CODES | st.none(), st.sets(POSITIONS, max_size=20), st.sampled_from([0, 1]))
def test_agree_says_what_the_keys_do(code: int, other: int | None, flips: set[int], radius: int) -> None:
    """`agree` holds exactly where a probe of one meets a key of the other, and is symmetric."""
    other = _flip(code, flips) if other is None else other
    meets = bool(_key_set(PLAN.probe_keys(_array(code), radius)) & _key_set(PLAN.keys(_array(other))))
    assert PLAN.agree(code, other, radius) == meets == PLAN.agree(other, code, radius)


def test_radius_for_each_distance() -> None:
    """Up to 3 bits radius 0 will do, up to 7 radius 1."""
    assert [PLAN.radius_for(distance) for distance in range(8)] == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: PLAN.radius_for(8), "within 0 to 7 bits .* 8 was asked for"),
        (lambda: PLAN.radius_for(-1), "within 0 to 7 bits"),
        (lambda: PLAN.probe_keys(_array(1), 2), "radii 0 and 1, not 2"),
        (lambda: PLAN.agree(1, 2, -1), "radii 0 and 1"),
        (lambda: BlockPlan.named("5x13"), "no block plan '5x13'; there is 4x16"),
        (lambda: BlockPlan.named("4x16", bits=128), "not of 128"),
        (lambda: BlockPlan(name="3x16", bits=64, blocks=3, block_bits=16), "do not make 64 bits"),
        (lambda: BlockPlan(name="8x8", bits=64, blocks=8, block_bits=8), "of 16 bits each"),
        (lambda: PLAN.band_keys(np.zeros((1, 17), dtype=np.uint64)), "16 bands, not 17"),
    ],
)
def test_refusals(call: Callable[[], object], reason: str) -> None:
    """A plan, radius or distance that cannot hold is refused with a sentence that says what does."""
    with pytest.raises(ValueError, match=reason):
        call()
