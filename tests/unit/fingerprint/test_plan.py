"""Block plans: which keys a fingerprint has, and what they find."""

import pickle
import random
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint.plan import BlockPlan

BITS = {"4x16": 64, "16x28": 64, "8x16": 128, "4x32": 128}
PLANS = {name: BlockPlan.named(name, bits) for name, bits in BITS.items()}
PLAN = PLANS["4x16"]
EXACT_TO = {"4x16": (3, 7), "16x28": (3, 4), "8x16": (7, 15), "4x32": (3, 7)}
PROBES = {"4x16": (4, 68), "16x28": (16, 128), "8x16": (8, 136), "4x32": (4, 132)}
EXAMPLE = 0x0123456789ABCDEF
WIDE_EXAMPLE = EXAMPLE << 64 | 0xFEDCBA9876543210

every_plan = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
radii = pytest.mark.parametrize("radius", [0, 1])


def array(plan: BlockPlan, *codes: int) -> npt.NDArray[np.uint64]:
    """Fingerprints as the engine gives them: uint64[n, words]."""
    words = b"".join(code.to_bytes(plan.code_bytes, "big") for code in codes)
    return np.frombuffer(words, ">u8").astype(np.uint64).reshape(-1, plan.bits // 64)


def key_set(keys: npt.NDArray[np.uint8]) -> set[bytes]:
    """All of these keys."""
    return {key.tobytes() for key in keys.reshape(-1, keys.shape[-1])}


def meet(plan: BlockPlan, code: int, other: int, radius: int) -> bool:
    """Whether a probe of the one is a key of the other."""
    return bool(key_set(plan.probe_keys(array(plan, code), radius)) & key_set(plan.keys(array(plan, other))))


def flip(code: int, places: set[int] | tuple[int, ...]) -> int:
    """The code with the bits at these places changed."""
    for place in places:
        code ^= 1 << place
    return code


def hexes(keys: npt.NDArray[np.uint8]) -> list[str]:
    """The keys of one text or band set, readable."""
    return [key.tobytes().hex() for key in keys[0]]


@pytest.mark.parametrize(
    ("name", "code", "keys"),
    [
        ("4x16", EXAMPLE, "000123 014567 0289ab 03cdef"),
        (
            "16x28",
            EXAMPLE,
            (
                "0001230456 0001231789 0001232abc 0001233def 0145670012 0145671389 0145672abc 0145673def "
                "0289ab0012 0289ab1345 0289ab267c 0289ab3def 03cdef0012 03cdef1345 03cdef2678 03cdef39ab"
            ),
        ),
        ("8x16", WIDE_EXAMPLE, "000123 014567 0289ab 03cdef 04fedc 05ba98 067654 073210"),
        ("4x32", WIDE_EXAMPLE, "0001234567 0189abcdef 02fedcba98 0376543210"),
    ],
)
def test_keys_of_an_example(name: str, code: int, keys: str) -> None:
    """A key is block number and value, then with parts the number and value of a part of the rest."""
    plan = PLANS[name]
    assert hexes(plan.keys(array(plan, code))) == keys.split()
    assert plan.key_bytes == len(keys.split(maxsplit=1)[0]) // 2
    assert plan.name == f"{len(keys.split())}x{plan.key_bits}"


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("4x16", ["100123", "11fedc"]),
        ("16x28", ["1001230456", "11fedc0ba9"]),
        ("8x16", ["100123", "11fedc"]),
        ("4x32", ["1001234567", "11fedcba98"]),
    ],
)
def test_band_keys_of_an_example(name: str, keys: list[str]) -> None:
    """A band's key is in lane 1, with the band's number and as many of its top bits as a block and a part have."""
    bands = np.array([[EXAMPLE, 0xFEDCBA9876543210]], dtype=np.uint64)
    assert hexes(PLANS[name].band_keys(bands)) == keys


def test_no_bands_have_no_keys() -> None:
    """A scheme may have none, and a batch may be empty."""
    for plan in PLANS.values():
        assert plan.band_keys(np.zeros((2, 0), dtype=np.uint64)).shape == (2, 0, plan.key_bytes)
        assert plan.band_keys(np.zeros((0, 4), dtype=np.uint64)).shape == (0, 4, plan.key_bytes)
        assert plan.keys(array(plan)).shape[0] == 0


def test_probes_of_an_example() -> None:
    """A key is followed by its one-bit neighbours from the most significant bit."""
    probes = hexes(PLAN.probe_keys(array(PLAN, EXAMPLE), 1))
    assert probes[:3] + probes[16:18] == ["000123", "008123", "004123", "000122", "014567"]


def test_probes_of_a_plan_with_parts() -> None:
    """Neighbours of block 0 with each part, of part 0 with each block, and of no other."""
    probes = hexes(PLANS["16x28"].probe_keys(array(PLANS["16x28"], EXAMPLE), 1))
    assert probes[:2] + probes[16:19] == ["0001230456", "0081230456", "0001220456", "0001230c56", "0001230056"]
    assert [probe for probe in probes if probe.startswith("014567")][:2] == ["0145670012", "0145670812"]
    others = [probe for probe in probes if probe[:2] != "00" and probe[6] != "0"]
    assert others == [key for key in hexes(PLANS["16x28"].keys(array(PLANS["16x28"], EXAMPLE))) if key in others]
    assert len(others) == 9


