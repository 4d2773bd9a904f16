"""Chinese and English are complete, and each page is in the language that its reader wants."""

import re
from http import HTTPStatus
from typing import Final

import pytest

from consumer.console.faults import PageError
from consumer.console.i18n import CODES, Code, choose_language, read_languages
from tests.unit.console.messages import extracted, translated

_VALUE: Final = re.compile(r"%\(\w+\)[sd]")


def values(text: object) -> list[set[str]]:
    """Return the values that each form of a message has."""
    forms = text if isinstance(text, list | tuple) else [text]
    return [set(_VALUE.findall(str(form))) for form in forms]


def test_messages_are_found() -> None:
    """In the code, in templates, and with forms for one and many."""
    found = {message.id for message in extracted()}
    assert {"Sign out", "Role changed.", ("%(num)s account", "%(num)s accounts")} <= found


def test_every_message_is_translated() -> None:
    """Nobody who reads Chinese gets an English sentence."""
    known = {message.id: message for message in translated("zh")}
    missing = [
        (message.id, message.locations)
        for message in extracted()
        if message.id and not (message.id in known and all(_forms(known[message.id].string)))
    ]
    assert missing == []


def test_no_message_is_stale() -> None:
    """What nobody says any more is taken out; nothing is fuzzy."""
    found = {message.id for message in extracted()}
    catalogue = translated("zh")
    assert [message.id for message in catalogue if message.id and message.id not in found] == []
    assert [message.id for message in catalogue if message.id and message.fuzzy] == []
    assert not catalogue.obsolete


def test_a_translation_has_the_values_of_its_message() -> None:
    """A value that is not given would be a defect that shows in one language only."""
    wrong = [
        message.id
        for message in translated("zh")
        if message.id and any(form != values(message.id)[-1] for form in values(message.string))
    ]
    assert wrong == []


def test_every_message_can_be_filled_in() -> None:
    """A percent sign that stands for nothing is written twice."""
    given = {name: "1" for message in extracted() for name in re.findall(r"%\((\w+)\)", str(message.id))}
    for message in extracted():
        for form in _forms(message.id):
            assert form % given is not None


@pytest.mark.parametrize(
    ("own", "configured", "accept", "expected"),
    [
        (None, None, "", "en"),
        (None, None, "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        (None, None, "en;q=0.5, zh-TW;q=0.8", "zh"),
        (None, None, "fr, de;q=0.9", "en"),
        (None, None, "zh;q=0", "en"),
        (None, None, "zh;q=viel, en", "en"),
        (None, None, ";;,,q=1", "en"),
        (None, "zh", "en", "zh"),
        ("en", "zh", "zh", "en"),
        ("xx", "zh", "en", "zh"),
    ],
)
def test_the_language_is_the_persons_then_the_consoles_then_the_browsers(
    own: str | None, configured: str | None, accept: str, expected: str
) -> None:
    """In this order; English where nothing is known."""
    assert choose_language(own, configured, accept) == expected  # type: ignore[arg-type]  # a setting, as it is


def test_numbers_and_times_are_written_as_in_the_language() -> None:
    """A reader of either language finds what they are used to; times are UTC and say so."""
    languages = read_languages()
    assert set(languages) == set(CODES)
    en, zh = languages["en"], languages["zh"]
    assert en.number(1_234_567) == zh.number(1_234_567) == "1,234,567"
    assert en.decimal(0.5) == "0.50"
    assert en.date_time(1_764_000_000_000) == "24 Nov 2025, 16:00:00 UTC"
    assert zh.date_time(1_764_000_000_000) == "2025年11月24日 16:00:00 UTC"
    assert en.duration(7_200) == "2 hours"
    assert zh.duration(7_200) == "2小时"


def test_an_error_names_a_field_as_its_page_does() -> None:
    """By its label in either language, and a parameter that has none by its name; numbers have separators."""
    message = "“%(field)s” has %(num)s characters; the limit is %(most)s."
    languages = read_languages()

    def said(code: Code, field: str) -> str:
        return PageError(HTTPStatus.BAD_REQUEST, message, field=field, num=12_000, most=300).text(languages[code])

    assert said("en", "original_source").startswith("“Source of the original” has 12,000 characters; the limit is 300")
    assert said("zh", "original_source").startswith("“原文的来源”有 12,000 个字符")
    assert said("en", "at_ms").startswith("“at_ms” has")


@pytest.mark.parametrize(
    ("passed_s", "expected"),
    [
        (0, ("", "")),
        (59.9, ("", "")),
        (-59.9, ("", "")),
        (60, ("1 minute ago", "1分钟前")),
        (4 * 60 + 59, ("4 minutes ago", "4分钟前")),
        (-3_700, ("in 1 hour", "1小时后")),
        (47 * 3_600, ("1 day ago", "1天前")),
        (20 * 86_400, ("2 weeks ago", "2周前")),
        (40 * 86_400, ("1 month ago", "1个月前")),
        (3 * 366 * 86_400, ("3 years ago", "3年前")),
    ],
)
def test_ages_are_whole_units(passed_s: float, expected: tuple[str, str]) -> None:
    """As a person would say it; the first minute is just now."""
    languages = read_languages()
    assert (languages["en"].age(passed_s), languages["zh"].age(passed_s)) == expected


def _forms(text: object) -> list[str]:
    return [str(form) if form else "" for form in (text if isinstance(text, list | tuple) else [text])]
