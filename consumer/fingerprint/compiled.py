"""The optional compiled engine, dupwatch-core, which returns the same bytes as ``Fingerprinter`` in less time.

It releases the interpreter lock while it computes. Its sources are in ``core/``.
"""

import math
from collections.abc import Sequence
from importlib import import_module, metadata
from types import ModuleType
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from consumer.fingerprint.engine import KEYWORDS_KEPT, TEXT_DIGEST_BYTES, Engine
from consumer.fingerprint.fingerprints import Fingerprints
from consumer.fingerprint.known_shingles import KnownShingles
from consumer.fingerprint.lexicon import Lexicon
from consumer.fingerprint.own_words import scheme_lexicon
from consumer.fingerprint.scheme import Scheme
from consumer.fingerprint.secret import PUBLISHED_SECRET, Secret
from consumer.fingerprint.tokenizers import with_frequencies

REVISION: Final = 7
"""The revision of the interface between this module and the core. Cores of other revisions are not used."""
_MODULE: Final = "dupwatch_core"
_DISTRIBUTION: Final = "dupwatch-core"
_WORD_BITS: Final = 64
_SKETCH_BYTES: Final = 256


class _EngineRequest(NamedTuple):
    """The parameters of a scheme, and the requested results."""

    keywords_max: int | None
    short_keywords_max: int
    bands: int
    band_minima: int
    facts: bool
    slots: bool
    sketched: bool
    parts: bool
    keywords_kept: int | None
    decorations: bool


class _Words(NamedTuple):
    """Own words with frequencies, stop words in lower case, and the user's IDF table, if any, with median and mean."""

    own_words: list[tuple[str, int]]
    stop_words: list[str]
    own_idf: tuple[list[tuple[str, float]], float, float] | None


class CompiledFingerprinter(Engine):
    """The compiled engine for one scheme, with the parameters of ``Fingerprinter`` except ``tokenizer``.

    Threads may share it.

    The constructor raises ``ValueError`` with the ``core_obstacle`` if no installed core can compute this scheme.
    """

    def __init__(
        self,
        scheme: Scheme,
        lexicon: Lexicon,
        keywords_kept: int | None = KEYWORDS_KEPT,
        *,
        sketched: bool = True,
        parts: bool = False,
        secret: Secret = PUBLISHED_SECRET,
    ) -> None:
        core = _core()
        reason = core_obstacle(scheme, lexicon)
        if core is None or reason is not None:
            raise ValueError(reason)
        self._core = core
        self._scheme = scheme
        self._sketched = sketched
        layout = scheme.sketch
        request = _EngineRequest(
            scheme.keywords_max,
            scheme.short_keywords_max,
            layout.bands,
            layout.band_minima,
            scheme.facts,
            scheme.slots,
            sketched,
            parts,
            keywords_kept,
            scheme.decorations,
        )
        words = _words(scheme_lexicon(lexicon, scheme.definition))
        self._engine = core.Engine(scheme.name, request, words, tuple(secret.hash_key))

    @property
    @override
    def scheme(self) -> Scheme:
        return self._scheme

    @override
    def fingerprint(
        self, texts: Sequence[str], languages: Sequence[str] | None = None, known: KnownShingles | None = None
    ) -> Fingerprints:
        declared = [""] * len(texts) if languages is None else list(languages)
        compiled = None if known is None else known.compiled(self._core.KnownShingles)
        results = self._engine.fingerprint(list(texts), declared, compiled)
        codes, sketches, one_bits, bands, keywords, kinds, digests, counts, facts, written, *rest = results
        anchors, samples, known_shingles = rest
        count = len(texts)
        return Fingerprints(
            codes=_numbers(codes).reshape(count, self._scheme.bits // _WORD_BITS),
            sketches=_rows(sketches, count, _SKETCH_BYTES if self._sketched else 0),
            one_bits=_numbers(one_bits),
            bands=_numbers(bands).reshape(count, self._scheme.sketch.bands),
            keywords=keywords,
            kinds=_rows(kinds, count, 1).reshape(count),
            text_digests=_rows(digests, count, TEXT_DIGEST_BYTES),
            keyword_counts=_numbers(counts).astype(np.int64),
            facts=facts,
            written_digests=None if written is None else _rows(written, count, TEXT_DIGEST_BYTES),
            anchors=anchors,
            samples=samples,
            known_shingles=known_shingles,
            is_marked=self._scheme.definition.compares_letters,
        )

    @override
    def smallest_shingles(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> tuple[bytes, ...]:
        declared = [""] * len(texts) if languages is None else list(languages)
        packed: tuple[bytes, ...] = self._engine.smallest_shingles(list(texts), declared)
        return packed


def core_version() -> str | None:
    """Return the version of the installed core, or None if no core is installed."""
    return None if _core() is None else metadata.version(_DISTRIBUTION)


def core_obstacle(scheme: Scheme, lexicon: Lexicon) -> str | None:
    """Return the reason why the compiled engine cannot compute a scheme with these words, or None if it can."""
    core = _core()
    if core is None:
        return "dupwatch-core is not installed"
    if core.REVISION != REVISION:
        return f"dupwatch-core has revision {core.REVISION}, but this dupwatch needs {REVISION}: build it again"
    if lexicon.jieba_digest != core.JIEBA_DIGEST:
        return "dupwatch-core was built with another version of jieba: build it again"
    if scheme.definition.every_script and lexicon.chinese().digest != core.CHINESE_DIGEST:
        return "dupwatch-core was built with other tables of Chinese characters: build it again"
    if scheme.definition.compares_letters and _letter_digests(lexicon) != (
        core.LETTERS_DIGEST,
        core.DECORATIONS_DIGEST,
    ):
        return "dupwatch-core was built with other tables of letters: build it again"
    return None


def _core() -> ModuleType | None:
    try:
        return import_module(_MODULE)
    except ModuleNotFoundError:
        return None


def _letter_digests(lexicon: Lexicon) -> tuple[bytes, bytes]:
    return lexicon.letters().digest, lexicon.decorations().digest


def _words(lexicon: Lexicon) -> _Words:
    own_idf = None
    if lexicon.own_table:
        weights, median = lexicon.table()
        mean = math.fsum(weights.values()) / len(weights) if weights else median
        own_idf = (list(weights.items()), median, mean)
    return _Words(with_frequencies(lexicon.own_words), sorted(lexicon.stop_words), own_idf)


def _numbers(content: bytes) -> npt.NDArray[np.uint64]:
    return np.frombuffer(content, dtype="<u8").astype(np.uint64)


def _rows(content: bytes, count: int, width: int) -> npt.NDArray[np.uint8]:
    return np.frombuffer(content, dtype=np.uint8).reshape(count, width)
