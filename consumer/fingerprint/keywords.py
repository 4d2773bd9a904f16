"""
Words of a text and their weights, as jieba has them.

Two engines cut the same words. `JiebaTokenizer` is the reference; `RustTokenizer` is rjieba, 25 times faster,
with two repairs where the Rust port cuts differently:

- It keeps runs such as `non-exclusive` or `1997.8.12` whole. jieba's HMM step splits them, so they are split
  again with jieba's own pattern. Dictionary words in ASCII (`c++`, `at&t`) have none of the joining
  characters and stay whole in both.
- It takes the rare ideographs outside U+4E00-U+9FD5 into its words. To jieba each of them is a word of its
  own and ends the run before it, so the text is cut at them first.

Words of a user's own come on top of jieba's dictionary in both, with equal frequencies and an equal total. A word that
jieba knows already has its frequency replaced; jieba's `add_word` would count the old one in the total too.
"""

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from consumer.fingerprint.definitions import KEYWORDS
from consumer.fingerprint.lexicon import Lexicon, OwnWord

# What joins letters and digits to one word in rjieba, and only there.
_JOINED: Final = re.compile(r"[a-zA-Z0-9][-._][a-zA-Z0-9]")
# jieba's dictionary has B超 twice and counts its 3 twice in the total, rjieba once. Where two cuts are exactly as
# likely, which happens among words of a user's own with equal frequencies, that decides by the last digit. No run of
# letters has a NUL in it, so this word is never found.
_MISSING_IN_TOTAL: Final = ("\0", 3)
# Words remembered as needing no repair, about 100 bytes each; then all are forgotten. One as long as its text is not.
_SOUND_WORDS_MAX: Final = 1 << 17
_SOUND_WORD_CHARS_MAX: Final = 32
_PARTS: Final = re.compile(r"([a-zA-Z0-9]+(?:\.\d+)?%?)")
_FOREIGN_HAN: Final = re.compile(
    "([\u3400-\u4dbf\u9fd6-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ebef\U0002f800-\U0002fa1f])"
)


class Tokenizer(Protocol):
    """Cuts a text into words."""

    def cut(self, text: str) -> list[str]:
        """Cut the text; the words, put together, are the text again."""

    def count(self, text: str) -> Counter[str]:
        """Count the words that `cut` would give."""


class RustTokenizer:
    """jieba's words from rjieba; ImportError where there is no rjieba."""

    def __init__(self, own_words: Sequence[OwnWord] = ()) -> None:
        import rjieba  # noqa: PLC0415 -- loads its dictionary, 0.2 s that an import must not cost

        self._own_words = tuple(own_words)
        # The repair must not split what the dictionary has as one word.
        self._whole = frozenset(word for word, _ in own_words)
        self._sound: set[str] = set()
        self._cut: Callable[[str], list[str]] = rjieba.cut
        if own_words:
            engine = rjieba.Jieba()
            engine.add_word(*_MISSING_IN_TOTAL, None)
            for word, frequency in with_frequencies(own_words):
                engine.add_word(word, frequency, None)
            self._cut = engine.cut

    def __reduce__(self) -> tuple[type["RustTokenizer"], tuple[tuple[OwnWord, ...]]]:
        """Pickle as an order to build: what it holds is the same in every process."""
        return RustTokenizer, (self._own_words,)

    def cut(self, text: str) -> list[str]:
        """Cut the text as jieba does."""
        words = self._cut(text)
        if _FOREIGN_HAN.search(text):
            words = self._cut_at_foreign_han(text)
        joined = {word for word in set(words) if self._is_joined(word)}
        if not joined:
            return words
        return [part for word in words for part in (_parts(word) if word in joined else (word,))]

    def count(self, text: str) -> Counter[str]:
        """Count the words; much faster than counting what `cut` gives, as only words not met before are examined."""
        counts = Counter(self._cut(text))
        unknown = set(counts).difference(self._sound)
        if _FOREIGN_HAN.search("".join(unknown)):
            counts = Counter(self._cut_at_foreign_han(text))
            unknown = set(counts)
        else:
            self._remember_sound(unknown)
        for word in filter(self._is_joined, unknown):
            times = counts.pop(word)
            for part in _parts(word):
                counts[part] += times
        return counts

    def _remember_sound(self, words: set[str]) -> None:
        if len(self._sound) >= _SOUND_WORDS_MAX:
            self._sound.clear()
        self._sound.update(word for word in words if len(word) <= _SOUND_WORD_CHARS_MAX and not self._is_joined(word))

    def _is_joined(self, word: str) -> bool:
        # Only ASCII words are joined; asking that first spares most words the search.
        return word.isascii() and _JOINED.search(word) is not None and word not in self._whole

    def _cut_at_foreign_han(self, text: str) -> list[str]:
        words: list[str] = []
        # Of a split at a group, every second piece is what matched.
        for number, piece in enumerate(_FOREIGN_HAN.split(text)):
            words += [piece] if number % 2 else self._cut(piece)
        return words


