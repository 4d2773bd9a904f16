"""The engine, which turns a batch of texts into arrays of fingerprints, sketches and keywords."""

import hashlib
from collections.abc import Sequence
from itertools import chain
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from consumer.fingerprint.facts import facts_of, pack_facts
from consumer.fingerprint.features import Features, WordTable
from consumer.fingerprint.fingerprints import Fingerprints, chunks, join_batches
from consumer.fingerprint.forms import Forms, forms_of
from consumer.fingerprint.known_shingles import KNOWN_SHINGLES_MAX, KnownShingles, SmallestShingles, smallest_shingles
from consumer.fingerprint.lexicon import Lexicon
from consumer.fingerprint.own_words import scheme_lexicon
from consumer.fingerprint.parts import Parts, PartsFinder
from consumer.fingerprint.scheme import Scheme
from consumer.fingerprint.secret import PUBLISHED_SECRET, Secret
from consumer.fingerprint.shingles import hashed_chunks
from consumer.fingerprint.sketch import Minima, Sketches, filled_bins, no_sketches
from consumer.fingerprint.slots import Slot, pack_slots, slots_of
from consumer.fingerprint.summing import bit_sums, fingerprint_batch, fingerprint_number, round_weights
from consumer.fingerprint.text_kinds import LETTERS_BINS_MIN, TextKind, kinds_by_keywords, kinds_in_every_script, runs
from consumer.fingerprint.tokenizers import Tokenizer

TEXT_DIGEST_BYTES: Final = 16
WORDS_REMEMBERED_MAX: Final = 1 << 17
"""Limit on words cached with their hashes and factors, about 200 bytes each. A full cache is emptied between chunks."""
CHARACTERS_REMEMBERED_MAX: Final = 1 << 24
"""Limit on the characters of cached words, because a word can be as long as its text."""
CHUNK_CHARACTERS_MAX: Final = 1 << 18
"""Limit on the characters of texts that are processed together; a longer text is processed alone.

Intermediate values (words, counts, hashes, shingles) take about 100 bytes per character, results a few thousand bytes
per text.
"""
KEYWORDS_KEPT: Final = 32
"""At most this many keywords are kept with an article as evidence. The fingerprint uses all that the scheme counts."""


class WeighedWord(NamedTuple):
    """A word that counts, its weight before rounding, and its hash."""

    word: str
    weight: float
    hash: int


class Breakdown(NamedTuple):
    """A fingerprint with the values from which it was computed.

    ``words``: all words that counted, heaviest first. ``sums``: the sum of rounded weights for each bit, the most
    significant first. The fingerprints of some short texts come from their digests instead (see ``_codes``).
    """

    kind: TextKind
    words: tuple[WeighedWord, ...]
    sums: tuple[float, ...]
    fingerprint: int


