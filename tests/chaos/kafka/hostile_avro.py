"""Hostile values in Avro, with their schemas in a registry."""

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from tests.chaos.kafka.feed_message import EITHER, VERDICT, letter
from tests.chaos.kafka.hostile_values import Case, Make, ValueFormat, shared_cases, words
from tests.kafka.raw_records import varint
from tests.registry_server import RegistryServer

_BOMB: Final = 0.1
_NONE: Final = "null"
_ARTICLE: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Article",
    "fields": [
        {"name": "title", "type": "string"},
        {"name": "body", "type": [_NONE, "string"]},
        {"name": "padding", "type": "string"},
    ],
}
_LOOSE: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Loose",
    "fields": [
        {"name": "body", "type": [_NONE, "string", "bytes", "double", "boolean", {"type": "array", "items": "int"}]},
        {"name": "published_at", "type": [_NONE, "double", {"type": "long", "logicalType": "timestamp-millis"}]},
    ],
}


def avro_format(registry: RegistryServer) -> ValueFormat:
    """Values in Avro, with schemas in this registry."""
    article = registry.add(json.dumps(_ARTICLE))

    @cache
    def known(title: str, body: str, padding: str) -> bytes:
        return framed(article, avro_text(title) + b"\x02" + avro_text(body) + avro_text(padding))

    settings = ("--set", "kafka.value_format=avro", "--set", f"registry.url={registry.url}")
    cases = [*shared_cases(known), *framing_cases(registry, "AVRO", article), *_payloads(article)]
    return ValueFormat("avro", known, settings, [*cases, *_loose(registry), *_towers(registry), *_bombs(registry)])


def framed(schema_id: int, payload: bytes) -> bytes:
    """A payload behind the header of Confluent's wire format."""
    return b"\0" + schema_id.to_bytes(4, "big", signed=True) + payload


def avro_text(text: str) -> bytes:
    """A string with its length before it."""
    data = text.encode()
    return varint(len(data)) + data


def framing_cases(registry: RegistryServer, kind: str, known: int) -> list[Case]:
    """The cases of the header that both formats share. ``kind`` is the registry's name for this format."""
    other, text = ("PROTOBUF", "AAAA") if kind == "AVRO" else ("AVRO", json.dumps(_ARTICLE))
    foreign = registry.add(text, other, "foreign")
    broken = [
        registry.add(text, kind, "broken") for text in ("{", "[]", '{"type":"nothing"}', '"a.b.C"', "bm90aGluZw==")
    ]

    def garbage(chance: random.Random) -> bytes:
        return framed(chance.choice((known, *broken)), chance.randbytes(chance.randint(0, 300)))

    return [
        Case(
            "framing: no header",
            letter("no_schema_id"),
            lambda chance: chance.choice((b"", b"\0", b"\0\0\0\0", b'{"body":"a"}', b"\x01" + chance.randbytes(20))),
        ),
        Case("framing: no such schema", letter("unknown_schema"), lambda chance: framed(
            chance.choice((0, 10_000, 2**31 - 1, -1, -(2**31))), chance.randbytes(9)
        )),
        Case("framing: a schema of the other format", letter("unusable_schema"), lambda chance: framed(
            foreign, chance.randbytes(9)
        )),
        Case("framing: garbage", EITHER, garbage, 3.0),
    ]  # fmt: skip


def _payloads(article: int) -> list[Case]:
    whole = avro_text("") + b"\x02" + avro_text("a text in Avro") + avro_text("")
    wrong = letter("schema_mismatch")

    def cut(chance: random.Random) -> bytes:
        return framed(article, whole[: chance.randrange(len(whole))])

    def of(*payloads: bytes) -> Make:
        values = [framed(article, payload) for payload in payloads]
        return lambda chance: chance.choice(values)

    return [
        Case("avro: cut short", wrong, cut),
        Case("avro: bytes left over", wrong, of(whole + b"\0", whole + whole)),
        Case("avro: retraction", VERDICT, of(avro_text("") + b"\0" + avro_text(""))),
        Case(
            "avro: lengths", wrong,
            of(*(varint(size) for size in (-1, 2**31, 2**61, 2**62, -(2**63))), b"\xff" * 20, b"\x80" * 9 + b"\x02"),
        ),
        Case("avro: branches", wrong, of(*(b"\0" + varint(branch) + b"\0\0" for branch in (2, -1, 2**40)))),
        Case("avro: not UTF-8", letter("invalid_utf8"), of(avro_text("") + b"\x02\x06\xed\xa0\x80\0", b"\x02\xff\0\0")),
        Case("avro: NUL", letter("nul_character"), of(avro_text("") + b"\x02" + avro_text("a\0") + b"\0")),
    ]  # fmt: skip


