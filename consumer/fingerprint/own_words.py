"""Adds simplified forms of the user's own words, for schemes that compare texts in simplified Chinese."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from consumer.fingerprint.characters.normalise import normalise
from consumer.fingerprint.definitions import Definition
from consumer.fingerprint.lexicon import CUT_WHOLE, IdfTable, Lexicon, OwnWord


def scheme_lexicon(lexicon: Lexicon, definition: Definition) -> Lexicon:
    """Return the lexicon for a scheme, with simplified forms if the scheme folds texts to them."""
    return in_simplified(lexicon) if definition.every_script else lexicon


def in_simplified(lexicon: Lexicon) -> Lexicon:
    """Return a lexicon that also has its words in simplified characters, as in folded texts.

    The words as written stay, because Japanese texts are not folded. A simplified form that the user lists keeps its
    own entry; of several words with the same form, the first by code points counts. jieba's IDF table does not change.
    """
    fold = lexicon.chinese().fold
    own = {word.word: word for word in lexicon.own_words}
    added = {
        form: OwnWord(form, own[word].frequency)
        for word, form in _simplified_forms(sorted(own, reverse=True), fold)
        if form not in own and CUT_WHOLE.fullmatch(form)
    }

    @cache
    def table() -> IdfTable:
        weights, median = lexicon.table()
        forms = _simplified_forms(sorted(weights, reverse=True), fold)
        return IdfTable({**{form: weights[word] for word, form in forms}, **weights}, median)

    return replace(
        lexicon,
        table=table if lexicon.own_table else lexicon.table,
        stop_words=lexicon.stop_words.union(form for _, form in _simplified_forms(lexicon.stop_words, fold)),
        own_words=tuple(word for _, word in sorted((own | added).items())),
    )


def _simplified_forms(words: Iterable[str], fold: Callable[[Sequence[str]], list[str]]) -> Iterator[tuple[str, str]]:
    """Yield each normalised word that folding changes, with its simplified form."""
    normalised = [word for word in words if normalise(word) == word]
    return ((word, form) for word, form in zip(normalised, fold(normalised), strict=True) if word != form)
