"""Splits a text into words, as jieba does.

Two tokenizers return the same words. ``JiebaTokenizer`` is the reference; ``RustTokenizer`` is rjieba, 25 times faster,
with two corrections where the Rust port differs:

- It keeps runs such as ``non-exclusive`` or ``1997.8.12`` whole. jieba's HMM step splits them, so they are split again
  with jieba's own pattern. ASCII words of the dictionary (``c++``, ``at&t``) have none of the joining characters, so
  both keep them whole.
- It includes rare ideographs outside U+4E00-U+9FD5 in words. For jieba each of them is a separate word and ends the run
  before it, so the text is split at them first.

Both add the user's own words to jieba's dictionary, with the same frequencies and the same total. A known word gets the
new frequency; jieba's ``add_word`` would leave the old one in the total.
"""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from typing_extensions import override

from consumer.fingerprint.lexicon import OwnWord

# Characters that join letters and digits to one word in rjieba but not in jieba.
_JOINED: Final = re.compile(r"[a-zA-Z0-9][-._][a-zA-Z0-9]")
# jieba's dictionary lists B超 twice. jieba adds its frequency of 3 to the total twice, rjieba only once. If two cuts
# are equally likely, as with own words of equal frequencies, the last digit of the total decides. This word adds 3 to
# rjieba's total and never matches, because no run of letters contains a NUL.
_MISSING_IN_TOTAL: Final = ("\0", 3)
# Words cached as needing no correction, about 100 bytes each; a full cache is emptied. Words longer than the
# second limit are not cached.
_SOUND_WORDS_MAX: Final = 1 << 17
_SOUND_WORD_CHARS_MAX: Final = 32
_PARTS: Final = re.compile(r"([a-zA-Z0-9]+(?:\.\d+)?%?)")
_FOREIGN_HAN: Final = re.compile(
    "([\u3400-\u4dbf\u9fd6-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ebef\U0002f800-\U0002fa1f])"
)


class Tokenizer(Protocol):
    """A splitter of texts into words. An engine calls it for every text, from one thread."""

    def cut(self, text: str) -> list[str]:
        """Return the words of a text; joined, they are the text."""
        ...

    def count(self, text: str) -> Counter[str]:
        """Return the counts of the words that ``cut`` would return, for fingerprints, which need no order."""
        ...


class RustTokenizer(Tokenizer):
    """The fast tokenizer: rjieba, corrected to jieba's words. The constructor raises ``ImportError`` without rjieba."""

    def __init__(self, own_words: Sequence[OwnWord] = ()) -> None:
        import rjieba  # noqa: PLC0415 -- loads its dictionary, 0.2 s that an import must not cost

        self._own_words = tuple(own_words)
        # The correction must not split own words.
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
        """Pickle only the words; the other process builds the rest again."""
        return RustTokenizer, (self._own_words,)

    @override
    def cut(self, text: str) -> list[str]:
        words = self._cut(text)
        if _FOREIGN_HAN.search(text):
            words = self._cut_at_foreign_han(text)
        joined = {word for word in set(words) if self._is_joined(word)}
        if not joined:
            return words
        return [part for word in words for part in (_parts(word) if word in joined else (word,))]

    @override
    def count(self, text: str) -> Counter[str]:
        """Return the counts of words. This is much faster than ``cut``, because only uncached words are checked."""
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
        # Only ASCII words can be joined, so this check saves most searches.
        return word.isascii() and _JOINED.search(word) is not None and word not in self._whole

    def _cut_at_foreign_han(self, text: str) -> list[str]:
        words: list[str] = []
        # The pattern has a group, so every second piece is a match.
        for number, piece in enumerate(_FOREIGN_HAN.split(text)):
            words += [piece] if number % 2 else self._cut(piece)
        return words


class JiebaTokenizer(Tokenizer):
    """A separate instance of jieba itself. The constructor raises ``ImportError`` without jieba."""

    def __init__(self, own_words: Sequence[OwnWord] = ()) -> None:
        self._own_words = tuple(own_words)
        with warnings.catch_warnings():
            # Newer versions of Python warn about escapes and imports of jieba 0.42.1 at each start.
            warnings.simplefilter("ignore")
            import jieba  # noqa: PLC0415 -- slow to import, and only the fallback
        self._tokenizer = jieba.Tokenizer()
        # As initialize() does, but without its log lines and its cache file in a world-writable folder.
        self._tokenizer.FREQ, self._tokenizer.total = jieba.Tokenizer.gen_pfdict(self._tokenizer.get_dict_file())
        self._tokenizer.initialized = True
        for word, frequency in with_frequencies(own_words, self):
            before = self._tokenizer.FREQ.get(word, 0)
            self._tokenizer.add_word(word, frequency)
            self._tokenizer.total -= before

    def __reduce__(self) -> tuple[type["JiebaTokenizer"], tuple[tuple[OwnWord, ...]]]:
        """Pickle only the words; the other process builds the rest again."""
        return JiebaTokenizer, (self._own_words,)

    @override
    def cut(self, text: str) -> list[str]:
        """Return the words by jieba's precise mode with HMM."""
        words: list[str] = self._tokenizer.lcut(text)
        return words

    def suggested_frequency(self, word: str) -> int:
        """Return the lowest frequency with which jieba keeps this word whole."""
        frequency: int = self._tokenizer.suggest_freq(word)
        return frequency

    @override
    def count(self, text: str) -> Counter[str]:
        return Counter(self.cut(text))


def default_tokenizer(own_words: Sequence[OwnWord] = ()) -> Tokenizer:
    """Return the fast tokenizer, or the reference if the fast one is not installed."""
    try:
        return RustTokenizer(own_words)
    except ImportError:
        return JiebaTokenizer(own_words)


def with_frequencies(own_words: Sequence[OwnWord], reference: JiebaTokenizer | None = None) -> list[tuple[str, int]]:
    """Return own words with their frequencies; jieba suggests missing frequencies: the lowest that keep words whole.

    jieba's own dictionary decides, so the order of the words does not matter. ``reference``, a tokenizer without own
    words, saves building one, which takes 1 s. It is not needed if every word has a frequency.
    """
    complete = [(word, frequency) for word, frequency in own_words if frequency is not None]
    incomplete = [word for word, frequency in own_words if frequency is None]
    if incomplete:
        tokenizer = JiebaTokenizer() if reference is None else reference
        complete += [(word, tokenizer.suggested_frequency(word)) for word in incomplete]
    return complete


def _parts(word: str) -> list[str]:
    return [part for part in _PARTS.split(word) if part]