class JiebaTokenizer:
    """jieba itself, with its own instance; ImportError where there is no jieba."""

    def __init__(self, own_words: Sequence[OwnWord] = ()) -> None:
        self._own_words = tuple(own_words)
        with warnings.catch_warnings():
            # jieba 0.42.1 has escapes and imports that newer Pythons warn of at each start.
            warnings.simplefilter("ignore")
            import jieba  # noqa: PLC0415 -- slow to import, and only the fallback
        self._tokenizer = jieba.Tokenizer()
        # What initialize() does, without its log lines and without the cache file that it would read back
        # from a folder everyone can write to.
        self._tokenizer.FREQ, self._tokenizer.total = jieba.Tokenizer.gen_pfdict(self._tokenizer.get_dict_file())
        self._tokenizer.initialized = True
        for word, frequency in with_frequencies(own_words, self):
            before = self._tokenizer.FREQ.get(word, 0)
            self._tokenizer.add_word(word, frequency)
            self._tokenizer.total -= before

    def __reduce__(self) -> tuple[type["JiebaTokenizer"], tuple[tuple[OwnWord, ...]]]:
        """Pickle as an order to build: what it holds is the same in every process."""
        return JiebaTokenizer, (self._own_words,)

    def cut(self, text: str) -> list[str]:
        """Cut the text in jieba's precise mode with HMM."""
        words: list[str] = self._tokenizer.lcut(text)
        return words

    def suggested_frequency(self, word: str) -> int:
        """Tell the least frequency at which jieba would take a word for one."""
        frequency: int = self._tokenizer.suggest_freq(word)
        return frequency

    def count(self, text: str) -> Counter[str]:
        """Count the words that `cut` gives."""
        return Counter(self.cut(text))


def default_tokenizer(own_words: Sequence[OwnWord] = ()) -> Tokenizer:
    """Build the fast engine, or the reference where there is no wheel of the fast one."""
    try:
        return RustTokenizer(own_words)
    except ImportError:
        return JiebaTokenizer(own_words)


def with_frequencies(own_words: Sequence[OwnWord], reference: JiebaTokenizer | None = None) -> list[tuple[str, int]]:
    """
    Give each word without a frequency the one that jieba suggests, just enough for it to be cut out.

    Asked of jieba's own dictionary, so the order of the words changes nothing. Building the reference takes 1 s, and is
    spared where `reference` is one without own words so far, or every word has its frequency.
    """
    given = [(word, frequency) for word, frequency in own_words if frequency is not None]
    asked = [word for word, frequency in own_words if frequency is None]
    if asked:
        suggesting = JiebaTokenizer() if reference is None else reference
        given += [(word, suggesting.suggested_frequency(word)) for word in asked]
    return given


def weigh(words: Iterable[str], lexicon: Lexicon, keywords_max: int | None = None) -> tuple[tuple[str, float], ...]:
    """
    Weigh the keywords among words: term frequency × inverse document frequency, heaviest first.

    As `jieba.analyse.TFIDF.extract_tags`, but not divided by the number of words, so that a weight tells how
    often a word is there. Equal weights are in order of code points. `keywords_max` keeps the first ones.
    """
    weights, median = lexicon.table()
    weighted = [
        (word, count * weights.get(word, median))
        for word, count in Counter(words).items()
        if KEYWORDS.counts(word, lexicon)
    ]
    weighted.sort(key=lambda keyword: (-keyword[1], keyword[0]))
    return tuple(weighted[:keywords_max])


def _parts(word: str) -> list[str]:
    return [part for part in _PARTS.split(word) if part]


def cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Tell the cosine of the angle between two weighted keyword vectors; 0 where one has no keyword."""
    lengths = math.hypot(*one.values()) * math.hypot(*other.values())
    if not lengths:
        return 0.0
    shared = math.fsum(weight * other[word] for word, weight in one.items() if word in other)
    return min(shared / lengths, 1.0)
