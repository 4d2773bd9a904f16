"""The reference for weights of keywords: jieba's extraction, written down plainly."""

from collections import Counter
from collections.abc import Iterable

from consumer.fingerprint import Lexicon
from consumer.fingerprint.definitions import KEYWORDS


def weigh(words: Iterable[str], lexicon: Lexicon, keywords_max: int | None = None) -> tuple[tuple[str, float], ...]:
    """Weigh the keywords among words: term frequency × inverse document frequency, heaviest first.

    This is ``jieba.analyse.TFIDF.extract_tags`` without the division by the number of words, so that a weight grows
    with the number of occurrences. Equal weights are in order of code points. At most ``keywords_max`` are returned.
    """
    weights, median = lexicon.table()
    weighted = [
        (word, count * weights.get(word, median))
        for word, count in Counter(words).items()
        if KEYWORDS.counts(word, lexicon)
    ]
    weighted.sort(key=lambda keyword: (-keyword[1], keyword[0]))
    return tuple(weighted[:keywords_max])