@every_plan
@radii
def test_so_many_probes_are_read(plan: BlockPlan, radius: int) -> None:
    """No key is probed twice."""
    probes = plan.probe_keys(array(plan, EXAMPLE), radius)
    assert probes.shape == (1, PROBES[plan.name][radius], plan.key_bytes)
    assert len(key_set(probes)) == PROBES[plan.name][radius]


@every_plan
def test_probes_without_radius_are_the_keys_and_texts_are_independent(plan: BlockPlan) -> None:
    """With radius 0 the keys that are looked up are those that are stored, each text's as if it were alone."""
    chance = random.Random(plan.name)
    codes = [chance.getrandbits(plan.bits) for _ in range(20)]
    keys = plan.keys(array(plan, *codes))
    assert np.array_equal(plan.probe_keys(array(plan, *codes), 0), keys)
    assert [key_set(row) for row in keys] == [key_set(plan.keys(array(plan, code))) for code in codes]


@every_plan
@radii
@given(data=st.data())
def test_within_the_promise_a_probe_meets_a_key(plan: BlockPlan, radius: int, data: st.DataObject) -> None:
    """Wherever the differing bits are."""
    code = data.draw(st.integers(0, 2**plan.bits - 1))
    flips = data.draw(st.sets(st.integers(0, plan.bits - 1), max_size=EXACT_TO[plan.name][radius]))
    assert meet(plan, code, flip(code, flips), radius)
    assert plan.finds_pair(code, flip(code, flips), plan.radius_for(len(flips)))


def spreads(plan: BlockPlan, bits: int) -> Iterator[int]:
    """A difference for every way to spread this many bits over the pieces between the plan's cuts."""
    cuts = sorted({place for key in plan._keys for at, place in enumerate(key.places) if at % 4 == 0} | {plan.bits})
    pieces = [range(start, end) for start, end in pairwise(cuts)]
    chance = random.Random(f"{plan.name} {bits}")
    for chosen in combinations_with_replacement(range(len(pieces)), bits):
        if all(chosen.count(piece) <= len(pieces[piece]) for piece in chosen):
            yield flip(0, {p for piece in set(chosen) for p in chance.sample(pieces[piece], chosen.count(piece))})


@pytest.mark.parametrize(("name", "bits_max"), [("4x16", 4), ("16x28", 4), ("4x32", 3)])
def test_every_spread_is_found_up_to_the_promise(name: str, bits_max: int) -> None:
    """Not by chance but each: bits spread over pieces of four, in all ways."""
    plan = PLANS[name]
    for bits in range(bits_max + 1):
        radius = plan.radius_for(bits)
        keys, probes = (key_set(some) for some in (plan.keys(array(plan, 0)), plan.probe_keys(array(plan, 0), radius)))
        differences = list(spreads(plan, bits))
        if len(differences) > 4_000:
            differences = random.Random(name).sample(differences, 4_000)
        assert keys <= probes
        for other in plan.keys(array(plan, *differences)):
            assert probes & key_set(other)


@every_plan
@radii
def test_the_promise_is_tight(plan: BlockPlan, radius: int) -> None:
    """One bit more than is promised can hide, and the plan's own search finds such a pair."""
    claim = list(plan.exact_to)
    claim[radius] += 1
    with pytest.raises(ValueError, match=f"is not exact to {claim[radius]} bits with radius {radius}: .* bits of 0x"):
        BlockPlan(plan.name, plan.bits, plan.block_bits, plan.parts, (claim[0], claim[1]))
    chance = random.Random(plan.name)
    assert any(
        not meet(plan, 0, flip(0, hidden), radius) for hidden in hiding_places(plan, claim[radius], radius, chance)
    )


def hiding_places(plan: BlockPlan, bits: int, radius: int, chance: random.Random) -> Iterator[set[int]]:
    """Bits as hard to find as can be: as even over the blocks as they go, or over a rest's parts."""
    for _ in range(200):
        if plan.parts and radius == 0:
            yield {chance.randrange(start, start + 12) for start in range(0, 48, 12)}
        elif plan.parts:
            yield {60, 61, *(chance.randrange(start, start + 12) for start in range(0, 36, 12))}
        else:
            each = bits // plan.blocks
            starts = range(0, plan.bits, plan.block_bits)
            yield {start + bit for start in starts for bit in chance.sample(range(plan.block_bits), each)}


@every_plan
@radii
@given(data=st.data())
def test_agree_says_what_the_keys_do(plan: BlockPlan, radius: int, data: st.DataObject) -> None:
    """`agree` holds exactly where a probe of one meets a key of the other, and is symmetric."""
    code = data.draw(st.integers(0, 2**plan.bits - 1))
    near = st.sets(st.integers(0, plan.bits - 1), max_size=20).map(lambda places: flip(code, places))
    other = data.draw(near | st.integers(0, 2**plan.bits - 1))
    assert plan.finds_pair(code, other, radius) == meet(plan, code, other, radius) == meet(plan, other, code, radius)
    assert plan.finds_pair(code, other, radius) == plan.finds_pair(other, code, radius)


