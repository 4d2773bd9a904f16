"""The user's own words in simplified characters, for schemes that compare texts in these."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from consumer.fingerprint.characters.normalise import normalise
from consumer.fingerprint.definitions import Definition
from consumer.fingerprint.lexicon import CUT_WHOLE, IdfTable, Lexicon, OwnWord


def words_known(lexicon: Lexicon, definition: Definition) -> Lexicon:
    """Return the lexicon as a scheme knows its words."""
    if not definition.every_script:
        return lexicon
    return in_simplified(lexicon)


def in_simplified(lexicon: Lexicon) -> Lexicon:
    """Return a lexicon whose words are known in simplified characters too, as texts have them once they are folded.

    As written words stay too, since Japanese texts are not folded. A simplified form that is listed itself is as
    listed; of several words with the same form the first by code points counts. jieba's own IDF table stays as it is.
    """
    fold = lexicon.chinese().fold
    own = {word.word: word for word in lexicon.own_words}
    added = {
        form: OwnWord(form, own[word].frequency)
        for word, form in _forms(sorted(own, reverse=True), fold)
        if form not in own and CUT_WHOLE.fullmatch(form)
    }

    @cache
    def table() -> IdfTable:
        weights, median = lexicon.table()
        forms = _forms(sorted(weights, reverse=True), fold)
        return IdfTable({**{form: weights[word] for word, form in forms}, **weights}, median)

    return replace(
        lexicon,
        table=table if lexicon.own_table else lexicon.table,
        stop_words=lexicon.stop_words.union(form for _, form in _forms(lexicon.stop_words, fold)),
        own_words=tuple(word for _, word in sorted((own | added).items())),
    )


def _forms(words: Iterable[str], fold: Callable[[Sequence[str]], list[str]]) -> Iterator[tuple[str, str]]:
    """Yield each of these words that is folded, with its simplified form."""
    normalised = [word for word in words if normalise(word) == word]
    return ((word, form) for word, form in zip(normalised, fold(normalised), strict=True) if word != form)
