"""Reading jieba's tables."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import consumer.workers.word_files
from consumer.fingerprint import Fingerprinter, Lexicon, OwnWord, Scheme
from consumer.workers.word_files import STOP_WORDS, load_lexicon

Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file and tell its path."""

    def written(content: str | bytes) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.txt"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """The lexicon of the jieba package."""
    return load_lexicon()


def test_table_is_the_packages(lexicon: Lexicon) -> None:
    """The IDF table has its 270,132 words, and the median that stands for unknown ones."""
    assert len(lexicon.idf) == 270_132
    assert lexicon.median_idf == 11.9547675029
    assert lexicon.idf["图书馆"] == 7.57811241205
    assert len(lexicon.digest) == 16


def test_jieba_is_not_imported() -> None:
    """Neither the package nor loading the lexicon imports jieba or rjieba, which are slow to load."""
    code = (
        "import sys, consumer.fingerprint, consumer.workers.word_files; consumer.workers.word_files.load_lexicon(); "
        "sys.exit(any(name.split('.')[0] in ('jieba', 'rjieba') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_word_files_are_read_once_and_the_table_when_a_word_is_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Naming the scheme does not load 270,132 words; weighing always uses the same table."""
    opened: Counter[str] = Counter()
    really = Path.open

    def noted(path: Path, *how: Any, **more: Any) -> Any:  # noqa: ANN401  # whatever the method takes and returns
        opened[path.name] += 1
        return really(path, *how, **more)

    files = consumer.workers.word_files
    for made_once in (files._jieba_hasher, files._jieba_table, files._chinese_tables):
        made_once.cache_clear()
    monkeypatch.setattr(Path, "open", noted)
    lexicon, other = load_lexicon(), load_lexicon()
    assert Scheme().digest(lexicon) == Scheme().digest(other)
    jiebas = ("dict.txt", "prob_start.py", "prob_trans.py", "prob_emit.py", "idf.txt")
    assert opened == dict.fromkeys((*jiebas, "traditional_chinese.tsv"), 1)
    assert lexicon.idf is other.idf
    assert opened["idf.txt"] == 2


def test_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without jieba the error names what is missing and why it is needed."""
    monkeypatch.setattr(consumer.workers.word_files, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="dictionary and IDF table"):
        consumer.workers.word_files.load_lexicon()


def test_own_files_stand_in_for_jiebas(write: Write) -> None:
    """A user's table and stop words replace jieba's, words come on top; neither blank lines nor a BOM are words."""
    lexicon = load_lexicon(
        write("\ufeff石墨烯 500 n\n\n5G手机 nz\r\n云计算\n"),
        write("但是\n Ｆｏｏ\n"),
        write("图书馆 2.5\n\n读者 1\n藏书 7e0"),
    )
    assert lexicon.idf == {"图书馆": 2.5, "读者": 1.0, "藏书": 7.0}
    assert lexicon.median_idf == 2.5
    assert lexicon.stop_words == {"但是", "ｆｏｏ", "foo"}
    assert lexicon.own_words == (
        OwnWord("5G手机", None),
        OwnWord("5g手机", None),
        OwnWord("云计算", None),
        OwnWord("石墨烯", 500),
    )


def test_own_files_reach_the_fingerprint(write: Write, lexicon: Lexicon) -> None:
    """A user's word stays whole, with the weight in the user's table; a stop word is no longer a keyword."""
    text = "石墨烯电池的读者都在图书馆"
    before = dict(Fingerprinter(Scheme(), lexicon).fingerprint([text]).keywords[0])
    own = load_lexicon(write("石墨烯电池\n"), write("读者\n"), write("图书馆 2.5\n石墨烯电池 9\n无 1\n"))
    after = dict(Fingerprinter(Scheme(), own).fingerprint([text]).keywords[0])
    assert "石墨烯电池" not in before
    assert "读者" in before
    assert after == {"石墨烯电池": 9.0, "图书馆": 2.5}


def test_order_of_lines_makes_no_difference(write: Write) -> None:
    """The same lines in another order, with blank ones between, are the same lexicon."""
    lexicon = load_lexicon(write("石墨烯 5\n云计算\n"), write("a\nb\n"), write("x 1\ny 2\n"))
    other = load_lexicon(write("云计算\n\n石墨烯  5"), write("b\na"), write("y 2.0\r\nx 1\n"))
    assert lexicon == other


def test_every_file_is_in_the_digest(write: Write, lexicon: Lexicon) -> None:
    """Another word, frequency, stop word or weight is another scheme; no file, or jieba's own words, the plain one."""
    lexicons = [
        load_lexicon(),
        load_lexicon(write("石墨烯\n")),
        load_lexicon(write("石墨烯 5\n")),
        load_lexicon(write("石墨烯 6\n")),
        load_lexicon(write("云计算\n")),
        load_lexicon(None, write("但是\n")),
        load_lexicon(None, write("")),
        load_lexicon(None, None, write("石墨烯 5\n")),
        load_lexicon(None, None, write("石墨烯 6\n")),
    ]
    assert len({Scheme().digest(lexicon) for lexicon in lexicons}) == len(lexicons)
    assert lexicons[0].digest == lexicon.digest
    assert load_lexicon(None, write("\n".join(STOP_WORDS))).digest == lexicon.digest


@pytest.mark.parametrize(
    ("kind", "content", "reason"),
    [
        (0, "云计算\n北 京 3", "line 2: expected a frequency and a tag"),
        (0, "云计算 1 n more", "line 1: expected a frequency and a tag"),
        (0, "云计算 -1", "line 1: expected a frequency and a tag"),
        (0, "云计算 0", "line 1: a frequency is a number from 1"),
        (0, "云计算 1000000001", "line 1: a frequency is a number from 1"),
        (0, f"云计算 {'9' * 5000}", "line 1: a frequency is a number from 1"),
        (0, "\n云·计算 3", "line 2: jieba never keeps '云·计算' as one word"),
        (0, "㐂㐂", "line 1: jieba never keeps"),
        (0, "Gpt 1\ngpt 2", "line 2: 'gpt' is already on an earlier line"),
        (0, b"\xe4\xba\x91\n\xff", "line 2: not UTF-8"),
        (1, "a\nb c", "line 2: expected one stop word"),
        (1, b"\xff", "line 1: not UTF-8"),
        (2, "云计算", "line 1: expected a word and its IDF"),
        (2, "a b 1", "line 1: expected a word and its IDF"),
        (2, "a 1\na 2", "line 2: 'a' is already on an earlier line"),
        (2, "a x", "line 1: an IDF is a number above 0"),
        (2, "a 0", "line 1: an IDF is a number above 0"),
        (2, "a nan", "line 1: an IDF is a number above 0"),
        (2, "a inf", "line 1: an IDF is a number above 0"),
        (2, "a １", "line 1: an IDF is a number above 0"),
        (2, " \n", "has no words"),
    ],
)
def test_errors_in_own_files_name_the_line(write: Write, kind: int, content: str | bytes, reason: str) -> None:
    """An error in a user's file is a sentence that names file and line."""
    paths: list[Path | None] = [None, None, None]
    paths[kind] = write(content)
    with pytest.raises(ValueError, match=reason) as caught:
        load_lexicon(*paths)
    assert str(paths[kind]) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_own_file_is_an_os_error(tmp_path: Path) -> None:
    """A missing file is named."""
    with pytest.raises(FileNotFoundError):
        load_lexicon(tmp_path / "none")
