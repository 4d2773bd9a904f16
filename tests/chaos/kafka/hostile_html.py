"""Hostile markup, for a topic whose bodies are HTML."""

import random
from collections.abc import Callable
from functools import cache
from typing import Final

from tests.chaos.kafka.feed_message import EITHER, VERDICT
from tests.chaos.kafka.hostile_values import (
    BODY_CHARS_MAX,
    Case,
    ValueFormat,
    json_cases,
    json_value,
    shared_cases,
    words,
)

_BOMB: Final = 0.1


def html_format() -> ValueFormat:
    """Values in JSON, bodies in HTML."""
    settings = ("--set", "source.body_format=html")
    return ValueFormat("html", json_value, settings, [*shared_cases(json_value), *json_cases(), *html_cases()])


def html_cases() -> list[Case]:
    """The cases of HTML."""

    def of(make: Callable[[random.Random], str]) -> Callable[[random.Random], bytes]:
        return lambda chance: json_value("", make(chance))

    def bomb(name: str, start: str, piece: str, end: str = "", chars: int = BODY_CHARS_MAX) -> Case:
        return Case(f"bomb: {name}", EITHER, lambda _: _filled(start, piece, end, chars), _BOMB)

    return [
        Case("html: ordinary", VERDICT, of(lambda chance: f"<p>{words(chance)}</p><script>{words(chance)}</script>")),
        Case("html: broken", EITHER, of(_broken)),
        Case("html: entities", EITHER, of(_entities)),
        Case("html: hidden", VERDICT, of(lambda chance: f"<template>{words(chance)}</template>")),
        Case("html: control characters", EITHER, of(lambda chance: f"<p>\x01\x0b{words(chance, 9)}&#1;&#x85;</p>")),
        Case("bomb: attributes", EITHER, lambda chance: _attributes(chance.choice((19_000, 19_900, 60_000))), _BOMB),
        Case("bomb: names", EITHER, lambda _: _names(), _BOMB),
        bomb("one attribute again and again", "<p ", "a=1 ", ">"),
        bomb("nested", "", "<div>"),
        bomb("nested and closed", "", "<b><i></b>"),
        bomb("formatting that is rebuilt", "", "<a><p>"),
        bomb("tables", "", "<table><tr><td>"),
        bomb("unclosed comment", "<p>a</p><!--", "-!-"),
        bomb("comments", "", "<!---->"),
        bomb("less-than signs", "", "<"),
        bomb("ampersands", "", "&"),
        bomb("entities that expand", "", "&NotEqualTilde;"),
        bomb("ligatures by reference", "", "&#xfdfa;"),
        bomb("one attribute value", '<p title="', "x", '">a</p>'),
        bomb("closing tags", "", "</p>"),
        bomb("raw text", "<textarea>", "</textare>"),
        bomb("doctypes", "", "<!DOCTYPE a [<!ENTITY b 'c'>]>"),
        bomb("processing instructions", "", "<?a b?>"),
        bomb("options", "<select>", "<option>"),
        bomb("line breaks", "", "<br>"),
    ]


def _broken(chance: random.Random) -> str:
    pieces = ["<", ">", "</", "<p", "<!", "<![CDATA[", "]]>", "&", "&#", "&#x110000;", "&lt", '"', "'", "=", "<a b="]
    return "".join(chance.choice([*pieces, f" {words(chance, 2)} "]) for _ in range(chance.randint(1, 200)))


def _entities(chance: random.Random) -> str:
    known = ["&amp;", "&nbsp;", "&#0;", "&#xd800;", "&#x1f680;", "&#99999999999;", "&fjlig;", "&unknown;", "&lt;p&gt;"]
    return " ".join(chance.choice([*known, words(chance, 1)]) for _ in range(100))


@cache
def _filled(start: str, piece: str, end: str, chars: int) -> bytes:
    return json_value("", start + piece * ((chars - len(start) - len(end)) // len(piece)) + end)


@cache
def _attributes(count: int) -> bytes:
    return json_value("", f"<p {' '.join(f'a{number}' for number in range(count))}>a text in a crowded tag</p>")


@cache
def _names() -> bytes:
    return json_value("", "".join(f"<t{number}>" for number in range(50_000)))
