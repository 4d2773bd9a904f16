"""Commands that take a text by name refuse what is not a text."""

import json
import subprocess
from pathlib import Path

import pytest

from consumer.cli.texts import is_one_article
from consumer.config.loading import load_config
from tests.cli.command import SAMPLE, Command, json_lines, run_process, text, write_lines

README = str(SAMPLE.with_name("README.md"))
COMMANDS = {
    "fingerprint": ("fingerprint", "{path}"),
    "compare": ("compare", "{path}", README),
    "explain": ("explain", README, "{path}"),
}
FAULTS: dict[str, tuple[bytes, int, str, str]] = {
    "JSON lines": (SAMPLE.read_bytes(), 3, "holds several articles", "dupwatch run or dupwatch query"),
    "JSON lines with a fault": (
        b'{"id":\n{"id":"a","body":"b"}\n',
        3,
        "holds several articles",
        "pipe one line into it",
    ),
    "an array": (b'[{"id":"a","body":"b"}]', 3, "is a JSON array", "jq -c '.[]'"),
    "Latin-1": ("Le café est fermé".encode("latin-1"), 3, "is not UTF-8", "iconv -f LATIN1 -t UTF-8"),
    "UTF-16": ("Le café est fermé".encode("utf-16"), 3, "UTF-16 byte order mark", "iconv -f UTF-16 -t UTF-8"),
    "a program": (Path("/bin/ls").read_bytes(), 3, "is not text: it has a NUL at byte", "Name a text in UTF-8"),
    "a retraction": (b'{"id":"a","body":null}', 2, "is a retraction", "Name an article with a text"),
    "no id": (b'{"body":"text"}', 2, "invalid article in", "has no id"),
    "damaged gzip": (b"\x1f\x8b\x08\x00broken", 3, "cannot decompress", ""),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_text(dupwatch: Command, tmp_path: Path, fault: str, command: str) -> None:
    """The message says what is wrong and what to do, in one or two sentences, and there is no other output."""
    data, code, what, advice = FAULTS[fault]
    path = tmp_path / "text"
    path.write_bytes(data)
    ended = dupwatch(*(argument.format(path=path) for argument in COMMANDS[command]))
    assert (ended.code, ended.out) == (code, b"")
    assert str(path) in ended.err
    assert what in ended.err
    assert advice in ended.err
    assert ended.err.count("\n") == 1
    assert len(ended.err.replace(str(tmp_path), "")) <= 240


@pytest.mark.parametrize(
    "plain", ["[draft] the first line\nthe second", "{the} first\nthe second", "17", '"quoted"', "[1, 2]"]
)
def test_a_text_may_look_like_json(dupwatch: Command, tmp_path: Path, plain: str) -> None:
    """A brace or a bracket does not make a text an article."""
    (tmp_path / "text").write_text(plain)
    assert dupwatch("fingerprint", tmp_path / "text").code == 0


@pytest.mark.parametrize(
    ("data", "is_one"),
    [
        (b"[draft] the first line\nthe second", True),
        (b"{the} first\nthe second", True),
        (b"[1, 2]", True),
        (b'{"id":"a","body":"cut off', True),
        (b'{\n"id": "a", "body": "b", "tags": [\n{"a": 1}\n]}', True),
        (b'{"id":"a","body":"b"}', False),
        (b'[draft]\n{"id":"a","body":"b"}\n', False),
        (b'[{"id":"a","body":"b"},\n{"id":"c","body":"d"}]', False),
        (json.dumps({"id": "a", "body": "b" * 70_000}).encode() + b'\n{"id":"c","body":"d"}\n', False),
        (b"", False),
    ],
    ids=["bracket", "brace", "numbers", "cut off", "lines", "one line", "a record", "an array", "long lines", "empty"],
)
def test_one_article_or_json_lines(tmp_path: Path, data: bytes, is_one: bool) -> None:  # noqa: FBT001
    """What ``query`` takes for JSON lines, and what for one article or a text."""
    (tmp_path / "asked").write_bytes(data)
    assert is_one_article(str(tmp_path / "asked"), load_config(None, {})) is is_one


def test_a_feed_too_long_for_one_article_is_json_lines(tmp_path: Path) -> None:
    """Whatever it begins with."""
    (tmp_path / "asked").write_bytes(b'{"id":"a",\n"body":"b"}')
    for bytes_max, is_one in ((20, False), (30, True)):
        chosen = load_config(None, {"source": {"record_bytes_max": bytes_max}})
        assert is_one_article(str(tmp_path / "asked"), chosen) is is_one


def test_the_heading_of_the_fingerprint(dupwatch: Command, tmp_path: Path) -> None:
    """It is a line of its own after an empty one, and the output has no replacement character."""
    (tmp_path / "text").write_text(text(1))
    lines = dupwatch("fingerprint", tmp_path / "text").out.decode().splitlines()
    assert not [line for line in lines if "\ufffd" in line]
    at = [line.strip() for line in lines].index("Fingerprint")
    assert lines[at - 1].strip() == ""
    assert lines[at + 1].split() == ["scheme", "jieba-tfidf/3"]


_RUSSIAN = (
    "Сегодня в городе открыли новый мост через реку. На церемонию пришли сотни жителей, несмотря на ветер. "
    "Строительство заняло три года и обошлось дешевле, чем ожидалось."
)
_NEVER = "An empty text, or one without keywords, is never part of a duplicate pair."
_SHORT = "At least one text is short: the two are duplicates only if they are equal (docs/use/fingerprint.md)."


@pytest.mark.parametrize(
    ("scheme", "plain", "noted", "compared"),
    [
        ("jieba-tfidf/1", "😀", "has no keywords, or is empty", _NEVER),
        ("jieba-tfidf/2", "😀", "is short: only an equal text", _SHORT),
        ("jieba-tfidf/2", "", "has no keywords, or is empty", _NEVER),
        ("jieba-tfidf/2", _RUSSIAN, "by its shingles", None),
        ("jieba-tfidf/2", text(1), None, None),
        ("jieba-tfidf/3", "😀", "is short: only an equal text", _SHORT),
        ("jieba-tfidf/3", " ".join(text(1)), "by its shingles", None),
        ("jieba-tfidf/3", "", "has no keywords, or is empty", _NEVER),
        ("jieba-tfidf/3", text(1), None, None),
    ],
)
def test_how_a_text_is_matched_is_said(
    dupwatch: Command, tmp_path: Path, scheme: str, plain: str, noted: str | None, compared: str | None
) -> None:
    """Unless by its fingerprint: a row of zeros alone means nothing to readers who do not know the scheme."""
    (tmp_path / "text").write_text(plain)
    named = ("--scheme", scheme)
    shown = dupwatch("fingerprint", tmp_path / "text", *named).out.decode()
    assert noted is None or noted in shown
    assert ("This text " in shown) is (noted is not None)
    both = dupwatch("compare", tmp_path / "text", tmp_path / "text", *named).out.decode()
    assert [note for note in (_NEVER, _SHORT) if note in both] == [compared] * (compared is not None)


def test_a_line_of_a_feed_by_pipe(tmp_path: Path) -> None:
    """This is what the message advises."""
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": "a", "body": text(1)}, {"id": "b", "body": text(2)}])
    line = subprocess.run(["sed", "-n", "1p", feed], capture_output=True, check=True).stdout
    shown = json_lines(run_process("fingerprint", "-", "--json", given=line).out)
    assert shown == json_lines(run_process("fingerprint", "-", "--json", given=text(1).encode()).out)
    assert json.loads(line)["id"] == "a"
