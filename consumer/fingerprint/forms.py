"""Computes the forms of a text: one for each use that a scheme makes of it."""

from collections.abc import Sequence
from typing import NamedTuple

from consumer.fingerprint.characters.equality import equality_forms
from consumer.fingerprint.characters.letters import letters_of
from consumer.fingerprint.characters.normalise import normalise
from consumer.fingerprint.lexicon import Lexicon
from consumer.fingerprint.scheme import Scheme


class Forms(NamedTuple):
    """The forms of n texts. In ``jieba-tfidf/1`` all of them are the normalised text.

    ``written``: the normalised text, for references. ``words``: for splitting into words. ``text``: for facts and
    evidence; in schemes for every script, a text counts as empty if this form is empty. ``compared``: for text digests.
    ``shingled``: for shingles.
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
        return _letter_forms(texts, written, scheme, lexicon)
    compared = lexicon.chinese().fold(written) if definition.every_script else written
    split_form = definition.split_form.form
    words = compared if split_form is normalise else [split_form(text) for text in texts]
    return Forms(written, words, compared, compared, compared)


def _letter_forms(texts: Sequence[str], written: list[str], scheme: Scheme, lexicon: Lexicon) -> Forms:
    letters, chinese = lexicon.letters(), lexicon.chinese()
    equality = equality_forms(texts, written, letters, chinese)
    decorations = lexicon.decorations() if scheme.decorations else None
    shingled = letters_of(texts, written, letters, decorations)
    return Forms(written, equality.read, equality.read, equality.compared, shingled)
