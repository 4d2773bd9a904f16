"""Random hyperplanes: the per-feature hash in place of the matrix."""

import math

import numpy as np
import numpy.typing as npt
import pytest

from consumer.fingerprint import Fingerprinter, Lexicon, Scheme, fingerprint_number, fingerprint_vectors
from tests.fixtures.fingerprint.second import fnv1a, splitmix


def _matrix(features: list[str], bits: int) -> npt.NDArray[np.float64]:
    """The explicit D × f matrix of ±1."""
    rows = [[float(bit) for bit in f"{splitmix(fnv1a(feature), bits):0{bits}b}"] for feature in features]
    return 2.0 * np.array(rows) - 1.0


def _by_matrix(vectors: npt.NDArray[np.float64], matrix: npt.NDArray[np.float64]) -> list[int]:
    signs = np.rint(vectors * 2**20) @ matrix > 0
    return [int("".join("01"[int(sign)] for sign in row), 2) for row in signs]


@pytest.mark.parametrize("bits", [64, 128])
def test_hash_equals_the_explicit_matrix(bits: int) -> None:
    """Vectors with weights of either sign have the fingerprints that the product with the explicit matrix gives."""
    rng = np.random.default_rng(7)
    features = [f"dimension {number}" for number in range(40)]
    vectors = rng.normal(size=(25, 40)) * (rng.random((25, 40)) < 0.5)
    vectors[3] = 0.0
    fingerprints = fingerprint_vectors(features, vectors, bits)
    assert list(map(fingerprint_number, fingerprints)) == _by_matrix(vectors, _matrix(features, bits))
    assert fingerprints.shape == (25, bits // 64)


@pytest.mark.parametrize("bits", [64, 128])
def test_scheme_equals_the_explicit_matrix(bits: int, lexicon: Lexicon) -> None:
    """The scheme's fingerprint of a text is that of its keyword vector by the explicit matrix over all its words."""
    texts = ["江畔图书馆的新馆正式向读者开放，藏书约六十万册。", "新馆藏书很多，读者凭身份证即可进馆，图书馆免费。"]
    fingerprints = Fingerprinter(Scheme(name=f"hyperplanes-{bits}/1"), lexicon, keywords_kept=None).fingerprint(texts)
    features = sorted({word for keywords in fingerprints.keywords for word, _ in keywords})
    vectors = np.array([[dict(keywords).get(word, 0.0) for word in features] for keywords in fingerprints.keywords])
    assert list(map(fingerprint_number, fingerprints.codes)) == _by_matrix(vectors, _matrix(features, bits))


def test_distance_tells_the_angle() -> None:
    """The share of differing bits comes close to the angle between two vectors, as it does for true hyperplanes."""
    rng = np.random.default_rng(11)
    features = [f"dimension {number}" for number in range(300)]
    for angle in (0.3, 0.8, 1.5):
        bases = [np.linalg.qr(rng.normal(size=(300, 2)))[0].T for _ in range(100)]
        vectors = np.array([[first, math.cos(angle) * first + math.sin(angle) * other] for first, other in bases])
        codes = fingerprint_vectors(features, vectors.reshape(200, 300), 128)
        share = float(np.bitwise_count(codes[::2] ^ codes[1::2]).sum()) / (100 * 128)
        assert share == pytest.approx(angle / math.pi, abs=0.02)
