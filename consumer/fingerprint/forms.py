"""The forms of a text from which a scheme computes: one for each use."""

from collections.abc import Sequence
from typing import NamedTuple

from consumer.fingerprint.characters.equality import equality_forms
from consumer.fingerprint.characters.letters import letters_of
from consumer.fingerprint.characters.normalise import normalise
from consumer.fingerprint.lexicon import Lexicon
from consumer.fingerprint.scheme import Scheme


class Forms(NamedTuple):
    """The forms of n texts. In older schemes all of them are the normalised text.

    ``written``: the normalised text, for references. ``words``: for splitting into words. ``text``: for facts and
    evidence; a text counts as empty if this is. ``compared``: for text digests. ``shingled``: for shingles.
    """

    written: list[str]
    words: list[str]
    text: list[str]
    compared: list[str]
    shingled: list[str]


def forms_of(texts: Sequence[str], scheme: Scheme, lexicon: Lexicon) -> Forms:
    """Return the forms of raw texts."""
    written = [normalise(text) for text in texts]
    definition = scheme.definition
    if definition.compares_letters:
        return _letters(texts, written, scheme, lexicon)
    compared = lexicon.chinese().fold(written) if definition.every_script else written
    split_form = definition.split_form.form
    words = compared if split_form is normalise else [split_form(text) for text in texts]
    return Forms(written, words, compared, compared, compared)


def _letters(texts: Sequence[str], written: list[str], scheme: Scheme, lexicon: Lexicon) -> Forms:
    letters, chinese = lexicon.letters(), lexicon.chinese()
    equality = equality_forms(texts, written, letters, chinese)
    decorations = lexicon.decorations() if scheme.decorations else None
    shingled = letters_of(texts, written, letters, decorations)
    return Forms(written, equality.read, equality.read, equality.compared, shingled)
