"""The parts of each published scheme, as data; docs/use/schemes.md names their sources."""

import math
import re
from collections.abc import Callable
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from consumer.fingerprint.characters.normalise import normalise, without_surrogates
from consumer.fingerprint.hashing import fnv1a_64
from consumer.fingerprint.hyperplanes import hyperplanes_64, hyperplanes_128
from consumer.fingerprint.lexicon import Lexicon
from consumer.fingerprint.published_hashes import (
    jenkins_64,
    md5_64,
    md5_128,
    multiply_xor_64,
    multiply_xor_128,
    multiply_xor_utf16_64,
    multiply_xor_utf16_128,
    sha1_64,
    sha1_128,
)
from consumer.fingerprint.secret import Secret
from consumer.fingerprint.shingles import WORDS, Shingling, of_letters
from consumer.fingerprint.sketch import SketchSimilarity, marked_sketch_similarity, sketch_similarity
from consumer.fingerprint.tokenizers import Tokenizer, default_tokenizer

_LETTER_OR_DIGIT: Final = re.compile(r"[^\W_]")


class SplitForm(NamedTuple):
    """The form of a text that is split into words. Sketches and text digests do not depend on it."""

    form: Callable[[str], str]
    described: str


class WordSplitting(NamedTuple):
    """The splitting of texts into words. ``tokenizer`` builds an engine's tokenizer, with the lexicon's own words."""

    tokenizer: Callable[[Lexicon], Tokenizer]
    described: str


class WordFilter(NamedTuple):
    """The rule that decides which words count; stop words never count. ``described`` names the words that do not."""

    characters_min: int
    letter_or_digit: bool
    described: str

    def counts(self, word: str, lexicon: Lexicon) -> bool:
        """Return whether a word counts."""
        return (
            len(word.strip()) >= self.characters_min
            and word.lower() not in lexicon.stop_words
            and (not self.letter_or_digit or _LETTER_OR_DIGIT.search(word) is not None)
        )


class WordWeighting(NamedTuple):
    """The weighting of words: each occurrence of a word adds its factor, which depends on the lexicon."""

    factors: Callable[[Lexicon], Callable[[str], float]]
    described: str


class WordHash(NamedTuple):
    """An unsigned hash of a word, as wide as the fingerprint."""

    hash: Callable[[str], int]
    described: str


class MatchingLevel(IntEnum):
    """The texts that a scheme matches, and how. Each level extends the previous one."""

    KEYWORDS = 1
    """Texts with keywords, normalised; those with few keywords by digest."""
    EVERY_SCRIPT = 2
    """Texts of every script, in simplified characters; those with few keywords by shingles or digest."""
    LETTERS = 3
    """Texts by their letters and figures, in keyed shingles; digests are of a form with less folding."""


class Definition(NamedTuple):
    """A scheme without its parameters. A sum of exactly 0 gives the bit ``tie``."""

    bits: int
    split_form: SplitForm
    splitting: WordSplitting
    filtering: WordFilter
    weighting: WordWeighting
    hashing: WordHash
    tie: bool
    matching: MatchingLevel = MatchingLevel.KEYWORDS

    @property
    def every_script(self) -> bool:
        """Whether texts of every script are matched, Chinese ones in simplified characters."""
        return self.matching >= MatchingLevel.EVERY_SCRIPT

    @property
    def compares_letters(self) -> bool:
        """Whether shingles are keyed and of letters alone, sketches are marked, and all equal texts are near."""
        return self.matching >= MatchingLevel.LETTERS

    def shingling(self, secret: Secret) -> Shingling:
        """Return the shingling of texts; schemes with keyed shingles use the secret."""
        return of_letters(secret.hash_key) if self.compares_letters else WORDS

    @property
    def sketch_similarity(self) -> SketchSimilarity:
        """The function that estimates the similarity of two texts from their sketches."""
        return marked_sketch_similarity if self.compares_letters else sketch_similarity

    @property
    def similarity_min(self) -> float:
        """The default threshold of the similarity. 0.73 by letters corresponds to 0.75 by words."""
        return 0.73 if self.compares_letters else 0.75

    @property
    def tie_described(self) -> str:
        """The tie rule in words."""
        return f"bit is 1 where the sum is {'>=' if self.tie else '>'} 0"


def _idf_or_median(lexicon: Lexicon) -> Callable[[str], float]:
    weights, median = lexicon.table()
    return lambda word: weights.get(word, median)


