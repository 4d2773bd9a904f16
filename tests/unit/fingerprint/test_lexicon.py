"""Reading jieba's tables."""

import subprocess
import sys

import pytest

import consumer.lexicon
from consumer.fingerprint import Lexicon


def test_table_is_the_packages(lexicon: Lexicon) -> None:
    """The IDF table has its 270,132 words, and the median that stands for unknown ones."""
    assert len(lexicon.idf) == 270_132
    assert lexicon.median_idf == 11.9547675029
    assert lexicon.idf["图书馆"] == 7.57811241205
    assert len(lexicon.digest) == 16


def test_jieba_is_not_imported() -> None:
    """Neither the package nor loading the lexicon imports jieba or rjieba, which are slow to load."""
    code = (
        "import sys, consumer.fingerprint, consumer.lexicon; consumer.lexicon.load_lexicon(); "
        "sys.exit(any(name.split('.')[0] in ('jieba', 'rjieba') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without jieba the error names what is missing and why it is needed."""
    monkeypatch.setattr(consumer.lexicon, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="dictionary and IDF table"):
        consumer.lexicon.load_lexicon()
