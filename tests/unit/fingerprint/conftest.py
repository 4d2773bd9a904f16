"""What is slow to build is built once a session."""

import warnings
from collections.abc import Iterator
from typing import IO

import pytest

from consumer.fingerprint import Fingerprinter, JiebaTokenizer, Lexicon, RustTokenizer, Scheme
from consumer.workers.word_files import load_lexicon


@pytest.fixture(scope="session", autouse=True)
def _dictionary_is_parsed_once() -> Iterator[None]:
    """Every reference gets a copy: to parse jieba's dictionary takes a second."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba  # noqa: PLC0415  # as the reference imports it
    parse, parsed = jieba.Tokenizer.gen_pfdict, {}

    def copied(file: IO[bytes]) -> tuple[dict[str, int], int]:
        with file:
            if file.name not in parsed:
                parsed[file.name] = parse(file)
        frequencies, total = parsed[file.name]
        return dict(frequencies), total

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jieba.Tokenizer, "gen_pfdict", staticmethod(copied))
        yield


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
