"""FNV-1a, the finalizer, and SipHash."""

import json
import subprocess
import sys

import numpy as np
import pytest

from consumer.fingerprint.hashing import fnv1a_64, mix_64, siphash_13
from tests.fixtures.fingerprint import keyed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "cbf29ce484222325"),
        ("a", "af63dc4c8601ec8c"),
        ("foobar", "85944171f73967e8"),
        ("上海", "4ef4ef9ee82af0c5"),
        ("北京", "9aa1e75cf0257d61"),
        ("区块链", "f67551a33d0254b1"),
        ("共识", "b10a771c80d091b7"),
    ],
)
def test_fnv1a_has_the_published_values(text: str, expected: str) -> None:
    """FNV-1a 64 over UTF-8 gives the values computed from its definition, unsigned."""
    assert f"{fnv1a_64(text.encode()):016x}" == expected


def test_mixing_is_splitmix64() -> None:
    """The first outputs of SplitMix64 seeded with 0 are the mixed multiples of its increment."""
    states = np.arange(1, 4, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    assert [f"{int(value):016x}" for value in mix_64(states)] == [
        "e220a8397b1dcdaf",
        "6e789e6aa1b965f4",
        "06c45d188009454f",
    ]


def test_mixing_spreads_single_ideographs() -> None:
    """The top 16 bits of single ideographs take few values by FNV-1a alone and most of them when mixed."""
    raw = np.array([fnv1a_64(chr(code).encode()) for code in range(0x4E00, 0x9FA6)], dtype=np.uint64)
    assert len(np.unique(raw >> np.uint64(48))) < 1000
    assert len(np.unique(mix_64(raw) >> np.uint64(48))) > 17_000


def test_siphash_has_the_published_values() -> None:
    """Of the bytes 00 to 07, with the key 00 to 0f and with one of zeros."""
    value = np.array([0x0706050403020100], dtype=np.uint64)
    assert siphash_13(value, 0x0706050403020100, 0x0F0E0D0C0B0A0908).tolist() == [0x369095118D299A8E]
    assert siphash_13(value, 0, 0).tolist() == [0xEAD411E67EBE2EEA]


def test_siphash_is_that_of_the_definition() -> None:
    """More values than are hashed at a time, with any key; each is hashed as if it were alone."""
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2**64, 10_000, dtype=np.uint64)
    before = values.copy()
    first, second = (int(half) for half in rng.integers(0, 2**64, 2, dtype=np.uint64))
    hashed = siphash_13(values, first, second)
    assert (values == before).all()
    for place in (*range(60), *range(4_066, 4_126), 9_999):
        expected = keyed.siphash_13(int(values[place]).to_bytes(8, "little"), first, second)
        assert int(hashed[place]) == expected
    assert len(siphash_13(values[:0], 0, 0)) == 0


@pytest.mark.skipif(sys.hash_info.algorithm != "siphash13", reason="this Python hashes in another way")
def test_siphash_is_pythons() -> None:
    """Python itself hashes bytes with SipHash-1-3; without randomness its key is zeros."""
    values = np.arange(40, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    program = f"print([hash(value.to_bytes(8, 'little')) for value in {values.tolist()}])"
    answer = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=True
    )
    assert siphash_13(values, 0, 0).view(np.int64).tolist() == json.loads(answer.stdout)
