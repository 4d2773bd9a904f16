"""Computes fingerprints of texts, their sketches, and their index keys. Pure: no I/O, no clock, no settings.

The steps from a text to its fingerprint and keys::

    text ──▶ normalise ──▶ words ──▶ weights ──▶ sums ──▶ fingerprint ──▶ block keys  (lane 0)
                      ├──▶ shingles ──▶ minima ──▶ sketch, one-bit minima, band keys  (lane 1)
                      │             ├──▶ known shingles, if a set is given
                      │             └──▶ sample ─┐
                      ├──▶ stretches ──▶ anchors ┴──▶ parts, if requested
                      └──▶ numbers, names ──▶ facts or slots, if the scheme has them
"""

from consumer.fingerprint.characters.decorations import DecorationLists
from consumer.fingerprint.characters.letter_tables import LetterTables
from consumer.fingerprint.characters.normalise import normalise
from consumer.fingerprint.characters.simplified import ChineseTables, Step
from consumer.fingerprint.engine import (
    KEYWORDS_KEPT,
    Breakdown,
    Engine,
    Fingerprinter,
    WeighedWord,
)
from consumer.fingerprint.facts import FactOverlap, fact_overlap, facts_count
from consumer.fingerprint.fingerprints import Fingerprints, chunks, join_batches
from consumer.fingerprint.hashing import fnv1a_64
from consumer.fingerprint.hyperplanes import fingerprint_vectors
from consumer.fingerprint.known_shingles import (
    KNOWN_SHINGLES_MAX,
    SHINGLES_KEPT,
    KnownShingles,
    held_hashes,
    unpacked_shingles,
)
from consumer.fingerprint.lexicon import CUT_WHOLE, IdfTable, Lexicon, OwnWord
from consumer.fingerprint.parts import (
    ANCHORS_LOOKED_UP,
    ANCHORS_POSTED,
    SAMPLED_ONE_IN,
    Shares,
    shares,
    shares_of_many,
    unpacked_anchors,
    unpacked_sample,
)
from consumer.fingerprint.plan import LANE_MINHASH, LANE_SIMHASH, BlockPlan
from consumer.fingerprint.scheme import SCHEME_NAMES, Scheme
from consumer.fingerprint.secret import PUBLISHED_SECRET, SECRET_BYTES, Secret
from consumer.fingerprint.sketch import (
    SketchLayout,
    SketchSimilarity,
    densified_sketches,
    marked_sketch_similarity,
    sketch_batch,
    sketch_similarity,
)
from consumer.fingerprint.slots import NAME_TAGS, SLOTS_KEPT, Slot, slot_conflicts, values_by_slot
from consumer.fingerprint.summing import (
    bit_sums,
    cosine,
    fingerprint_batch,
    fingerprint_number,
    hamming_distance,
    simhash,
    split_blocks,
)
from consumer.fingerprint.text_kinds import TextKind, TextKindName
from consumer.fingerprint.tokenizers import JiebaTokenizer, RustTokenizer, Tokenizer, default_tokenizer

__all__ = [
    "ANCHORS_LOOKED_UP",
    "ANCHORS_POSTED",
    "CUT_WHOLE",
    "KEYWORDS_KEPT",
    "KNOWN_SHINGLES_MAX",
    "LANE_MINHASH",
    "LANE_SIMHASH",
    "NAME_TAGS",
    "PUBLISHED_SECRET",
    "SAMPLED_ONE_IN",
    "SCHEME_NAMES",
    "SECRET_BYTES",
    "SHINGLES_KEPT",
    "SLOTS_KEPT",
    "BlockPlan",
    "Breakdown",
    "ChineseTables",
    "DecorationLists",
    "Engine",
    "FactOverlap",
    "Fingerprinter",
    "Fingerprints",
    "IdfTable",
    "JiebaTokenizer",
    "KnownShingles",
    "LetterTables",
    "Lexicon",
    "OwnWord",
    "RustTokenizer",
    "Scheme",
    "Secret",
    "Shares",
    "SketchLayout",
    "SketchSimilarity",
    "Slot",
    "Step",
    "TextKind",
    "TextKindName",
    "Tokenizer",
    "WeighedWord",
    "bit_sums",
    "chunks",
    "cosine",
    "default_tokenizer",
    "densified_sketches",
    "fact_overlap",
    "facts_count",
    "fingerprint_batch",
    "fingerprint_number",
    "fingerprint_vectors",
    "fnv1a_64",
    "hamming_distance",
    "held_hashes",
    "join_batches",
    "marked_sketch_similarity",
    "normalise",
    "shares",
    "shares_of_many",
    "simhash",
    "sketch_batch",
    "sketch_similarity",
    "slot_conflicts",
    "split_blocks",
    "unpacked_anchors",
    "unpacked_sample",
    "unpacked_shingles",
    "values_by_slot",
]
