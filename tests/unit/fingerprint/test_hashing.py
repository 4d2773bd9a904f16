"""FNV-1a and the finalizer."""

import numpy as np
import pytest

from consumer.fingerprint.hashing import fnv1a_64, mix_64


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
