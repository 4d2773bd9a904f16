"""The engine: a batch of texts in, arrays of fingerprints, sketches and keywords out."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.facts import facts_of, pack_facts
from consumer.fingerprint.features import Features, WordTable
from consumer.fingerprint.keywords import Tokenizer, default_tokenizer
from consumer.fingerprint.lexicon import Lexicon
from consumer.fingerprint.normalise import normalise
from consumer.fingerprint.scheme import Scheme
from consumer.fingerprint.sketch import no_sketches, sketch_batch
from consumer.fingerprint.summing import bit_sums, fingerprint_batch, fingerprint_number, round_weights, simhash

TEXT_DIGEST_BYTES: Final = 16
# Words remembered with hash and IDF, about 200 bytes each. Checked before a chunk, so one chunk's words may come
# on top; then all are forgotten.
WORDS_REMEMBERED_MAX: Final = 1 << 17
# The same for the characters of these words, since a word can be as long as its text.
CHARACTERS_REMEMBERED_MAX: Final = 1 << 24
# Texts are worked on together up to so many characters; a longer one is alone. What is made of a text on the way
# (words, counts, hashes, shingles) takes about a hundred bytes a character, and what is kept a few thousand in all.
CHUNK_CHARACTERS: Final = 1 << 18
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

    `codes` uint64[n, words]: fingerprints, the most significant of `bits // 64` words first. `sketches` uint8[n, 256],
    or uint8[n, 0] where none were asked for.
    `one_bits` uint64[n]: one-bit minima. `bands` uint64[n, bands]: full-width folds for lane 1. `keywords`: the
    heaviest of at most 64 characters, with their weights. `kinds` uint8[n]: see `TextKind`. `text_digests`
    uint8[n, 16]: BLAKE2b of the normalised text. `facts`: see `consumer.fingerprint.facts`, nothing where the scheme
    has none made. `keyword_counts` int64[n]: how many distinct keywords a text has, those beyond `keywords_max` too.
    """

    codes: npt.NDArray[np.uint64]
    sketches: npt.NDArray[np.uint8]
    one_bits: npt.NDArray[np.uint64]
    bands: npt.NDArray[np.uint64]
    keywords: tuple[tuple[tuple[str, float], ...], ...]
    kinds: npt.NDArray[np.uint8]
    text_digests: npt.NDArray[np.uint8]
    keyword_counts: npt.NDArray[np.int64]
    facts: tuple[bytes, ...] = ()

    def __len__(self) -> int:
        """Count the texts."""
        return len(self.codes)


def chunks(texts: Sequence[str], characters_max: int) -> list[slice]:
    """Cut a batch: each chunk has one text, or several of `characters_max` together. There is at least one chunk."""
    cuts, characters = [0], 0
    for place, text in enumerate(texts):
        if place > cuts[-1] and characters + len(text) > characters_max:
            cuts.append(place)
            characters = 0
        characters += len(text)
    return [slice(start, end) for start, end in pairwise([*cuts, len(texts)])]


def joined(parts: Sequence[Fingerprints]) -> Fingerprints:
    """One batch of several, at least one; none of a text depends on what batch it is in."""
    if len(parts) == 1:
        return parts[0]
    return Fingerprints(
        codes=np.concatenate([one.codes for one in parts]),
        sketches=np.concatenate([one.sketches for one in parts]),
        one_bits=np.concatenate([one.one_bits for one in parts]),
        bands=np.concatenate([one.bands for one in parts]),
        keywords=tuple(chain.from_iterable(one.keywords for one in parts)),
        kinds=np.concatenate([one.kinds for one in parts]),
        text_digests=np.concatenate([one.text_digests for one in parts]),
        keyword_counts=np.concatenate([one.keyword_counts for one in parts]),
        facts=tuple(chain.from_iterable(one.facts for one in parts)),
    )


class WeighedWord(NamedTuple):
    """A word that counts, its weight before rounding, and its hash."""

    word: str
    weight: float
    hash: int


class Breakdown(NamedTuple):
    """
    A fingerprint and what it was made of.

    `words`: all that went into it, heaviest first. `sums`: bit by bit, the most significant first, of rounded weights.
    """

    kind: TextKind
    words: tuple[WeighedWord, ...]
    sums: tuple[float, ...]
    fingerprint: int