class Engine(Protocol):
    """An engine for one scheme: ``Fingerprinter`` in Python, or the compiled one."""

    @property
    def scheme(self) -> Scheme:
        """The scheme of all fingerprints of this engine."""
        ...

    def fingerprint(
        self, texts: Sequence[str], languages: Sequence[str] | None = None, known: KnownShingles | None = None
    ) -> Fingerprints:
        """Return the fingerprints of raw texts; each is independent of the rest of the batch.

        ``languages`` has the language that each text declares, or "" for none; only results from shingles depend on it.
        With ``known``, the result lists the shingles of each text that are in this set. Raises ``ValueError`` if the
        weights of a text add up to 2**32 or more.
        """
        ...

    def smallest_shingles(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> tuple[bytes, ...]:
        """Return the smallest distinct hashes of each raw text's shingles, at most ``SHINGLES_KEPT``.

        The hashes have 8 bytes each, big-endian and ascending. A text without a shingle has none.
        """
        ...


class Fingerprinter(Engine):
    """The engine in Python for one scheme, the reference for the compiled engine. Not thread-safe.

    ``keywords_kept`` is the number of keywords returned as evidence, or None for all. ``sketched`` turns on sketches;
    without them no text is ``SHINGLED``. ``parts`` turns on anchors and samples. ``secret`` keys the hashes of shingles
    in schemes that key them. ``tokenizer`` replaces the scheme's own. Each worker process builds an engine from the
    same scheme and ``consumer.workers.word_files.load_lexicon()``.
    """

    def __init__(  # noqa: PLR0913  # what an engine is built from
        self,
        scheme: Scheme,
        lexicon: Lexicon,
        tokenizer: Tokenizer | None = None,
        keywords_kept: int | None = KEYWORDS_KEPT,
        *,
        sketched: bool = True,
        parts: bool = False,
        secret: Secret = PUBLISHED_SECRET,
    ) -> None:
        self._scheme = scheme
        self._shingling = scheme.definition.shingling(secret)
        self._lexicon = scheme_lexicon(lexicon, scheme.definition)
        self._tokenizer = scheme.definition.splitting.tokenizer(self._lexicon) if tokenizer is None else tokenizer
        self._keywords_kept = keywords_kept
        self._sketched = sketched
        self._parts = parts
        self._word_table = WordTable(scheme.definition, self._lexicon)

    @property
    @override
    def scheme(self) -> Scheme:
        return self._scheme

    @override
    def fingerprint(
        self, texts: Sequence[str], languages: Sequence[str] | None = None, known: KnownShingles | None = None
    ) -> Fingerprints:
        declared = [""] * len(texts) if languages is None else languages
        cuts = chunks(texts, CHUNK_CHARACTERS_MAX)
        return join_batches([self._fingerprint(texts[chunk], declared[chunk], known) for chunk in cuts])

    @override
    def smallest_shingles(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> tuple[bytes, ...]:
        declared = [""] * len(texts) if languages is None else languages
        packed = (
            smallest_shingles(self._forms(texts[chunk]).shingled, declared[chunk], self._shingling)
            for chunk in chunks(texts, CHUNK_CHARACTERS_MAX)
        )
        return tuple(chain.from_iterable(packed))

    def _fingerprint(self, texts: Sequence[str], languages: Sequence[str], known: KnownShingles | None) -> Fingerprints:
        forms = self._forms(texts)
        features = self._features(forms.words)
        distinct = np.diff(features.offsets)
        facts = self._packed_facts(texts, forms, features)
        if self._scheme.keywords_max is not None:
            features = features.only_heaviest(self._scheme.keywords_max)
        sketched, parts, known_shingles = self._shingle_results(forms.shingled, languages, known)
        digests = _digests(forms.compared)
        kinds = self._kinds(distinct, sketched.filled_bins, forms)
        return Fingerprints(
            codes=self._codes(features, digests, kinds),
            sketches=sketched.sketches,
            one_bits=sketched.one_bits,
            bands=sketched.bands,
            keywords=self._evidence(features, forms.text),
            kinds=kinds,
            text_digests=digests,
            keyword_counts=distinct,
            facts=facts,
            written_digests=_written_digests(forms, digests) if self._scheme.definition.every_script else None,
            anchors=parts.anchors,
            samples=parts.samples,
            known_shingles=known_shingles,
            is_marked=self._scheme.definition.compares_letters,
        )

    def _shingle_results(
        self, texts: Sequence[str], languages: Sequence[str], known: KnownShingles | None
    ) -> tuple[Sketches, Parts, tuple[bytes, ...]]:
        """Return sketches, parts and known shingles, as requested; shingles are hashed once."""
        layout, marked = self._scheme.sketch, self._scheme.definition.compares_letters
        minima = Minima(len(texts), layout, is_marked=marked) if self._sketched else None
        finder = PartsFinder() if self._parts else None
        hits = SmallestShingles(KNOWN_SHINGLES_MAX, known) if known is not None else None
        if minima or finder or hits:
            for chunk in hashed_chunks(texts, languages, self._shingling):
                if minima:
                    minima.add(chunk)
                if finder:
                    finder.add(chunk)
                if hits:
                    hits.add(chunk)
        sketches = minima.sketches() if minima else no_sketches(len(texts), layout)
        return sketches, finder.parts() if finder else Parts((), ()), hits.packed() if hits else ()

    def breakdown(self, text: str) -> "Breakdown":
        """Return the fingerprint of a raw text with its intermediate values, for people."""
        definition = self._scheme.definition
        forms = self._forms([text])
        features = self._features(forms.words)
        bins = filled_bins(forms.shingled, self._scheme.sketch, self._shingling)
        kinds = self._kinds(np.diff(features.offsets), bins, forms)
        if self._scheme.keywords_max is not None:
            features = features.only_heaviest(self._scheme.keywords_max)
        places = features.heaviest(0, None)
        hashes = [fingerprint_number(features.hashes[place]) for place in places]
        rounded = round_weights(features.weights[places]).tolist()
        return Breakdown(
            kind=TextKind(int(kinds[0])),
            words=tuple(
                WeighedWord(word, weight, value)
                for (word, weight), value in zip(features.keywords(places), hashes, strict=True)
            ),
            sums=tuple(bit_sums(zip(hashes, rounded, strict=True), definition.bits)),
            fingerprint=fingerprint_number(self._codes(features, _digests(forms.compared), kinds)[0]),
        )

    def words(self, text: str) -> set[str]:
        """Return the words of a raw text that count in this scheme, also beyond ``keywords_max``."""
        definition = self._scheme.definition
        counted = self._tokenizer.count(self._forms([text]).words[0])
        return {word for word in counted if definition.filtering.counts(word, self._lexicon)}

    def facts(self, text: str) -> set[str]:
        """Return the facts of a raw text, even if the scheme has facts off."""
        forms = self._forms([text])
        return self._facts([text], forms, self._features(forms.words))[0]

    def slots(self, text: str) -> list[Slot]:
        """Return the slots of a raw text, even if the scheme has slots off."""
        return self._slots(self._forms([text]))[0]

    def _forms(self, texts: Sequence[str]) -> Forms:
        return forms_of(texts, self._scheme, self._lexicon)

    def _kinds(
        self, distinct: npt.NDArray[np.int64], bins: npt.NDArray[np.int64], forms: Forms
    ) -> npt.NDArray[np.uint8]:
        definition, short_keywords_max = self._scheme.definition, self._scheme.short_keywords_max
        if definition.compares_letters:
            # Texts without a letter, even with words of symbols, are compared by equality alone.
            keyword_counts = np.where([bool(letters) for letters in forms.shingled], distinct, 0)
            return kinds_in_every_script(keyword_counts, short_keywords_max, bins, forms.text, LETTERS_BINS_MIN)
        if definition.every_script:
            return kinds_in_every_script(distinct, short_keywords_max, bins, forms.text)
        return kinds_by_keywords(distinct, short_keywords_max)

    def _codes(
        self, features: Features, digests: npt.NDArray[np.uint8], kinds: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.uint64]:
        """Return the fingerprints.

        In schemes for every script, the fingerprint of a text without keywords comes from its digest, unless the text
        is empty. In schemes that compare letters, so does the fingerprint of every short text.
        """
        definition = self._scheme.definition
        codes = fingerprint_batch(features.hashes, features.weights, features.offsets, tie=definition.tie)
        if definition.every_script:
            by_digest = (np.diff(features.offsets) == 0) & (kinds != TextKind.EMPTY)
            if definition.compares_letters:
                by_digest |= kinds == TextKind.SHORT
            codes[by_digest] = np.ascontiguousarray(digests).view(">u8")[by_digest, : codes.shape[1]]
        return codes

    def _evidence(self, features: Features, texts: list[str]) -> tuple[tuple[tuple[str, float], ...], ...]:
        evidence = (features.evidence(text, self._keywords_kept) for text in range(len(texts)))
        if not self._scheme.definition.every_script:
            return tuple(evidence)
        pairs = zip(evidence, texts, strict=True)
        return tuple(keywords or runs(text, self._keywords_kept) for keywords, text in pairs)

    def _facts(self, texts: Sequence[str], forms: Forms, features: Features) -> list[set[str]]:
        known = self._lexicon.idf
        letters = self._lexicon.letters() if self._scheme.definition.compares_letters else None
        return [
            facts_of(text, form, words, known, letters)
            for text, form, words in zip(texts, forms.text, features.words_of_texts(), strict=True)
        ]

    def _packed_facts(self, texts: Sequence[str], forms: Forms, features: Features) -> tuple[bytes, ...]:
        """Return the packed facts or slots of each text; an empty tuple if the scheme has neither."""
        if self._scheme.slots:
            return pack_slots(self._slots(forms))
        return pack_facts(self._facts(texts, forms, features)) if self._scheme.facts else ()

    def _slots(self, forms: Forms) -> list[list[Slot]]:
        names, letters = self._lexicon.names(), self._lexicon.letters()
        return [slots_of(form, self._tokenizer.cut(form), names, letters) for form in forms.text]

    def _features(self, texts: list[str]) -> Features:
        table = self._word_table
        if len(table) >= WORDS_REMEMBERED_MAX or table.characters >= CHARACTERS_REMEMBERED_MAX:
            self._word_table = WordTable(self._scheme.definition, self._lexicon)
        words: list[str] = []
        counts: list[int] = []
        stops: list[int] = []
        for text in texts:
            counted = self._tokenizer.count(text)
            words += counted
            counts += counted.values()
            stops.append(len(words))
        return self._word_table.features(words, counts, stops)


def _written_digests(forms: Forms, digests: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the digests of the normalised texts, given the digests of the compared forms.

    Only texts whose two forms differ are digested again.
    """
    pairs = zip(forms.written, forms.compared, strict=True)
    folded = [place for place, (written, compared) in enumerate(pairs) if written != compared]
    if not folded:
        return digests
    written_digests = digests.copy()
    written_digests[folded] = _digests([forms.written[place] for place in folded])
    return written_digests


def _digests(texts: list[str]) -> npt.NDArray[np.uint8]:
    joined = b"".join(hashlib.blake2b(text.encode(), digest_size=TEXT_DIGEST_BYTES).digest() for text in texts)
    return np.frombuffer(joined, dtype=np.uint8).reshape(len(texts), TEXT_DIGEST_BYTES)
