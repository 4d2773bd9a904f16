"""Texts alone: their fingerprints, and how alike two of them are."""

from dataclasses import dataclass
from functools import cache

from consumer.config.loading import load_config
from consumer.fingerprint import Engine, TextKind
from consumer.judge import events
from consumer.judge.binding import Binding
from consumer.judge.comparison import compare as compared
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivalTime
from consumer.model.article import Article
from consumer.wiring.components import engine, judge_settings, lexicon_of, version_builder
from dupwatch.errors import translated
from storage.records import StoredVersion


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What dupwatch knows of a text.

    ``code`` is the SimHash fingerprint, of ``bits`` bits; those of near texts differ in few of them. ``keywords`` are
    the heaviest words with their weights, heaviest first. ``kind`` says how the text is matched: ``long`` by its
    fingerprint and sketch, ``shingled`` by its sketch, ``short`` if it is equal, ``empty`` not at all.
    """

    code: int
    bits: int
    scheme: str
    kind: str
    keywords: tuple[tuple[str, float], ...]

    def distance(self, other: "Fingerprint") -> int:
        """Return in how many bits the codes differ. Raises ``ValueError`` for a fingerprint of another scheme."""
        if self.scheme != other.scheme:
            raise ValueError(f"fingerprints of {self.scheme} and {other.scheme} cannot be compared")
        return (self.code ^ other.code).bit_count()


@dataclass(frozen=True, slots=True)
class Comparison:
    """How alike two texts are.

    ``near`` is whether the later one would be flagged. ``similarity`` is the estimated share of common shingles, None
    where a text is empty. ``shared_keywords`` begin with the heaviest.
    """

    near: bool
    distance: int
    similarity: float | None
    shared_keywords: tuple[str, ...]


def fingerprint(text: str, *, lang: str = "") -> Fingerprint:
    """Return the fingerprint of a text under the default scheme; ``lang`` is its language (BCP 47), if it is known.

    >>> a = fingerprint("The ferry to the islands leaves the new terminal every hour from Monday on.")
    >>> b = fingerprint("From Monday on the ferry to the islands leaves the new terminal every hour.")
    >>> a.distance(b)
    0
    """
    settings, computes = _defaults()
    found = computes.fingerprint([text], [lang])
    code = 0
    for word in found.codes[0].tolist():
        code = code << 64 | word
    scheme = settings.scheme
    return Fingerprint(code, scheme.bits, scheme.name, TextKind(int(found.kinds[0])).label, found.keywords[0])


def compare(a: str, b: str, *, lang_a: str = "", lang_b: str = "") -> Comparison:
    """Compare two texts as the judge does with its default settings; their order makes no difference.

    >>> compare("Ships leave every hour.", "Ships leave every hour!").similarity is not None
    True
    """
    settings, computes = _defaults()
    fingerprints = computes.fingerprint([a, b], [lang_a, lang_b])
    articles = [Article("a", a, lang=lang_a), Article("b", b, lang=lang_b)]
    versions = version_builder(Binding(settings)).versions(
        articles, [ArrivalTime(0, 0), ArrivalTime(0, 1)], fingerprints
    )
    one, other = (StoredVersion(version.record, None, None) for version in versions)
    (found,) = compared(one, [other], settings)
    shared = events.shared_keywords(one.record, other.record)
    return Comparison(found.near, found.distance, found.similarity, shared)


@cache
def _defaults() -> tuple[JudgeSettings, Engine]:
    """The default settings, and what computes fingerprints with them. To load the words takes a moment."""
    with translated():
        config = load_config(None, {})
        lexicon = lexicon_of(config)
        settings = judge_settings(config, lexicon)
        return settings, engine(config, Binding(settings), lexicon)