class Fingerprinter:
    """
    Makes fingerprints by one scheme; not for use by several threads at once.

    `keywords_kept` keywords go along as evidence, None for all; `sketched` says whether sketches are made. Neither
    changes a fingerprint. A worker process builds its own, from the same scheme and
    `consumer.workers.word_files.load_lexicon()`.
    """

    def __init__(
        self,
        scheme: Scheme,
        lexicon: Lexicon,
        tokenizer: Tokenizer | None = None,
        keywords_kept: int | None = KEYWORDS_KEPT,
        *,
        sketched: bool = True,
    ) -> None:
        self._scheme = scheme
        self._lexicon = lexicon
        self._tokenizer = default_tokenizer(lexicon.own_words) if tokenizer is None else tokenizer
        self._keywords_kept = keywords_kept
        self._sketched = sketched
        self._word_table = WordTable(scheme.definition, lexicon)

    @property
    def scheme(self) -> Scheme:
        """The scheme of all fingerprints made here."""
        return self._scheme

    def fingerprint(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Fingerprints:
        """
        Fingerprint raw texts; each one's result is independent of the rest of the batch.

        `languages` are those that the texts declare, "" for none; only the sketch depends on them.
        """
        declared = [""] * len(texts) if languages is None else languages
        return joined([self._fingerprint(texts[chunk], declared[chunk]) for chunk in chunks(texts, CHUNK_CHARACTERS)])

    def _fingerprint(self, texts: Sequence[str], languages: Sequence[str]) -> Fingerprints:
        normalised = [normalise(text) for text in texts]
        reading = self._scheme.definition.reading.form
        features = self._features(normalised if reading is normalise else [reading(text) for text in texts])
        distinct = np.diff(features.offsets)
        facts = pack_facts(self._facts(texts, normalised, features)) if self._scheme.facts else ()
        if self._scheme.keywords_max is not None:
            features = features.only_heaviest(self._scheme.keywords_max)
        layout = self._scheme.sketch
        sketched = sketch_batch(normalised, layout, languages) if self._sketched else no_sketches(len(texts), layout)
        tie = self._scheme.definition.tie
        return Fingerprints(
            codes=fingerprint_batch(features.hashes, features.weights, features.offsets, tie=tie),
            sketches=sketched.sketches,
            one_bits=sketched.one_bits,
            bands=sketched.bands,
            keywords=tuple(features.evidence(text, self._keywords_kept) for text in range(len(texts))),
            kinds=_kinds(distinct, self._scheme.short_keywords_max),
            text_digests=_digests(normalised),
            keyword_counts=distinct,
            facts=facts,
        )

    def breakdown(self, text: str) -> "Breakdown":
        """Fingerprint one raw text in steps that a person can follow."""
        definition = self._scheme.definition
        features = self._features([definition.reading.form(text)])
        distinct = np.diff(features.offsets)
        places = features.heaviest(0, self._scheme.keywords_max)
        hashes = [fingerprint_number(features.hashes[place]) for place in places]
        rounded = round_weights(features.weights[places]).tolist()
        pairs = list(zip(hashes, rounded, strict=True))
        return Breakdown(
            kind=TextKind(int(_kinds(distinct, self._scheme.short_keywords_max)[0])),
            words=tuple(
                WeighedWord(word, weight, value)
                for (word, weight), value in zip(features.keywords(places), hashes, strict=True)
            ),
            sums=tuple(bit_sums(pairs, definition.bits)),
            fingerprint=simhash(pairs, definition.bits, tie=definition.tie),
        )

    def words(self, text: str) -> set[str]:
        """Tell the words of one raw text that count in this scheme, however many go into the fingerprint."""
        definition = self._scheme.definition
        counted = self._tokenizer.count(definition.reading.form(text))
        return {word for word in counted if definition.counting.counts(word, self._lexicon)}

    def facts(self, text: str) -> set[str]:
        """Tell the facts of one raw text, whether or not the scheme has them made."""
        features = self._features([self._scheme.definition.reading.form(text)])
        return self._facts([text], [normalise(text)], features)[0]

    def _facts(self, texts: Sequence[str], normalised: Sequence[str], features: Features) -> list[set[str]]:
        known = self._lexicon.idf
        return [
            facts_of(text, form, words, known)
            for text, form, words in zip(texts, normalised, features.words_of_texts(), strict=True)
        ]

    def _features(self, texts: list[str]) -> Features:
        table = self._word_table
        if len(table) >= WORDS_REMEMBERED_MAX or table.characters >= CHARACTERS_REMEMBERED_MAX:
            self._word_table = WordTable(self._scheme.definition, self._lexicon)
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
