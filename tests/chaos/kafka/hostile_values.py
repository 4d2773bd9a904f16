"""Hostile values: those that every format can carry, and those of JSON.

Each case states the answer to its values. For bombs it accepts a verdict as well as a dead letter: which of the two
depends on limits that may change, but there must be exactly one, at a bounded cost.
"""

import json
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, NamedTuple

from tests.chaos.kafka.feed_message import EITHER, VERDICT, Expected, letter

Make = Callable[[random.Random], bytes]
Write = Callable[[str, str, str], bytes]
"""Encodes a title, a body and ASCII padding; the padding goes into a member that is not mapped to any field."""

RECORD_BYTES_MAX: Final = 8 << 20
LARGE_BYTES: Final = RECORD_BYTES_MAX - (64 << 10)
"""The size of a value that stays within the limit, which key and headers count towards too."""
BODY_CHARS_MAX: Final = 1_000_000
_LARGE: Final = 0.15
"""The weight of a case with values of megabytes, or with much work to do."""
_VARIANTS: Final = 3
"""How many different large values a case has: a feed keeps everything it has sent in memory."""


class Case(NamedTuple):
    """One kind of hostile value."""

    name: str
    expected: Expected
    make: Make
    weight: float = 1.0


class ValueFormat(NamedTuple):
    """A format of values: how to encode them, the settings to read them with, and the hostile cases."""

    name: str
    write: Write
    settings: tuple[str, ...]
    cases: Sequence[Case]


def words(chance: random.Random, count: int = 40) -> str:
    """A text that shares nothing with any other text."""
    return " ".join(f"x{chance.randrange(16**7):07x}q" for _ in range(count))


