"""
Fingerprints of texts, their sketches and the keys they are indexed under. Pure: no I/O, no clock, no settings.

    text ──▶ normalise ──▶ words ──▶ weights ──▶ sums ──▶ fingerprint ──▶ block keys  (lane 0)
                      └──▶ shingles ──▶ minima ──▶ sketch, one-bit minima, band keys  (lane 1)
"""

from consumer.fingerprint.engine import KEYWORDS_KEPT, Fingerprinter, Fingerprints, TextKind
from consumer.fingerprint.hashing import fnv1a_64
from consumer.fingerprint.keywords import (
    JiebaTokenizer,
    RustTokenizer,
    Tokenizer,
    default_tokenizer,
    weigh,
)
from consumer.fingerprint.normalise import normalise
from consumer.fingerprint.plan import LANE_MINHASH, LANE_SIMHASH, BlockPlan
from consumer.fingerprint.scheme import SCHEME_NAMES, Lexicon, Scheme
from consumer.fingerprint.sketch import SketchLayout, sketch_batch, sketch_similarity
from consumer.fingerprint.summing import (
    bit_sums,
    fingerprint_batch,
    hamming_distance,
    simhash,
    split_blocks,
)

__all__ = [
    "KEYWORDS_KEPT",
    "LANE_MINHASH",
    "LANE_SIMHASH",
    "SCHEME_NAMES",
    "BlockPlan",
    "Fingerprinter",
    "Fingerprints",
    "JiebaTokenizer",
    "Lexicon",
    "RustTokenizer",
    "Scheme",
    "SketchLayout",
    "TextKind",
    "Tokenizer",
    "bit_sums",
    "default_tokenizer",
    "fingerprint_batch",
    "fnv1a_64",
    "hamming_distance",
    "normalise",
    "simhash",
    "sketch_batch",
    "sketch_similarity",
    "split_blocks",
    "weigh",
]
