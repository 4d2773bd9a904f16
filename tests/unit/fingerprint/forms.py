"""The two forms of texts, with the tables of dupwatch."""

from functools import cache

from consumer.fingerprint import Lexicon, normalise
from consumer.fingerprint.characters.equality import EqualityForms, equality_forms
from consumer.fingerprint.characters.letters import letters_of
from consumer.workers.word_files import load_lexicon


@cache
def lexicon() -> Lexicon:
    """The lexicon of the jieba package."""
    return load_lexicon()


def equal_forms(*texts: str) -> EqualityForms:
    """The forms by which texts are equal."""
    normalised = [normalise(text) for text in texts]
    return equality_forms(texts, normalised, lexicon().letters(), lexicon().chinese())


def read(text: str) -> str:
    """The form that is split into words."""
    return equal_forms(text).read[0]


def compared(text: str) -> str:
    """The form that the digest is of."""
    return equal_forms(text).compared[0]


def all_letters(*texts: str, without_decorations: bool = True) -> list[str]:
    """The letters of texts."""
    normalised = [normalise(text) for text in texts]
    lists = lexicon().decorations() if without_decorations else None
    return letters_of(texts, normalised, lexicon().letters(), lists)


def letters(text: str) -> str:
    """The letters of a text."""
    return all_letters(text)[0]