def sized(write: Write, size: int, padding: str) -> bytes:
    """A value of exactly ``size`` bytes, padded by repeating ``padding``."""
    body, missing = "a text that was padded to the size of its record " * 3, size
    for _ in range(3):
        value = write("", body, (padding * (missing // len(padding) + 1))[:missing])
        missing += size - len(value)
        if len(value) == size:
            break
    return value


def shared_cases(write: Write) -> list[Case]:
    """The cases of every format: texts and sizes."""
    return [*_texts(write), *_sizes(write)]


def _texts(write: Write) -> list[Case]:
    def of(make: Callable[[random.Random], str]) -> Make:
        return lambda chance: write("", make(chance), "")

    def one_of(*bodies: str) -> Make:
        values = tuple(write("", body, "") for body in bodies)
        return lambda chance: chance.choice(values)

    return [
        Case("text: empty", VERDICT, one_of("", " ", "\u3000\u200b\ufeff", "。。。")),
        Case("text: no keywords", VERDICT, of(lambda chance: "".join(chance.choices("のはがを하고привет", k=300)))),
        Case("text: invisible characters", VERDICT, of(_with_invisible)),
        Case("text: short", VERDICT, of(lambda chance: words(chance, chance.randint(1, 7)))),
        Case("text: ligatures that expand", VERDICT, of(lambda chance: "\ufdfa" * chance.randint(1, 300))),
        Case("text: combining characters", VERDICT, of(lambda chance: "a" + "\u0301\u0316" * chance.randint(1, 500))),
        Case("text: one word", VERDICT, of(lambda chance: words(chance, 1) * chance.randint(1, 300))),
        Case("text: astral plane", VERDICT, of(lambda chance: "".join(chance.choices("𝒳👩‍🚀𠮷🏴", k=200)))),
        Case("text: digits", VERDICT, of(lambda chance: " ".join(str(chance.random()) for _ in range(200)))),
        Case("bomb: ligatures", EITHER, _large(write, "\ufdfa"), _LARGE),
        Case("bomb: combining characters", EITHER, _large(write, "\u0344"), _LARGE),
        Case("bomb: unordered combining characters", EITHER, _large(write, "\u0301\u0316"), _LARGE),
        Case("bomb: one letter", EITHER, _large(write, "a"), _LARGE),
        Case("bomb: one character and spaces", EITHER, _large(write, "港 "), _LARGE),
        Case("bomb: punctuation", EITHER, _large(write, ".-"), _LARGE),
        Case("bomb: different words", EITHER, lambda chance: _many_words(write, chance.randrange(_VARIANTS)), _LARGE),
        Case("text: too long", letter("body_too_long"), lambda _: _repeated(write, "b", BODY_CHARS_MAX + 1), _LARGE),
    ]


def _sizes(write: Write) -> list[Case]:
    def of(size: int, padding: str = "p") -> Make:
        return lambda _: _sized(write, size, padding)

    return [
        *(Case(f"size: {kib} KiB", VERDICT, of(kib << 10), 0.5) for kib in (1, 16, 64, 65)),
        *(Case(f"size: {mib} MiB", VERDICT, of(mib << 20), _LARGE) for mib in (1, 4)),
        Case("size: 8 MiB", VERDICT, of(LARGE_BYTES), _LARGE),
        Case("size: 8 MiB that do not shrink", VERDICT, lambda chance: _dense(write, chance.randrange(2)), _LARGE / 3),
        Case("size: 8 MiB and a byte", letter("record_too_long"), of(RECORD_BYTES_MAX + 1), _LARGE),
    ]


def _with_invisible(chance: random.Random) -> str:
    hidden = ["\u200b", "\u00ad", "\u202e", "\u2066", "\x7f", "\x85", "\ufeff", "\u2028", "\ufffe", "\U000e0041"]
    return "".join(letter_ + chance.choice(hidden) for letter_ in words(chance, 10))


def _large(write: Write, piece: str) -> Make:
    """Bodies up to the limit that repeat one piece."""
    lengths = (100_000, 400_000, BODY_CHARS_MAX)
    return lambda chance: _repeated(write, piece, chance.choice(lengths))


@cache
def _repeated(write: Write, piece: str, chars: int) -> bytes:
    return write("", (piece * (chars // len(piece) + 1))[:chars], "")


@cache
def _sized(write: Write, size: int, padding: str) -> bytes:
    return sized(write, size, padding)


@cache
def _dense(write: Write, variant: int) -> bytes:
    return sized(write, LARGE_BYTES, random.Random(f"dense {variant}").randbytes(RECORD_BYTES_MAX // 2).hex())


@cache
def _many_words(write: Write, variant: int) -> bytes:
    return write("", words(random.Random(f"words {variant}"), 80_000), "")


def json_value(title: str, body: str, padding: str = "") -> bytes:
    """An article in JSON."""
    return json.dumps({"title": title, "body": body, **({"padding": padding} if padding else {})}).encode()


def json_format() -> ValueFormat:
    """Values in JSON, bodies in plain text."""
    return ValueFormat("json", json_value, (), [*shared_cases(json_value), *json_cases()])


def json_cases() -> list[Case]:
    """The cases of JSON."""
    return [*_syntax(), *_numbers(), *_types(), *_times(), *_nesting()]


def _fixed(name: str, expected: Expected, *values: bytes, weight: float = 1.0) -> Case:
    return Case(f"json: {name}", expected, lambda chance: chance.choice(values), weight)


def _syntax() -> list[Case]:
    body = b'{"body":"a"'
    return [
        _fixed("empty", letter("invalid_json"), b"", b" \n", b"\t"),
        _fixed(
            "broken", letter("invalid_json"), b"{", b'{"body":', body, body + b",}", body + b"} x", body + b"}{}",
            b"{'body':'a'}", b'{"body":"a\0"}', b'{"body":"a\x01"}', b'{"body":"\\x41"}', b'{"body":NaN}',
            body + b',"x":-Infinity}', b'{"body":01}', b"{body:1}",
        ),
        _fixed("byte order mark", VERDICT, b"\xef\xbb\xbf" + json_value("", "a text behind a byte order mark")),
        _fixed(
            "not UTF-8", letter("invalid_utf8"),
            b"\x1f\x8b\x08\0\0", b"\xff\xfe{\0}\0", '{"body":"café"}'.encode("latin-1"),
            body + b',"x":"\xed\xa0\x80"}', body + b',"x":"\xf4\x90\x80\x80"}', body + b',"x":"\xc0\xaf"}',
            '{"body":"港口"}'.encode("gbk"),
        ),
        _fixed(
            "lone surrogate", letter("lone_surrogate"), b'{"body":"\\ud83d"}', body + b',"\\udc00":1}',
            body + b',"x":"\\udc00\\ud83d"}',
        ),
        _fixed("surrogate pairs", VERDICT, b'{"body":"\\ud83d\\ude80 \\ud840\\udfb7 a text in escapes"}'),
        _fixed(
            "repeated names", VERDICT, b'{"body":"b","body":"a text that stands twice","":"","":1}',
            b'{"title":"a","body":"one of two titles","title":"b"}',
        ),
        _fixed(
            "NUL", letter("nul_character"), b'{"body":"a\\u0000"}', body + b',"title":"\\u0000"}',
            body + b',"url":"http://a/\\u0000"}',
        ),
        Case("json: many members", VERDICT, lambda chance: _members(chance.choice((100, 5_000, 50_000))), 0.3),
    ]  # fmt: skip


def _numbers() -> list[Case]:
    body = b'{"body":"a text beside a number","n":'
    return [
        _fixed(
            "numbers that fit", VERDICT, *(body + number + b"}" for number in (
                b"-0.0", b"1E-999", b"9" * 400, b"-" + b"9" * 30, b"0." + b"1" * 100_000, b"18446744073709551616",
                b"-9223372036854775809",
            )),
        ),
        _fixed(
            "numbers that do not fit", letter("number_out_of_range"),
            *(body + number + b"}" for number in (b"1e400", b"-1e400", b"9" * 5_000, b"1e" + b"1" * 100)),
        ),
    ]  # fmt: skip


def _types() -> list[Case]:
    other = (b"17", b"1.5", b"true", b"[]", b'["a"]', b"{}", b'{"a":{}}')
    texts = (b"title", b"source", b"url", b"lang")
    return [
        _fixed("not an object", letter("not_an_object"), b"null", b"[]", b'"a"', b"1", b"true", b'[{"body":"a"}]'),
        _fixed("no body", letter("missing_body"), b"{}", b'{"BODY":"a"}', b'{"body ":"a"}', b'{"a":{"body":"a"}}'),
        _fixed("body of another type", letter("body_wrong_type"), *(b'{"body":%b}' % value for value in other)),
        _fixed(
            "field of another type", letter("field_wrong_type"),
            *(b'{"body":"a","%b":%b}' % (name, value) for name in texts for value in other),
        ),
        _fixed(
            "field too long", letter("field_too_long"),
            *(b'{"body":"a","%b":"%b"}' % (name, b"t" * size)
              for name, size in ((b"title", 4097), (b"source", 513), (b"url", 8193), (b"lang", 65))),
        ),
        _fixed("id of another type", letter("id_wrong_type"), b'{"id":1.5,"body":"a"}', b'{"id":[],"body":"a"}'),
        _fixed("another id", letter("key_contradicts_id"), b'{"id":"other","body":"a"}', b'{"id":17,"body":"a"}'),
        _fixed("id too long", letter("id_too_long"), b'{"id":"%b","body":"a"}' % (b"i" * 513)),
        _fixed("NUL in the id", letter("nul_character"), b'{"id":"a\\u0000","body":"a"}'),
        _fixed("empty id", VERDICT, b'{"id":"","body":"a text under an empty id"}', b'{"id":null,"body":"and none"}'),
        _fixed("retraction", VERDICT, b'{"body":null}', b'{"body":null,"title":"gone"}'),
    ]  # fmt: skip


def _times() -> list[Case]:
    def at(*times: bytes) -> tuple[bytes, ...]:
        return tuple(b'{"body":"a text that says when it was published","published_at":%b}' % time for time in times)

    return [
        _fixed("times", VERDICT, *at(b"0", b"-62135596800", b"253402300799", b"null", b'"0001-01-01T00:00:00Z"')),
        _fixed(
            "impossible times", VERDICT,
            *at(b"1e300", b"-1e300", b"9" * 400, b"1700000000000", b'"yesterday"', b'""', b'"2026-01-01"',
                b'"2026-13-41T00:00:00Z"', b'"0000-01-01T00:00:00Z"', b'"2026-01-01T00:00:00"', b'"%b"' % (b"9" * 999)),
        ),
        _fixed("times of another type", VERDICT, *at(b"true", b"[]", b'{"$date":1}')),
        _fixed("times out of range", letter("number_out_of_range"), *at(b"1e400", b"9" * 5_000)),
    ]  # fmt: skip


def _nesting() -> list[Case]:
    def nested(opened: bytes, closed: bytes, levels: int) -> bytes:
        return b'{"body":"a text beside a tower","x":' + opened * levels + b"1" + closed * levels + b"}"

    return [
        _fixed("nested", VERDICT, nested(b"[", b"]", 31), nested(b'{"a":', b"}", 31)),
        _fixed(
            "nested too deep", letter("nested_too_deep"),
            nested(b"[", b"]", 32), nested(b'{"a":', b"}", 32), nested(b"[", b"]", 900), nested(b"[", b"]", 20_000),
            b"[" * 100_000, b'{"a":' * 100_000, b'[{"a":' * 50_000,
        ),
        _fixed("wide", VERDICT, b'{"body":"a text beside a list","x":[%b]}' % b",".join([b"[]"] * 100_000), weight=0.3),
    ]  # fmt: skip


@cache
def _members(count: int) -> bytes:
    return json.dumps(
        {"body": "a text among many members", **{f"m{number}": number for number in range(count)}}
    ).encode()