def _idf_or_mean(lexicon: Lexicon) -> Callable[[str], float]:
    weights, median = lexicon.table()
    # ``math.fsum`` rounds correctly, so the order of the table does not matter.
    mean = math.fsum(weights.values()) / len(weights) if weights else median
    return lambda word: weights.get(word, mean)


def _unweighted(lexicon: Lexicon) -> Callable[[str], float]:
    del lexicon
    return lambda _: 1.0


_NORMALISED: Final = SplitForm(normalise, "the normalised text")
_AS_WRITTEN: Final = SplitForm(without_surrogates, "the text as written, a lone surrogate as U+FFFD")
_JIEBA: Final = WordSplitting(
    lambda lexicon: default_tokenizer(lexicon.own_words), "jieba 0.42.1, precise mode with HMM"
)
KEYWORDS: Final = WordFilter(2, letter_or_digit=False, described="fewer than 2 characters when stripped, stop words")
_TOKENS: Final = WordFilter(1, letter_or_digit=True, described="no letter and no digit in it, stop words")
_TF_IDF: Final = WordWeighting(
    _idf_or_median, "term frequency x inverse document frequency, the median one for unknown words"
)
_TF_IDF_MEAN: Final = WordWeighting(
    _idf_or_mean, "term frequency x inverse document frequency, the mean one for unknown words"
)
_COUNT: Final = WordWeighting(_unweighted, "term frequency")
_MULTIPLY_XOR: Final = "x = first x 128; x = (x x 1000003) xor unit; x xor length; over"


def _multiply_xor(bits: int, units: str, function: Callable[[str], int]) -> Definition:
    described = f"{_MULTIPLY_XOR} {units}, kept to {bits} bits"
    return Definition(bits, _AS_WRITTEN, _JIEBA, _TOKENS, _COUNT, WordHash(function, described), tie=True)


def _by_keywords(
    bits: int, described: str, function: Callable[[str], int], weighting: WordWeighting = _TF_IDF
) -> Definition:
    hashing = WordHash(function, f"{described} over UTF-8")
    return Definition(bits, _AS_WRITTEN, _JIEBA, KEYWORDS, weighting, hashing, tie=False)


def _hyperplanes(bits: int, function: Callable[[str], int]) -> Definition:
    hashing = WordHash(function, f"SplitMix64 seeded with FNV-1a 64 over UTF-8, its first {bits // 64} outputs")
    return Definition(bits, _NORMALISED, _JIEBA, KEYWORDS, _TF_IDF, hashing, tie=False)


_JIEBA_TF_IDF: Final = Definition(
    64,
    _NORMALISED,
    _JIEBA,
    KEYWORDS,
    _TF_IDF,
    WordHash(lambda word: fnv1a_64(word.encode()), "FNV-1a 64 over UTF-8, unsigned"),
    tie=False,
)
DEFINITIONS: Final = MappingProxyType(
    {
        "jieba-tfidf/1": _JIEBA_TF_IDF,
        "jieba-tfidf/2": _JIEBA_TF_IDF._replace(matching=MatchingLevel.EVERY_SCRIPT),
        "jieba-tfidf/3": _JIEBA_TF_IDF._replace(matching=MatchingLevel.LETTERS),
        "multiply-xor-64/1": _multiply_xor(64, "code points", multiply_xor_64),
        "multiply-xor-128/1": _multiply_xor(128, "code points", multiply_xor_128),
        "multiply-xor-utf16-64/1": _multiply_xor(64, "UTF-16 units", multiply_xor_utf16_64),
        "multiply-xor-utf16-128/1": _multiply_xor(128, "UTF-16 units", multiply_xor_utf16_128),
        "md5-64/1": _by_keywords(64, "leading 64 bits of MD5", md5_64),
        "md5-128/1": _by_keywords(128, "MD5", md5_128),
        "sha1-64/1": _by_keywords(64, "leading 64 bits of SHA-1", sha1_64),
        "sha1-128/1": _by_keywords(128, "leading 128 bits of SHA-1", sha1_128),
        "jenkins-64/1": _by_keywords(
            64, "lookup3 hashlittle2, initial values 0, primary x 2^32 + secondary,", jenkins_64, _TF_IDF_MEAN
        ),
        "hyperplanes-64/1": _hyperplanes(64, hyperplanes_64),
        "hyperplanes-128/1": _hyperplanes(128, hyperplanes_128),
    }
)
