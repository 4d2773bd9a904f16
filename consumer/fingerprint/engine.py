"""The engine: a batch of texts in, arrays of fingerprints, sketches and keywords out."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.features import Features, WordTable
from consumer.fingerprint.keywords import Tokenizer, default_tokenizer
from consumer.fingerprint.normalise import normalise
from consumer.fingerprint.scheme import Lexicon, Scheme
from consumer.fingerprint.sketch import sketch_batch
from consumer.fingerprint.summing import fingerprint_batch

TEXT_DIGEST_BYTES: Final = 16
# Words remembered with hash and IDF, about 200 bytes each. Checked before a batch, so one batch's words may come
# on top; then all are forgotten.
WORDS_REMEMBERED_MAX: Final = 1 << 18
# Keywords that go with an article as evidence; the fingerprint is made of all that the scheme counts.
KEYWORDS_KEPT: Final = 32


class TextKind(IntEnum):
    """How a text can be matched."""

    EMPTY = 0
    """No keyword: no postings, matched by nothing."""
    SHORT = 1
    """Too few keywords: equal normalised text is a duplicate, and nothing else."""
    LONG = 2
    """By fingerprint and sketch."""


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprints:
    """
    What the engine tells of n texts, as arrays whose first axis is the text.

    `codes` uint64[n]: fingerprints. `sketches` uint8[n, 256]. `one_bits` uint64[n]: one-bit minima.
    `bands` uint64[n, bands]: full-width folds for lane 1. `keywords`: the heaviest with their weights.
    `kinds` uint8[n]: see `TextKind`. `text_digests` uint8[n, 16]: BLAKE2b of the normalised text.
    """

    codes: npt.NDArray[np.uint64]
    sketches: npt.NDArray[np.uint8]
    one_bits: npt.NDArray[np.uint64]
    bands: npt.NDArray[np.uint64]
    keywords: tuple[tuple[tuple[str, float], ...], ...]
    kinds: npt.NDArray[np.uint8]
    text_digests: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        """Count the texts."""
        return len(self.codes)


class Fingerprinter:
    """
    Makes fingerprints by one scheme; not for use by several threads at once.

    `keywords_kept` keywords go along as evidence, None for all; it changes no fingerprint. A worker process
    builds its own, from the same scheme and `consumer.lexicon.load_lexicon()`.
    """

    def __init__(
        self,
        scheme: Scheme,
        lexicon: Lexicon,
        tokenizer: Tokenizer | None = None,
        keywords_kept: int | None = KEYWORDS_KEPT,
    ) -> None:
        self._scheme = scheme
        self._lexicon = lexicon
        self._tokenizer = default_tokenizer() if tokenizer is None else tokenizer
        self._keywords_kept = keywords_kept
        self._word_table = WordTable(lexicon)

    @property
    def scheme(self) -> Scheme:
        """The scheme of all fingerprints made here."""
        return self._scheme

    def fingerprint(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Fingerprints:
        """
        Fingerprint raw texts; each one's result is independent of the rest of the batch.

        `languages` are those that the texts declare, "" for none; only the sketch depends on them.
        """
        normalised = [normalise(text) for text in texts]
        features = self._features(normalised)
        distinct = np.diff(features.offsets)
        if self._scheme.keywords_max is not None:
            features = features.only_heaviest(self._scheme.keywords_max)
        sketched = sketch_batch(normalised, self._scheme.sketch, languages)
        return Fingerprints(
            codes=fingerprint_batch(features.hashes, features.weights, features.offsets),
            sketches=sketched.sketches,
            one_bits=sketched.one_bits,
            bands=sketched.bands,
            keywords=tuple(
                features.keywords(features.heaviest(text, self._keywords_kept)) for text in range(len(texts))
            ),
            kinds=_kinds(distinct, self._scheme.short_keywords_max),
            text_digests=_digests(normalised),
        )

    def _features(self, texts: list[str]) -> Features:
        if len(self._word_table) >= WORDS_REMEMBERED_MAX:
            self._word_table = WordTable(self._lexicon)
        words: list[str] = []
        counts: list[int] = []
        stops: list[int] = []
        for text in texts:
            counted = self._tokenizer.count(text)
            words += counted
            counts += counted.values()
            stops.append(len(words))
        return self._word_table.features(words, counts, stops)


def _kinds(distinct: npt.NDArray[np.int64], short_keywords_max: int) -> npt.NDArray[np.uint8]:
    kinds = np.full(len(distinct), TextKind.LONG, dtype=np.uint8)
    kinds[distinct <= short_keywords_max] = TextKind.SHORT
    kinds[distinct == 0] = TextKind.EMPTY
    return kinds


def _digests(texts: list[str]) -> npt.NDArray[np.uint8]:
    joined = b"".join(hashlib.blake2b(text.encode(), digest_size=TEXT_DIGEST_BYTES).digest() for text in texts)
    return np.frombuffer(joined, dtype=np.uint8).reshape(len(texts), TEXT_DIGEST_BYTES)
