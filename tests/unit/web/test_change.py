"""The line of a change: one line, of bounded length, whatever is in it."""

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from consumer.web.audit_log import ID_CHARS_MAX, LINE_BYTES_MAX, TEXT_CHARS_MAX, ChangeRecord, line_of

AT_MS = 1_795_435_200_000
TEXTS = st.text(st.characters(), max_size=600)


def test_what_a_line_says() -> None:
    """Who, when, from where, what, on which id, with which result and in which request."""
    change = ChangeRecord(
        at_ms=AT_MS,
        token="desk",
        owner="An Na",
        address="10.0.0.7",
        action="articles.release",
        id="a/1",
        result="unique",
        request_id="r-1",
    )
    assert line_of(change) == (
        b'{"schema":"dupwatch.audit/1","at":"2026-11-23T12:00:00.000Z","token":"desk","owner":"An Na",'
        b'"address":"10.0.0.7","action":"articles.release","id":"a/1","result":"unique","request_id":"r-1"}\n'
    )


@given(TEXTS, TEXTS, TEXTS, TEXTS, TEXTS)
def test_a_line_is_one_line(token: str, owner: str, article_id: str, result: str, request_id: str) -> None:
    """For whatever reads it: no control character, and nothing that is not UTF-8. Values come back, cut."""
    change = ChangeRecord(
        at_ms=AT_MS, token=token, owner=owner, address=owner, action=result, id=article_id, result=result,
        request_id=request_id,
    )  # fmt: skip
    line = line_of(change)
    assert line.endswith(b"\n")
    assert len(line) <= LINE_BYTES_MAX
    text = line[:-1].decode()
    assert all(char.isprintable() or unicodedata.category(char) == "Zs" for char in text)
    assert len(text.splitlines()) == 1
    read = json.loads(text)
    for name, value, chars_max in (("token", token, TEXT_CHARS_MAX), ("id", article_id, ID_CHARS_MAX)):
        is_kept = len(value) <= chars_max and not any("\ud800" <= char <= "\udfff" for char in value)
        assert not is_kept or read[name] == value


def test_the_longest_line() -> None:
    """Characters that take twelve bytes each, and some more of them than there may be."""
    text = "\U000e0041" * 1_000
    change = ChangeRecord(
        at_ms=AT_MS, token=text, owner=text, address=text, action=text, id=text, result=text, request_id=text
    )
    line = line_of(change)
    assert LINE_BYTES_MAX // 2 < len(line) <= LINE_BYTES_MAX
    assert json.loads(line)["id"] == text[: ID_CHARS_MAX - 1] + "…"


def test_what_is_not_utf_8() -> None:
    """An argument of a command may have any bytes; it is escaped."""
    line = line_of(ChangeRecord(at_ms=AT_MS, owner="root", action="tokens.add", id="a\udcffb", result="added"))
    assert json.loads(line)["id"] == "a\\udcffb"


def test_what_there_is_not() -> None:
    """On the command line there is no token, no address and no request."""
    read = json.loads(line_of(ChangeRecord(at_ms=AT_MS, owner="root", action="tokens.add", id="desk", result="added")))
    assert (read["token"], read["address"], read["request_id"]) == (None, None, None)
