"""The engine: a batch of texts in, arrays of fingerprints, sketches and keywords out."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from consumer.fingerprint.facts import facts_of, pack_facts
from consumer.fingerprint.features import Features, WordTable
from consumer.fingerprint.forms import Forms, forms_of
from consumer.fingerprint.lexicon import Lexicon
from consumer.fingerprint.own_words import words_known
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
"""Words cached with hash and IDF, about 200 bytes each. Checked before each chunk, which may exceed it; then all go."""
CHARACTERS_REMEMBERED_MAX: Final = 1 << 24
"""The same for the characters of these words, since a word can be as long as its text."""
CHUNK_CHARACTERS: Final = 1 << 18
"""Texts are processed together up to this many characters; a longer one is alone.

Intermediate values (words, counts, hashes, shingles) take about 100 bytes per character, results a few thousand per
text.
"""
KEYWORDS_KEPT: Final = 32
"""Keywords that go with an article as evidence; the fingerprint is computed from all that the scheme counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprints:
    """The engine's results for n texts, as arrays whose first axis is the text.

    ``codes`` uint64[n, words]: fingerprints, the most significant of ``bits // 64`` words first.
    ``sketches`` uint8[n, 256], or uint8[n, 0] without sketches. ``one_bits`` uint64[n]: one-bit minima.
    ``bands`` uint64[n, bands]: full-width folds for lane 1. ``keywords``: the heaviest of at most 64 characters, with
    their weights. ``kinds`` uint8[n]: see ``TextKind``. ``text_digests`` uint8[n, 16]: BLAKE2b of the text that is
    compared. ``facts``: facts or slots, see the modules of these names; empty if the scheme has neither.
    ``keyword_counts`` int64[n]: the number of distinct keywords, including those beyond ``keywords_max``.
    ``written_digests`` uint8[n, 16]: BLAKE2b of the normalised text, None in schemes that compare that. ``anchors`` and
    ``samples``: see ``consumer.fingerprint.parts``; empty unless they are asked for. ``marked``: whether the bytes of
    empty bins are 0, as where letters are compared.
    """

    codes: npt.NDArray[np.uint64]
    sketches: npt.NDArray[np.uint8]
    one_bits: npt.NDArray[np.uint64]
    bands: npt.NDArray[np.uint64]
    keywords: tuple[tuple[tuple[str, float], ...], ...]
    kinds: npt.NDArray[np.uint8]
    text_digests: npt.NDArray[np.uint8]
    keyword_counts: npt.NDArray[np.int64]
    facts: tuple[bytes, ...] = ()
    written_digests: npt.NDArray[np.uint8] | None = None
    anchors: tuple[bytes, ...] = ()
    samples: tuple[bytes, ...] = ()
    marked: bool = False

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.codes)


def chunks(texts: Sequence[str], characters_max: int) -> list[slice]:
    """Cut a batch into chunks of one text, or of several with at most ``characters_max`` together; at least one."""
    cuts, characters = [0], 0
    for place, text in enumerate(texts):
        if place > cuts[-1] and characters + len(text) > characters_max:
            cuts.append(place)
            characters = 0
        characters += len(text)
    return [slice(start, end) for start, end in pairwise([*cuts, len(texts)])]


def joined(parts: Sequence[Fingerprints]) -> Fingerprints:
    """Join one or more batches into one; results do not depend on the batch that a text is in."""
    if len(parts) == 1:
        return parts[0]
    written = [part.written_digests for part in parts if part.written_digests is not None]
    return Fingerprints(
        codes=np.concatenate([part.codes for part in parts]),
        sketches=np.concatenate([part.sketches for part in parts]),
        one_bits=np.concatenate([part.one_bits for part in parts]),
        bands=np.concatenate([part.bands for part in parts]),
        keywords=tuple(chain.from_iterable(part.keywords for part in parts)),
        kinds=np.concatenate([part.kinds for part in parts]),
        text_digests=np.concatenate([part.text_digests for part in parts]),
        keyword_counts=np.concatenate([part.keyword_counts for part in parts]),
        facts=tuple(chain.from_iterable(part.facts for part in parts)),
        written_digests=np.concatenate(written) if written else None,
        anchors=tuple(chain.from_iterable(part.anchors for part in parts)),
        samples=tuple(chain.from_iterable(part.samples for part in parts)),
        marked=parts[0].marked,
    )


class WeighedWord(NamedTuple):
    """A word that counts, its weight before rounding, and its hash."""

    word: str
    weight: float
    hash: int


class Breakdown(NamedTuple):
    """A fingerprint with the values from which it was computed.

    ``words``: all words that counted, heaviest first. ``sums``: of rounded weights, for each bit, the most significant
    first.
    """

    kind: TextKind
    words: tuple[WeighedWord, ...]
    sums: tuple[float, ...]
    fingerprint: int


