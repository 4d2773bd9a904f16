"""Hostile values in Protobuf, with their schema in a registry."""

import base64
import random
from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2

from tests.chaos.kafka.feed_message import EITHER, VERDICT, letter
from tests.chaos.kafka.hostile_avro import framed, framing_cases
from tests.chaos.kafka.hostile_values import Case, Make, ValueFormat, shared_cases
from tests.registry_server import RegistryServer

_BOMB: Final = 0.1
_FIRST: Final = b"\0"
_TEXT, _MESSAGE = 9, 11
_ONE, _MANY = 1, 3
_TITLE, _BODY, _PADDING, _NODE, _NODES, _NAMED, _AT = range(1, 8)


def protobuf_format(registry: RegistryServer) -> ValueFormat:
    """Values in Protobuf, with a schema in this registry."""
    article = registry.add(base64.b64encode(_file().SerializeToString()).decode(), "PROTOBUF")

    @cache
    def known(title: str, body: str, padding: str) -> bytes:
        padded = _field(_PADDING, padding.encode()) if padding else b""
        return framed(article, _FIRST + _field(_TITLE, title.encode()) + _field(_BODY, body.encode()) + padded)

    settings = ("--set", "kafka.value_format=protobuf", "--set", f"registry.url={registry.url}")
    cases = [*shared_cases(known), *framing_cases(registry, "PROTOBUF", article), *_cases(article)]
    return ValueFormat("protobuf", known, settings, cases)


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="article.proto", package="feed", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    article = file.message_type.add(name="Article")
    node = file.message_type.add(name="Node")
    entry = article.nested_type.add(name="NamedEntry")
    entry.options.map_entry = True
    fields: list[tuple[Any, str, int, int, int, str | None]] = [
        (entry, "key", 1, _TEXT, _ONE, None),
        (entry, "value", 2, _MESSAGE, _ONE, ".feed.Node"),
        (node, "next", 1, _MESSAGE, _ONE, ".feed.Node"),
        (article, "title", _TITLE, _TEXT, _ONE, None),
        (article, "body", _BODY, _TEXT, _ONE, None),
        (article, "padding", _PADDING, _TEXT, _ONE, None),
        (article, "node", _NODE, _MESSAGE, _ONE, ".feed.Node"),
        (article, "nodes", _NODES, _MESSAGE, _MANY, ".feed.Node"),
        (article, "named", _NAMED, _MESSAGE, _MANY, ".feed.Article.NamedEntry"),
        (article, "published_at", _AT, _MESSAGE, _ONE, ".google.protobuf.Timestamp"),
    ]
    for message, name, number, kind, label, kind_name in fields:
        message.field.add(name=name, number=number, type=kind, label=label, type_name=kind_name)
    return file


def _varint(number: int) -> bytes:
    written = bytearray()
    left = number & (2**64 - 1)
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


def _field(number: int, data: bytes) -> bytes:
    """A length-delimited field: a string, bytes or a message."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _cases(article: int) -> list[Case]:
    wrong = letter("schema_mismatch")
    body = _field(_BODY, b"a text in Protobuf")

    def of(*payloads: bytes) -> Make:
        values = [framed(article, _FIRST + payload) for payload in payloads]
        return lambda chance: chance.choice(values)

    def indexed(*payloads: bytes) -> Make:
        values = [framed(article, payload + body) for payload in payloads]
        return lambda chance: chance.choice(values)

    def cut(chance: random.Random) -> bytes:
        return framed(article, _FIRST + body[: chance.randrange(1, len(body))])

    def at(seconds: int) -> bytes:
        return body + _field(_AT, b"\x08" + _varint(seconds))

    return [
        Case("protobuf: cut short", wrong, cut),
        Case("protobuf: nothing set", VERDICT, of(b"")),
        Case("protobuf: unknown fields", VERDICT, of(body + _field(1000, b"x" * 100_000), body + b"\xc0\x3e\x01")),
        Case("protobuf: repeated fields", VERDICT, of(body * 1_000, _field(_TITLE, b"t") + body + _field(_BODY, b""))),
        Case(
            "protobuf: other wire types", EITHER, of(b"\x10\x01", b"\x15\0\0\0\0", b"\x13\x14", b"\x14", body + b"\0\0")
        ),
        Case(
            "protobuf: lengths", wrong, of(b"\x12" + _varint(2**31), b"\x12" + b"\xff" * 11, b"\x12" + _varint(2**63))
        ),
        Case("protobuf: not UTF-8", EITHER, of(_field(_BODY, b"\xff\xfe"), _field(_BODY, b"\xed\xa0\x80"))),
        Case("protobuf: NUL", letter("nul_character"), of(_field(_BODY, b"a\0"))),
        Case("protobuf: no such message", wrong, indexed(b"\x02\x0e", b"\x04\0\x0e", b"\x7f", b"\x80" * 6, b"\x01")),
        Case("protobuf: times", VERDICT, of(at(0), at(253402300799), at(-62135596800))),
        Case("protobuf: impossible times", VERDICT, of(at(2**62), at(-(2**63)), at(253402300800))),
        Case("protobuf: nested", EITHER, of(*(body + _field(_NODE, _tower(levels)) for levels in (20, 40, 95, 5_000)))),
        Case("bomb: towers", EITHER, lambda _: framed(article, _FIRST + body + _field(_NODE, _tower(50_000))), _BOMB),
        Case("bomb: empty messages", EITHER, lambda _: framed(article, _FIRST + body + b"\x2a\0" * 1_000_000), _BOMB),
        Case("bomb: entries of a map", EITHER, lambda _: _entries(article, body), _BOMB),
        Case("bomb: one entry again and again", EITHER, of(body + b"\x32\0" * 1_000_000), _BOMB),
        Case("bomb: unknown fields", EITHER, of(body + b"\xc0\x3e\x01" * 500_000), _BOMB),
    ]


@cache
def _tower(levels: int) -> bytes:
    heads: list[bytes] = []
    size = 0
    for _ in range(levels):
        heads.append(b"\x0a" + _varint(size))
        size += len(heads[-1])
    return b"".join(reversed(heads))


@cache
def _entries(article: int, body: bytes) -> bytes:
    return framed(
        article, _FIRST + body + b"".join(_field(_NAMED, b"\x0a\x06%06d" % number) for number in range(300_000))
    )