def cheapest(unmet: set[frozenset[int]], costs: list[int], below: int) -> int:
    """The cost of the cheapest choice that has one of each of these sets; ``below`` if none costs less."""
    if not unmet or below <= 0:
        return min(0, below)
    for chosen in min(unmet, key=len):
        left = {some for some in unmet if chosen not in some}
        below = min(below, costs[chosen] + cheapest(left, costs, below - costs[chosen]))
    return below


def test_no_cheaper_choice_of_neighbours_is_exact_to_four() -> None:
    """Of all sets of whole blocks and parts whose neighbours 16x28 could probe, the cheapest has as many as it does."""
    plan = PLANS["16x28"]
    flips = []
    for key in plan._keys:
        block = sum(1 << 63 - place for place in key.places[:16])
        flips += [(key.mask, block), (key.mask, key.mask & ~block)]
    hidden = [difference for difference in spreads(plan, 4) if all(difference & key.mask for key in plan._keys)]
    finders = {
        frozenset(n for n, (mask, flipped) in enumerate(flips) if (d & mask).bit_count() == 1 and d & flipped)
        for d in hidden
    }
    hardest = {some for some in finders if not any(other < some for other in finders)}
    costs = [flipped.bit_count() for _, flipped in flips]
    assert len(hardest) > 20
    assert cheapest(hardest, costs, 1_000) == 112 == PROBES["16x28"][1] - PROBES["16x28"][0]


@pytest.mark.parametrize(("name", "exact_to"), EXACT_TO.items())
def test_radius_for_each_distance(name: str, exact_to: tuple[int, int]) -> None:
    """Radius 0 as far as it goes, then radius 1."""
    near, far = exact_to
    expected = [0] * (near + 1) + [1] * (far - near)
    assert [PLANS[name].radius_for(distance) for distance in range(far + 1)] == expected


def test_plans_are_values() -> None:
    """Equal, hashable and sent to other processes by what they are."""
    for name, plan in PLANS.items():
        again = pickle.loads(pickle.dumps(plan))
        assert again == plan == BlockPlan.named(name, BITS[name])
        assert hash(again) == hash(plan)
        assert np.array_equal(again.keys(array(plan, 7)), plan.keys(array(plan, 7)))
    assert len(set(PLANS.values())) == len(PLANS) == len(BlockPlan.NAMES)


REFUSALS: list[tuple[Callable[[], object], str]] = [
    (
        lambda: PLAN.radius_for(8),
        "4x16 finds every pair within 0 to 7 bits .* not 8; no plan for 64 bits",
    ),
    (lambda: PLAN.radius_for(-1), "within 0 to 7 bits"),
    (lambda: PLANS["16x28"].radius_for(5), "within 0 to 4 bits .* not 5; choose 4x16"),
    (lambda: PLANS["4x32"].radius_for(8), "not 8; choose 8x16"),
    (lambda: PLANS["8x16"].radius_for(16), "no plan for 128 bits supports more than 15"),
    (lambda: PLAN.probe_keys(array(PLAN, 1), 2), "radii 0 and 1, not 2"),
    (lambda: PLAN.finds_pair(1, 2, -1), "radii 0 and 1"),
    (lambda: PLAN.keys(array(PLANS["8x16"], 1)), "4x16 takes codes of 1 words a text"),
    (lambda: PLAN.keys(np.zeros(3, np.uint64)), "4x16 takes codes of 1 words a text"),
    (lambda: BlockPlan.named("5x13"), "unknown block plan '5x13'; choose 4x16, 16x28, 8x16, 4x32"),
    (lambda: BlockPlan.named("4x16", bits=128), "of 64 bits, not of 128; choose 8x16, 4x32"),
    (lambda: BlockPlan.named("8x16"), "of 128 bits, not of 64; choose 4x16, 16x28"),
    (lambda: BlockPlan.named("4x16", bits=96), "not of 96; no plan supports 96 bits"),
    (lambda: BlockPlan("3x16", 48, 16, 0, (2, 5)), "of 64 or 128 bits into blocks of 16 or 32"),
    (lambda: BlockPlan("8x8", 64, 8, 0, (7, 15)), "of 64 or 128 bits into blocks of 16 or 32"),
    (lambda: BlockPlan("20x25", 64, 16, 5, (3, 3)), "48 bits cannot be cut into 5 equal parts"),
    (lambda: BlockPlan("12x32", 64, 16, 3, (2, 2)), "fill whole bytes"),
    (lambda: BlockPlan("x", 64, 16, -4, (3, 4)), "fill whole bytes|cannot be cut"),
    (lambda: PLAN.band_keys(np.zeros((1, 17), dtype=np.uint64)), "at most 16 bands, not 17"),
]


@pytest.mark.parametrize(("call", "reason"), REFUSALS)
def test_refusals(call: Callable[[], object], reason: str) -> None:
    """A plan, radius or distance that cannot hold is refused with a sentence that says what does."""
    with pytest.raises(ValueError, match=reason):
        call()