class Engine(Protocol):
    """Computes fingerprints with one scheme: ``Fingerprinter`` in Python, or the compiled one."""

    @property
    def scheme(self) -> Scheme:
        """The scheme of all fingerprints computed here."""
        ...

    def fingerprint(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Fingerprints:
        """Fingerprint raw texts; the result of each is independent of the rest of the batch.

        ``languages`` are those that the texts declare, "" for none; only the sketch depends on them. Raises
        ``ValueError`` if the weights of a text add up to 2**32 or more.
        """
        ...


class Fingerprinter(Engine):
    """Computes fingerprints with one scheme in Python, the reference of the compiled engine; not thread-safe.

    ``keywords_kept`` keywords go along as evidence, None for all; ``sketched`` says whether sketches are computed, and
    ``parts`` whether anchors and samples are. None of these changes a fingerprint. ``secret`` keys the hashes of
    shingles in schemes that key them. ``tokenizer`` is used instead of the scheme's own. Each worker process builds its
    own from the same scheme and ``consumer.workers.word_files.load_lexicon()``.
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
        self._lexicon = words_known(lexicon, scheme.definition)
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
    def fingerprint(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Fingerprints:
        declared = [""] * len(texts) if languages is None else languages
        return joined([self._fingerprint(texts[chunk], declared[chunk]) for chunk in chunks(texts, CHUNK_CHARACTERS)])

    def _fingerprint(self, texts: Sequence[str], languages: Sequence[str]) -> Fingerprints:
        forms = self._forms(texts)
        features = self._features(forms.words)
        distinct = np.diff(features.offsets)
        facts = self._packed_facts(texts, forms, features)
        if self._scheme.keywords_max is not None:
            features = features.only_heaviest(self._scheme.keywords_max)
        sketched, parts = self._by_shingles(forms.shingled, languages)
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
            marked=self._scheme.definition.compares_letters,
        )

    def _by_shingles(self, texts: Sequence[str], languages: Sequence[str]) -> tuple[Sketches, Parts]:
        """Compute what is asked for of all that shingles are for; they are hashed once."""
        layout, marked = self._scheme.sketch, self._scheme.definition.compares_letters
        minima = Minima(len(texts), layout, marked=marked) if self._sketched else None
        finder = PartsFinder() if self._parts else None
        if minima or finder:
            for chunk in hashed_chunks(texts, languages, self._shingling):
                if minima:
                    minima.lower(chunk)
                if finder:
                    finder.add(chunk)
        sketches = minima.sketches() if minima else no_sketches(len(texts), layout)
        return sketches, finder.parts() if finder else Parts((), ())

    def breakdown(self, text: str) -> "Breakdown":
        """Fingerprint one raw text, with the intermediate results for a person."""
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
        """Return the words of one raw text that count in this scheme, including those beyond ``keywords_max``."""
        definition = self._scheme.definition
        counted = self._tokenizer.count(self._forms([text]).words[0])
        return {word for word in counted if definition.counting.counts(word, self._lexicon)}

    def facts(self, text: str) -> set[str]:
        """Return the facts of one raw text, also if the scheme does without."""
        forms = self._forms([text])
        return self._facts([text], forms, self._features(forms.words))[0]

    def slots(self, text: str) -> list[Slot]:
        """Return the slots of one raw text, also if the scheme does without."""
        return self._slots(self._forms([text]))[0]

    def _forms(self, texts: Sequence[str]) -> Forms:
        return forms_of(texts, self._scheme, self._lexicon)

    def _kinds(
        self, distinct: npt.NDArray[np.int64], bins: npt.NDArray[np.int64], forms: Forms
    ) -> npt.NDArray[np.uint8]:
        definition, short_keywords_max = self._scheme.definition, self._scheme.short_keywords_max
        if definition.compares_letters:
            # What has words of symbols, and no letter, is compared by equality alone.
            counting = np.where([bool(letters) for letters in forms.shingled], distinct, 0)
            return kinds_in_every_script(counting, short_keywords_max, bins, forms.text, LETTERS_BINS_MIN)
        if definition.every_script:
            return kinds_in_every_script(distinct, short_keywords_max, bins, forms.text)
        return kinds_by_keywords(distinct, short_keywords_max)

    def _codes(
        self, features: Features, digests: npt.NDArray[np.uint8], kinds: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.uint64]:
        """Return the fingerprints; in schemes for every script, those of texts without keywords are from their digests.

        Where letters are compared, so are those of all short texts.
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
        found = (features.evidence(text, self._keywords_kept) for text in range(len(texts)))
        if not self._scheme.definition.every_script:
            return tuple(found)
        return tuple(keywords or runs(text, self._keywords_kept) for keywords, text in zip(found, texts, strict=True))

    def _facts(self, texts: Sequence[str], forms: Forms, features: Features) -> list[set[str]]:
        known = self._lexicon.idf
        letters = self._lexicon.letters() if self._scheme.definition.compares_letters else None
        return [
            facts_of(text, form, words, known, letters)
            for text, form, words in zip(texts, forms.text, features.words_of_texts(), strict=True)
        ]

    def _packed_facts(self, texts: Sequence[str], forms: Forms, features: Features) -> tuple[bytes, ...]:
        """Return what records keep to tell texts apart: facts, or slots, or nothing at all."""
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
    """Return the digests of the texts as written; only those that are compared in another form have another one."""
    pairs = zip(forms.written, forms.compared, strict=True)
    folded = [place for place, (written, compared) in enumerate(pairs) if written != compared]
    if not folded:
        return digests
    found = digests.copy()
    found[folded] = _digests([forms.written[place] for place in folded])
    return found


def _digests(texts: list[str]) -> npt.NDArray[np.uint8]:
    joined = b"".join(hashlib.blake2b(text.encode(), digest_size=TEXT_DIGEST_BYTES).digest() for text in texts)
    return np.frombuffer(joined, dtype=np.uint8).reshape(len(texts), TEXT_DIGEST_BYTES)