def _loose(registry: RegistryServer) -> list[Case]:
    loose = registry.add(json.dumps(_LOOSE), subject="loose")

    def of(*payloads: bytes) -> Make:
        values = [framed(loose, payload) for payload in payloads]
        return lambda chance: chance.choice(values)

    body = b"\x02" + avro_text("a text that says when it was published")
    infinite, nan, large = (
        bytes.fromhex(digits) for digits in ("000000000000f07f", "000000000000f87f", "9c7500883ce4377e")
    )
    return [
        Case(
            "avro: body of another type", letter("body_wrong_type"),
            of(b"\x04\x02a\0", b"\x06" + large + b"\0", b"\x08\x01\0", b"\x0a\0\0", b"\x0a\x02\x02\0\0"),
        ),
        Case(
            "avro: impossible times", VERDICT,
            of(body + b"\x02" + infinite, body + b"\x02" + nan, body + b"\x02" + large,
               body + b"\x04" + varint(2**62), body + b"\x04" + varint(-(2**63))),
        ),
        Case("avro: times", VERDICT, of(body + b"\0", body + b"\x04\0", body + b"\x02" + bytes(8))),
    ]  # fmt: skip


def _towers(registry: RegistryServer) -> list[Case]:
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": [_NONE, "Node"]}]}
    tower = registry.add(json.dumps(node), subject="tower")

    def of(levels: int) -> bytes:
        return framed(tower, b"\x02" * levels + b"\0")

    flat, deep = (of(0), of(20)), (of(40), of(900), of(5_000), of(1_000_000))
    return [
        Case("avro: no body", letter("missing_body"), lambda chance: chance.choice(flat)),
        Case("avro: nested too deep", letter("nested_too_deep"), lambda chance: chance.choice(deep)),
    ]


def _bombs(registry: RegistryServer) -> list[Case]:
    """A few bytes that announce any number of items which take no bytes themselves."""
    empty = {"type": "record", "name": "Empty", "fields": []}
    counts = (10**5, 2**31, 2**61, 2**62)

    def schema(name: str, *fields: object) -> int:
        named = [{"name": f"f{at}", "type": kind} for at, kind in enumerate(fields)]
        body = {"name": "body", "type": "string"}
        return registry.add(json.dumps({"type": "record", "name": name, "fields": [*named, body]}), subject=name)

    def counted(schema_id: int, before: bytes = b"") -> Callable[[random.Random], bytes]:
        return lambda chance: framed(
            schema_id, before + varint(chance.choice(counts)) + b"\0" + avro_text(f"a text after {words(chance, 9)}")
        )

    of_none = schema("OfNone", {"type": "array", "items": _NONE})
    of_empty = schema("OfEmpty", {"type": "array", "items": empty})
    early = schema("Early", [_NONE, {"type": "array", "items": "Empty"}], empty)
    of_fixed = schema("OfFixed", {"type": "array", "items": {"type": "fixed", "name": "Nothing", "size": 0}})
    within = schema("Within", {"type": "array", "items": {"type": "array", "items": _NONE}})
    of_maps = schema("OfMaps", {"type": "map", "values": _NONE})
    blocks = b"\x02" * 500_000
    return [
        Case("avro bomb: nulls", EITHER, counted(of_none), _BOMB),
        Case("avro bomb: empty records", EITHER, counted(of_empty), _BOMB),
        Case("avro bomb: empty records before their definition", EITHER, counted(early, b"\x02"), _BOMB),
        Case("avro bomb: fixed of no bytes", EITHER, counted(of_fixed), _BOMB),
        Case("avro bomb: lists of lists", EITHER, counted(within), _BOMB),
        Case("avro bomb: maps", EITHER, counted(of_maps), _BOMB),
        Case("avro bomb: blocks", EITHER, lambda _: framed(of_none, blocks + b"\0" + avro_text("a text")), _BOMB),
        Case("avro bomb: sizes of blocks", EITHER, lambda _: framed(of_none, b"\x01\0" * 250_000 + b"\0\0"), _BOMB),
    ]
