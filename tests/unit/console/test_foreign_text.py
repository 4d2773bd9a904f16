"""Whatever people write into a name, a note or a field is shown as text: it makes no markup and controls nothing."""

from typing import Final
from urllib.parse import quote_plus

import pytest
from markupsafe import Markup

from consumer.console.rendering import Rendering, visible_value
from consumer.reviews import audit
from tests.unit.console.serving import Served

HOSTILE: Final = {
    "markup": "<img src=x onerror=alert(1)>",
    "script": "</td></table><script>alert(1)</script>",
    "attribute": "\" autofocus onfocus=alert(1) x='",
    "style": "</style><style>*{display:none}</style>",
    "template": "{{ section.database }}{% raw %}",
    "percent": "%(name)s %s 100%",
    "entity": "&lt;b&gt;",
    "bidi": "\u202eevil\u2066",
    "terminal": "\x1b[31mred\x07\x9b",
    "lines": "one\r\ntwo\u2028three\x0bfour",
    "zero": "\ufeff\u200bzero",
    "private": "\ue000\udbff".encode("utf-16", "ignore").decode("utf-16"),
}
UNSEEN: Final = "\u202e\u2066\x1b\x07\x9b\u2028\x0b\ufeff\u200b\ue000"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_name_is_shown_as_text(console: Served, text: str) -> None:
    """Of others, and on every page of the person themselves."""
    browser = console.signed_in("Wei", "admin")
    console.add(text, "admin")
    check_text(browser.get("/people").text, text)
    own = console.in_session_of(text)
    for path in ("/me", "/people"):
        check_text(own.get(path).text, text)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_the_audit_log_has_is_shown_as_text(console: Served, text: str) -> None:
    """Every field of it: each of them was written by somebody."""
    browser = console.signed_in("Wei", "admin")
    console.database.write(
        lambda c: audit.add_entry(
            c, at_ms=1, person=text, address=text[:64], action=text[:32], subject=text, flag_id=1, why=text
        )
    )
    page = browser.get("/audit").text
    check_text(page, text)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_name_that_was_mistyped_is_shown_as_text(console: Served, text: str) -> None:
    """It stands in the form again, as it was sent."""
    page = console.browser().sign_in(text, "wrong").text
    inside = page.partition("<body>")[2]
    assert "<img" not in inside
    assert "<script>" not in inside
    assert inside.count("<input") == 4
    assert "autofocus" not in inside.replace("&#34; autofocus", "")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_is_searched_for_is_shown_as_text(console: Served, text: str) -> None:
    """And the links of the page carry it on unchanged."""
    browser = console.signed_in("Wei", "admin")
    answer = browser.get(f"/audit?text={quote_plus(text)}&person={quote_plus(text)}")
    assert answer.status == 200
    inside = answer.text.partition("<body>")[2]
    assert "<img" not in inside
    assert "<script>" not in inside
    assert f"text={quote_plus(text.strip().replace(chr(13) + chr(10), chr(10)))}" in inside


def check_text(page: str, text: str) -> None:
    """A page shows a text, and nothing in it does anything."""
    inside = page.partition("<body>")[2]
    assert not set(inside) & set(UNSEEN)
    for markup in ("<img", "<script>", "<style>", "</style>", "onerror=alert(1)>"):
        assert markup not in inside
    assert "sqlite:" not in inside
    for word in (
        "alert(1)",
        "autofocus",
        "display:none",
        "section.database",
        "%(name)s",
        "evil",
        "red",
        "zero",
        "four",
    ):
        assert (word in inside) >= (word in text)


def test_values_of_messages_are_text_as_well() -> None:
    """A name within a sentence does no more than one in a cell."""
    rendering = Rendering()
    for code in ("en", "zh"):
        language = rendering.language(code)
        environment = rendering._environments[language.code]
        shown = environment.from_string('{{ _("Password for %(name)s", name=name) }}').render(name="<b>\u202e%(x)s")
        assert "&lt;b&gt;\ufffd%(x)s" in shown
        assert "<b>" not in shown


def test_what_is_visible_keeps_what_scripts_need() -> None:
    """Line ends, joiners and markup of our own stay."""
    assert visible_value("a\nb\u200dc\td") == "a\nb\u200dc\td"
    assert visible_value("a\x1bb") == "a\ufffdb"
    assert visible_value(Markup("<b>\u202e</b>")) == Markup("<b>\u202e</b>")
    assert visible_value(7) == 7
    assert visible_value("李娜") == "李娜"
