"""Fingerprints and comparisons of texts, without a store."""

from dataclasses import dataclass
from functools import cache

from consumer.config.loading import load_config
from consumer.fingerprint import Engine, TextKind
from consumer.judge import events
from consumer.judge.binding import Binding
from consumer.judge.comparison import compare as compare_versions
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivalTime
from consumer.model.article import Article
from consumer.wiring.components import engine, judge_settings, lexicon_of, version_builder
from dupwatch.errors import public_errors
from storage.records import StoredVersion


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprint of a text, with its keywords.

    ``code`` is the SimHash code of ``bits`` bits; the codes of near texts differ in only a few. ``keywords`` are the
    heaviest words with their weights, heaviest first. ``kind`` says how the text is matched: ``long`` by fingerprint
    and sketch, ``shingled`` by its sketch, ``short`` only if the texts are equal, ``empty`` never.

    >>> fingerprint("").kind
    'empty'
    """

    code: int
    bits: int
    scheme: str
    kind: str
    keywords: tuple[tuple[str, float], ...]

    def distance(self, other: "Fingerprint") -> int:
        """Return the number of bits in which the codes differ.

        Raises ``ValueError`` for a fingerprint of another scheme.

        >>> text = "The harbour council opened the new ferry terminal on Monday."
        >>> fingerprint(text).distance(fingerprint(text))
        0
        """
        if self.scheme != other.scheme:
            raise ValueError(f"fingerprints of {self.scheme} and {other.scheme} cannot be compared")
        return (self.code ^ other.code).bit_count()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The similarity of two texts.

    ``near`` says whether the later one would be flagged. ``distance`` is in bits. ``similarity`` is the estimated
    share of common shingles, from 0 to 1, or None if a text is empty. ``shared_keywords`` are heaviest first.

    >>> compare("Ships leave every hour.", "").similarity is None
    True
    """

    near: bool
    distance: int
    similarity: float | None
    shared_keywords: tuple[str, ...]


def fingerprint(text: str, *, lang: str = "") -> Fingerprint:
    """Return the fingerprint of a text in the default scheme. ``lang`` is its language (BCP 47), if known.

    Environment variables apply, and can select another scheme.

    >>> a = fingerprint("The ferry to the islands leaves the new terminal every hour from Monday on.")
    >>> b = fingerprint("From Monday on the ferry to the islands leaves the new terminal every hour.")
    >>> a.distance(b)
    0
    """
    settings, default_engine = _defaults()
    result = default_engine.fingerprint([text], [lang])
    code = 0
    for word in result.codes[0].tolist():
        code = code << 64 | word
    scheme = settings.scheme
    return Fingerprint(code, scheme.bits, scheme.name, TextKind(int(result.kinds[0])).label, result.keywords[0])


def compare(a: str, b: str, *, lang_a: str = "", lang_b: str = "") -> Comparison:
    """Compare two texts with the default settings. Their order makes no difference. Environment variables apply.

    >>> compare("Ships leave every hour.", "Ships leave every hour!").similarity is not None
    True
    """
    settings, default_engine = _defaults()
    fingerprints = default_engine.fingerprint([a, b], [lang_a, lang_b])
    articles = [Article("a", a, lang=lang_a), Article("b", b, lang=lang_b)]
    versions = version_builder(Binding(settings)).versions(
        articles, [ArrivalTime(0, 0), ArrivalTime(0, 1)], fingerprints
    )
    one, other = (StoredVersion(version.record, None, None) for version in versions)
    (comparison,) = compare_versions(one, [other], settings)
    shared = events.shared_keywords(one.record, other.record)
    return Comparison(comparison.near, comparison.distance, comparison.similarity, shared)


@cache
def _defaults() -> tuple[JudgeSettings, Engine]:
    """Return the settings without a configuration file, and an engine.

    Cached: loading the dictionary takes a moment.
    """
    with public_errors():
        config = load_config(None, {})
        lexicon = lexicon_of(config)
        settings = judge_settings(config, lexicon)
        return settings, engine(config, Binding(settings), lexicon)
