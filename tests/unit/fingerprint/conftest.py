"""What is slow to build is built once a session."""

import pytest

from consumer.fingerprint import Fingerprinter, JiebaTokenizer, Lexicon, RustTokenizer, Scheme
from consumer.lexicon import load_lexicon


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    """The lexicon of the jieba package."""
    return load_lexicon()


@pytest.fixture(scope="session")
def jieba_tokenizer() -> JiebaTokenizer:
    """The reference."""
    return JiebaTokenizer()


@pytest.fixture(scope="session")
def rust_tokenizer() -> RustTokenizer:
    """The engine."""
    return RustTokenizer()


@pytest.fixture(scope="session")
def fingerprinter(lexicon: Lexicon) -> Fingerprinter:
    """An engine that tells every keyword."""
    return Fingerprinter(Scheme(), lexicon, keywords_kept=None)
