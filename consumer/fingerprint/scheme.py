"""Schemes, which determine how fingerprints are computed. Fingerprints of different schemes are never compared."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Final

from consumer.fingerprint.characters.decorations import DECORATIONS_DESCRIBED
from consumer.fingerprint.characters.equality import EQUALITY_DESCRIBED
from consumer.fingerprint.characters.letters import LETTERS_DESCRIBED
from consumer.fingerprint.characters.normalise import INVISIBLE, MARKS_IN_A_ROW_MAX, normalise
from consumer.fingerprint.characters.simplified import JAPANESE_DESCRIBED
from consumer.fingerprint.definitions import DEFINITIONS, Definition
from consumer.fingerprint.facts import FACTS_DESCRIBED, FACTS_KEPT, FACTS_OF_LETTERS_DESCRIBED
from consumer.fingerprint.lexicon import Lexicon
from consumer.fingerprint.shingles import (
    CJK_FROM,
    EAST_ASIAN,
    LETTERS_SHINGLE_CJK,
    LETTERS_SHINGLE_OTHER,
    LETTERS_STRETCH_CJK,
    LETTERS_STRETCH_OTHER,
    SHINGLE_CJK,
    SHINGLE_OTHER,
)
from consumer.fingerprint.sketch import SketchLayout
from consumer.fingerprint.slots import SLOTS_DESCRIBED, SLOTS_KEPT
from consumer.fingerprint.summing import WEIGHT_SCALE
from consumer.fingerprint.text_kinds import LETTERS_BINS_MIN, SHINGLED_BINS_MIN

SCHEME_NAMES: Final = tuple(DEFINITIONS)
_OWN_WORDS_DESCRIBED: Final = "dictionary, stop words and IDF table of the user: as they are, and folded word by word"


@dataclass(frozen=True, slots=True)
class Scheme:
    """A way to compute fingerprints: a definition, by its name, and parameters.

    ``keywords_max`` is the number of heaviest keywords that count, or None for all. A text with at most
    ``short_keywords_max`` distinct keywords is not matched by its fingerprint (see ``TextKind``). The reason: after one
    word of two characters is replaced, 22 % of Chinese excerpts with 6 or 7 keywords keep a similarity of 0.7, 70 % of
    those with 10 or 11, and all with 15 to 19. ``facts`` turns on the facts of each text, for rules that compare them.
    Schemes that compare letters have two more parameters: with ``decorations``, links, @names and the like do not
    count, and ``slots`` turns on the slots of each text in place of its facts.
    """

    name: str = "jieba-tfidf/3"
    keywords_max: int | None = None
    short_keywords_max: int = 7
    sketch: SketchLayout = SketchLayout()  # noqa: RUF009 -- frozen, so one default may be shared
    facts: bool = False
    decorations: bool = True
    slots: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a scheme that no engine computes."""
        if self.name not in DEFINITIONS:
            raise ValueError(
                f"unknown scheme {self.name!r}; choose one of the {len(SCHEME_NAMES)} in docs/use/schemes.md, such as "
                f"{SCHEME_NAMES[0]}"
            )
        if self.keywords_max is not None and self.keywords_max < 1:
            raise ValueError("keywords_max must be at least 1, or None for all keywords")
        if self.short_keywords_max < 0:
            raise ValueError("short_keywords_max must be at least 0")
        if not self.decorations and not self.definition.compares_letters:
            raise ValueError(
                f"decorations = false has no effect with {self.name}, which always compares them; leave it out"
            )
        if self.slots and not self.definition.compares_letters:
            raise ValueError("slots need a scheme that compares letters, such as jieba-tfidf/3")
        if self.slots and self.facts:
            raise ValueError("a record has room for facts or slots, and not for both")

    @property
    def definition(self) -> Definition:
        """The definition with this name."""
        return DEFINITIONS[self.name]

    @property
    def bits(self) -> int:
        """The number of bits of a fingerprint."""
        return self.definition.bits

    def parameters(self) -> dict[str, Any]:
        """Return the name and parameters of the scheme, by name, in JSON types."""
        parameters = asdict(self)
        if not self.definition.compares_letters:
            del parameters["decorations"], parameters["slots"]
        return parameters

    def describe(self) -> dict[str, object]:
        """Return all that the digest covers, except the lexicon's files. Changing a byte changes the digest."""
        definition = self.definition
        reading = "" if definition.split_form.form is normalise else f", of {definition.split_form.described}"
        # Facts are described only if they are on: schemes without them keep the digests from before facts existed.
        described = FACTS_OF_LETTERS_DESCRIBED if definition.compares_letters else FACTS_DESCRIBED
        facts: dict[str, object] = {
            "facts": {"are": described, "hash": "CRC-32, SplitMix64 finalizer, top 32 bits", "kept": FACTS_KEPT}
        }
        slots: dict[str, object] = {
            "slots": {"are": SLOTS_DESCRIBED, "hash": "that of facts", "kept": SLOTS_KEPT, "facts": "none"}
        }
        newer = (facts if self.facts else {}) | (slots if self.slots else {}) | _described_scripts(self)
        return newer | {
            "scheme": self.name,
            "normalisation": {
                "steps": "invisible characters out; NFKC; casefold; NFKC; runs of white space to one space, stripped",
                "marks_in_a_row_max": f"{MARKS_IN_A_ROW_MAX}, the first ones, before the first NFKC and after the last",
                "invisible": INVISIBLE.encode("unicode_escape").decode(),
                "unicode_version": "any: characters assigned in two versions fold alike in both",
            },
            "tokenizer": f"{definition.splitting.described}{reading}",
            "keywords": {
                "left_out": definition.filtering.described,
                "weight": definition.weighting.described,
                "order": "heaviest first, equal weights by code points",
                "max": self.keywords_max,
                "short_max": self.short_keywords_max,
            },
            "fingerprint": {
                "bits": self.bits,
                "hash": definition.hashing.described,
                "weight_unit": f"1/{int(WEIGHT_SCALE)}, rounded half to even",
                "bit_order": "most significant first",
                "tie": definition.tie_described,
            },
            "sketch": _described_sketch(self),
        }

    def digest(self, lexicon: Lexicon) -> str:
        """Return the digest of everything that defines the scheme, with its lexicon: 32 hexadecimal digits."""
        described: dict[str, object] = {"definition": self.describe(), "lexicon": lexicon.digest.hex()}
        if self.definition.every_script:
            described["chinese"] = lexicon.chinese().digest.hex()
        if self.definition.compares_letters:
            described["letters"] = lexicon.letters().digest.hex()
            described |= {"decorations": lexicon.decorations().digest.hex()} if self.decorations else {}
        canonical = json.dumps(described, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()


def _described_scripts(scheme: Scheme) -> dict[str, object]:
    """Return the description of steps that only newer schemes have; older schemes keep their digests."""
    if scheme.definition.compares_letters:
        return _described_letters(scheme)
    chinese: dict[str, object] = {
        "chinese": {
            "folded": "after normalisation, for words, sketch and text digest; references have the digest from before",
            "steps": "longest phrase from the left, other characters one by one; only texts with a character that the "
            "last step replaces",
            "japanese": JAPANESE_DESCRIBED,
            "own_words": _OWN_WORDS_DESCRIBED,
        },
        "every_script": {
            "shingled": f"few keywords, and shingles in at least {SHINGLED_BINS_MIN} bins: keys of lane 1 alone",
            "short": "other texts with few keywords; without any the fingerprint is the start of the text digest",
        },
    }
    return chinese if scheme.definition.every_script else {}


def _described_letters(scheme: Scheme) -> dict[str, object]:
    return {
        "forms": {
            "words, facts, text digest": EQUALITY_DESCRIBED,
            "shingles": LETTERS_DESCRIBED,
            "decorations": DECORATIONS_DESCRIBED if scheme.decorations else "count",
            "references": "the normalised text",
            "own_words": _OWN_WORDS_DESCRIBED,
        },
        "kinds": {
            "long": "more keywords than short_max, and a letter",
            "shingled": f"fewer, and shingles in at least {LETTERS_BINS_MIN} bins: keys of lane 1 alone",
            "short": "all others; the fingerprint is the start of the text digest, and there are keys of both lanes",
        },
    }


def _described_sketch(scheme: Scheme) -> dict[str, object]:
    if not scheme.definition.compares_letters:
        return {
            **asdict(scheme.sketch),
            "shingle_cjk": SHINGLE_CJK,
            "shingle_other": SHINGLE_OTHER,
            "shingle_length": "by the declared language, else by the script of its first character",
            "east_asian": sorted(EAST_ASIAN),
            "cjk_from": f"U+{CJK_FROM:04X}",
            "words": "str.isalnum or _, every other run is one space",
            "hash": "polynomial base 0x9e3779b97f4a7c15 plus length, SplitMix64 finalizer",
            "minima": "bin by the top 8 bits, minimum of the other 56, optimal densification",
            "bits": "bands from the first minima, bit 8 of the next 64, bits 0-7 of all",
        }
    return {
        **asdict(scheme.sketch),
        "shingle_cjk": LETTERS_SHINGLE_CJK,
        "shingle_other": LETTERS_SHINGLE_OTHER,
        "shingle_length": "by the script of its first character",
        "stretch_cjk": LETTERS_STRETCH_CJK,
        "stretch_other": LETTERS_STRETCH_OTHER,
        "cjk_from": f"U+{CJK_FROM:04X}",
        "hash": "polynomial with a secret odd base plus length, SipHash-1-3 with a secret key",
        "minima": "bin by the top 8 bits, minimum of the other 56, optimal densification for bands and one-bit minima",
        "bits": "bands from the first minima, bit 8 of the next 64; of all 1 + bits 9-55 modulo 255, 0 where empty",
    }
