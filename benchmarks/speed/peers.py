"""What people would write today, as they would write it; the packages are loaded when they are needed.

- The stock build: keywords from ``jieba.analyse``, the ``simhash`` package for the fingerprint and for the index.
- ``datasketch.MinHashLSH``: 128 permutations, threshold 0.7, shingles of 5 characters of the normalised text.
- ``rensa.RMinHashLSH``, in Rust: the same permutations and shingles, in 16 bands: they find 6 in 10 pairs at 0.7.
"""

import logging
import warnings
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.quality.shingles import normalise

TOP_KEYWORDS: Final = 20
DISTANCE_MAX: Final = 3
PERMUTATIONS: Final = 128
THRESHOLD: Final = 0.7
SHINGLE_CHARS: Final = 5
STOCK: Final = "jieba.analyse + simhash + SimhashIndex"
DATASKETCH: Final = "datasketch.MinHashLSH"
RENSA: Final = "rensa.RMinHashLSH"
RENSA_BANDS: Final = 16
_RENSA_SEED: Final = 42
_RENSA_PRELOADED_SHINGLES: Final = 16


def installed(*packages: str) -> bool:
    """Say whether all of these can be imported; ``make bench`` installs them."""
    return all(find_spec(package) for package in packages)


class StockBuild:
    """``extract_tags`` with 20 keywords, ``Simhash`` of them, ``SimhashIndex`` with k = 3; jieba is warm."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            # jieba 0.42.1 has escapes that newer Pythons warn of.
            warnings.simplefilter("ignore")
            self._analyse: Any = import_module("jieba.analyse")
        import_module("jieba").setLogLevel(logging.ERROR)
        self._simhash: Any = import_module("simhash")
        # It warns of every row above 200.
        logging.getLogger("simhash").setLevel(logging.ERROR)
        self._index = self._simhash.SimhashIndex([], k=DISTANCE_MAX)
        self.fingerprint("热身")

    def fingerprint(self, text: str) -> Any:  # noqa: ANN401  # the package has no types
        """Fingerprint a text: a ``simhash.Simhash``."""
        return self._simhash.Simhash(self._analyse.extract_tags(text, topK=TOP_KEYWORDS, withWeight=True))

    def preload(self, codes: npt.NDArray[np.uint64]) -> None:
        """Put articles with these fingerprints into the index."""
        for number, code in enumerate(codes.tolist()):
            self._index.add(f"preloaded-{number}", self._simhash.Simhash(code))

    def judge(self, article_id: str, text: str) -> bool:
        """Say whether the text repeats one in the index; where it does not, put it there."""
        fingerprint = self.fingerprint(text)
        if self._index.get_near_dups(fingerprint):
            return True
        self._index.add(article_id, fingerprint)
        return False

    def near(self, code: int) -> list[str]:
        """Look a fingerprint up."""
        found: list[str] = self._index.get_near_dups(self._simhash.Simhash(code))
        return found


class SimhashPackage:
    """``simhash`` with its own features (windows of four letters), and its index."""

    def __init__(self, distance: int) -> None:
        self._simhash: Any = import_module("simhash").Simhash
        log = logging.getLogger("simhash")
        # It warns of every row above 200.
        log.setLevel(logging.ERROR)
        self._index: Any = import_module("simhash").SimhashIndex([], k=distance, log=log)
        self._kept: dict[str, Any] = {}

    def named(self, article_id: str, text: str) -> str | None:
        """Name the nearest of the articles that the index finds; if it finds none, put the text there."""
        fingerprint = self._simhash(text)
        hits: list[str] = self._index.get_near_dups(fingerprint)
        if hits:
            return min(hits, key=lambda hit: (fingerprint.distance(self._kept[hit]), hit))
        self._kept[article_id] = fingerprint
        self._index.add(article_id, fingerprint)
        return None


class MinHashLsh:
    """``datasketch`` with the permutations made once, and the shingles of a text hashed in one call."""

    def __init__(self, threshold: float = THRESHOLD) -> None:
        datasketch: Any = import_module("datasketch")
        self._empty = _empty_minhash()
        self._index = datasketch.MinHashLSH(num_perm=PERMUTATIONS, params=_bands_and_rows(threshold))
        self._minhashes: dict[str, Any] = {}

    @property
    def tables(self) -> int:
        """How many hash tables a look-up reads."""
        return int(self._index.b)

    def preload(self, count: int, rng: np.random.Generator) -> None:
        """Put articles that resemble no other into the index."""
        values = rng.integers(0, 1 << 32, (count, PERMUTATIONS), dtype=np.uint64).astype(np.uint32)
        for number in range(count):
            minhash = self._empty.copy()
            minhash.hashvalues = values[number]
            self._index.insert(f"preloaded-{number}", minhash)

    def minhash(self, shingles: Iterable[str]) -> Any:  # noqa: ANN401  # the package's types are partial
        """Sketch a set of shingles: a ``datasketch.MinHash``."""
        minhash = self._empty.copy()
        minhash.update_batch([shingle.encode() for shingle in shingles])
        return minhash

    def judge(self, article_id: str, text: str) -> bool:
        """Say whether the text repeats one in the index; where it does not, put it there."""
        return self.judge_shingles(article_id, shingles(text))[0] is not None

    def named(self, article_id: str, text: str) -> str | None:
        """Name the most similar of the articles that the index finds; if it finds none, put the text there."""
        return self.judge_shingles(article_id, shingles(text))[0]

    def judge_shingles(self, article_id: str, parts: set[str], similarity_min: float = 0.0) -> tuple[str | None, float]:
        """Name the most similar of the articles that the index finds, with the estimate.

        Where there is none with an estimate of at least ``similarity_min``, the article is put into the index.
        """
        if not parts:
            return None, 0.0
        minhash = self.minhash(parts)
        hits = [(float(minhash.jaccard(self._minhashes[hit])), hit) for hit in self._index.query(minhash)]
        best = max(hits, default=(0.0, None))
        if best[1] is not None and best[0] >= similarity_min:
            return best[1], best[0]
        self._minhashes[article_id] = minhash
        self._index.insert(article_id, minhash)
        return None, 0.0


@cache
def _empty_minhash() -> Any:  # noqa: ANN401  # the package's types are partial
    return import_module("datasketch").MinHash(num_perm=PERMUTATIONS)


@cache
def _bands_and_rows(threshold: float) -> tuple[int, int]:
    """Return what ``datasketch`` chooses for a threshold; choosing takes it a good part of a second."""
    chosen: Any = import_module("datasketch").MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
    return int(chosen.b), int(chosen.r)


class RensaLsh:
    """``rensa``: one ``RMinHash`` per article, with its shingles in one call."""

    def __init__(self, bands: int = RENSA_BANDS) -> None:
        rensa: Any = import_module("rensa")
        self._sketch = rensa.RMinHash
        self._index = rensa.RMinHashLSH(THRESHOLD, PERMUTATIONS, bands)
        self._kept: dict[int, tuple[str, Any]] = {}
        self._articles = 0

    def preload(self, count: int, rng: np.random.Generator) -> None:
        """Put articles that resemble no other into the index."""
        shingle_hashes = rng.integers(0, 1 << 64, (count, _RENSA_PRELOADED_SHINGLES), dtype=np.uint64).tolist()
        self._index.insert_matrix(
            self._sketch.digest_matrix_from_token_hash_sets(shingle_hashes, PERMUTATIONS, _RENSA_SEED), self._articles
        )
        self._articles += count

    def judge(self, article_id: str, text: str) -> bool:
        """Say whether the text shares a band with one in the index; if not, put it there."""
        return self.named(article_id, text) is not None

    def named(self, article_id: str, text: str) -> str | None:
        """Name the most similar of the articles that share a band with the text; if none does, put it into the index.

        Preloaded articles have no names: the first one is named by its number.
        """
        sketch = self._sketch(PERMUTATIONS, _RENSA_SEED)
        sketch.update(list(shingles(text)))
        hits = self._index.query(sketch)
        if hits:
            named = [self._kept[hit] for hit in hits if hit in self._kept]
            best = max(named, key=lambda kept: float(sketch.jaccard(kept[1])), default=None)
            return str(hits[0]) if best is None else best[0]
        self._index.insert(self._articles, sketch)
        self._kept[self._articles] = (article_id, sketch)
        self._articles += 1
        return None


def shingles(text: str, chars: int = SHINGLE_CHARS) -> set[str]:
    """Cut a text, normalised, into its shingles; one shorter than a shingle is one shingle."""
    normalised = normalise(text, drop_invisible=True)
    if not normalised:
        return set()
    return {normalised[start : start + chars] for start in range(max(1, len(normalised) - chars + 1))}
