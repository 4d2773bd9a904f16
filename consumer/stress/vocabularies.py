"""The words of generated texts: for each language its words with their frequencies, and how it is written.

Chinese words are those of jieba's dictionary. English and Japanese words are those of the sample feed.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.text.sample_feed import sample_feed, sample_texts

FIELDS: Final = 24
FIELD_WORDS: Final = 240
_FIELDS_SEED: Final = 20
_HAN: Final = ("\u4e00", "\u9fff")


class Script(NamedTuple):
    """How a language is written.

    ``topical_chars_min`` is the length from which a word can belong to a field. ``words`` matches the words of a sample
    text; None stands for jieba's dictionary.
    """

    comma: str
    stop: str
    space: str
    words_a_character: float
    topical_chars_min: int
    words: str | None


SCRIPTS: Final[Mapping[str, Script]] = {
    # One for each of consumer.stress.LANGUAGES.
    "zh": Script("，", "。", "", 0.7, 2, None),
    "en": Script(",", ".", " ", 0.2, 4, r"[a-z]+(?:'[a-z]+)?"),
    "ja": Script("、", "。", "", 0.6, 2, r"[\u4e00-\u9fff々]+|[\u30a1-\u30fe]+|[\u3041-\u3096]+"),
}


class Vocabulary(NamedTuple):
    """Words, the running sum of their frequencies, and the words of each field: int64[fields, words], by number."""

    words: npt.NDArray[np.object_]
    cumulated: npt.NDArray[np.float64]
    fields: npt.NDArray[np.int64]


@cache
def vocabulary(language: str) -> Vocabulary:
    """Return the vocabulary of one of ``LANGUAGES``.

    Raises ``ModuleNotFoundError`` if jieba is not installed, and ``ConfigError`` if the sample feed is not.
    """
    script = SCRIPTS[language]
    words, frequencies = _chinese_words() if script.words is None else _sample_words(language, script.words)
    counts = np.array(frequencies)
    lengths = np.array([len(word) for word in words])
    topical = np.flatnonzero((lengths >= script.topical_chars_min) & (counts > 0))
    # Common words are no subject: the square root lifts the rare ones.
    shares = np.sqrt(counts[topical])
    rng = np.random.default_rng(_FIELDS_SEED)
    fields = rng.choice(topical, (FIELDS, FIELD_WORDS), p=shares / shares.sum())
    return Vocabulary(np.array(words, dtype=object), np.cumsum(counts), fields)


def _sample_words(language: str, pattern: str) -> tuple[Sequence[str], Sequence[float]]:
    texts = "\n".join(sample_texts(sample_feed(), [language])).lower()
    counts = Counter(re.findall(pattern, texts))
    return list(counts), [float(count) for count in counts.values()]


def _chinese_words() -> tuple[Sequence[str], Sequence[float]]:
    words: list[str] = []
    frequencies: list[float] = []
    for line in _dictionary().read_text(encoding="utf-8").splitlines():
        word, frequency, _ = line.split(" ", 2)
        if all(_HAN[0] <= character <= _HAN[1] for character in word):
            words.append(word)
            frequencies.append(float(frequency))
    return words, frequencies


def _dictionary() -> Path:
    spec = find_spec("jieba")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("jieba is not installed; its dictionary is needed", name="jieba")
    return Path(spec.submodule_search_locations[0]) / "dict.txt"
