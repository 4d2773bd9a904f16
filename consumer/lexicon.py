"""Loads the word tables that the jieba package ships, without importing it (slow, and it warns)."""

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from consumer.fingerprint.scheme import Lexicon

# The default of jieba.analyse.TFIDF; it stands in its code, not in a file.
STOP_WORDS: Final = frozenset(
    {
        *("the", "of", "is", "and", "to", "in", "that", "we", "for", "an", "are", "by", "be", "as", "on", "with"),
        *("can", "if", "from", "which", "you", "it", "this", "then", "at", "have", "all", "not", "one", "has", "or"),
    }
)
# All that decides how jieba cuts and weighs: dictionary, HMM, IDF.
_FILES: Final = (
    "dict.txt",
    "finalseg/prob_start.py",
    "finalseg/prob_trans.py",
    "finalseg/prob_emit.py",
    "analyse/idf.txt",
)


def load_lexicon() -> Lexicon:
    """
    Read jieba's IDF table, and digest it with the dictionary, the HMM and the stop words.

    ModuleNotFoundError when jieba is not installed; OSError when its files cannot be read.
    """
    folder = _jieba_folder()
    hasher = hashlib.blake2b(digest_size=16)
    table = b""
    for name in _FILES:
        table = (folder / name).read_bytes()
        hasher.update(f"{name} {len(table)}\n".encode())
        hasher.update(table)
    hasher.update("\n".join(sorted(STOP_WORDS)).encode())
    # The IDF table is the last of the files.
    fields = table.decode().split()
    idf = dict(zip(fields[::2], map(float, fields[1::2]), strict=True))
    return Lexicon(
        idf=idf,
        median_idf=sorted(idf.values())[len(idf) // 2],
        stop_words=STOP_WORDS,
        digest=hasher.digest(),
    )


def _jieba_folder() -> Path:
    spec = find_spec("jieba")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("jieba is not installed; its dictionary and IDF table are needed", name="jieba")
    return Path(spec.submodule_search_locations[0])
