"""Text that styles hide: what hides it, what shows it again, and what hides too much to count."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.decode.html import element_styles, style_sheets
from consumer.decode.html.hidden_text import hidden_elements, seen_text
from consumer.decode.html.markup import parse_html
from consumer.decode.html.page import read_page
from consumer.model.limits import DecodeLimits

SEEN: Final = "The ferry came in at dawn, two hours late, and nobody on the quay had slept. " * 3
SECRET: Final = "Cheap watches, cheap bags."
LIMITS: Final = DecodeLimits()


def seen(markup: str) -> str:
    """Return the text of a page that is seen."""
    tree = parse_html(markup, 1_000)
    return "" if tree is None else seen_text(tree)


def hides(style: str) -> bool:
    """Return whether declarations hide a text, as the style of an element and in a style sheet, which must agree."""
    inline = seen(f'<p>{SEEN}</p><div style="{style}">{SECRET}</div>')
    by_rule = seen(f"<style>.x{{{style}}}</style><p>{SEEN}</p><div class=x>{SECRET}</div>")
    assert inline == by_rule
    assert SEEN.strip() in inline
    return SECRET not in inline


@pytest.mark.parametrize(
    "style",
    [
        "display:none",
        "Display : None !important",
        "color:red;display:none",
        "visibility:hidden",
        "visibility: collapse",
        "opacity:0",
        "opacity: .0",
        "font-size:0",
        "font-size: 0px",
        "font: 0/0 a",
        "text-indent:-9999px",
        "text-indent: -100em; overflow: hidden",
        "position:absolute; left:-9999px",
        "position: fixed; top: -2000px",
        "margin-left:-9999px",
        "position:absolute;clip:rect(0 0 0 0)",
        "position:absolute;clip:rect(1px, 1px, 1px, 1px)",
        "clip-path: inset(50%)",
        "height:0;overflow:hidden",
        "width:1px; height:1px; overflow:hidden",
        "max-height:0; overflow:hidden",
        "transform: scale(0)",
        "transform: translateX(-9999px)",
    ],
)
def test_a_style_hides(style: str) -> None:
    """By each way that sites and spammers use."""
    assert hides(style)


@pytest.mark.parametrize(
    "style",
    [
        "",
        "display:block",
        "display:none;display:block",
        "visibility:visible",
        "opacity:0.5",
        "opacity:0; animation: appear 1s forwards",
        "font-size:10px",
        "font: bold 10px serif",
        "text-indent:-20px",
        "left:-9999px",
        "position:absolute; left:-20px",
        "height:0",
        "height:10px;overflow:hidden",
        "position:absolute;clip:rect(0 100px 100px 0)",
        "--display:none",
        "background:url(display:none)",
        "color:white;background:white",
        "x-display:none",
    ],
)
def test_a_style_does_not_hide(style: str) -> None:
    """It moves, shrinks or colours a text, or says something else."""
    assert not hides(style)


@pytest.mark.parametrize(
    ("sheet", "is_hidden"),
    [
        (".x{display:none}", True),
        ("#i{display:none}", True),
        ("div.x{display:none}", True),
        ("a , .x.y , b {display:none}", True),
        ("DIV{display:none}", True),
        ("/* } */ .x{display:none}", True),
        ("@import 'a;b{c}'; .x{display:none}", True),
        ("@media screen{.x{display:none}}", True),
        ("@layer base{.x{display:none}}", True),
        ("a{b:c}}}.x{display:none}", True),
        (".x{color:red; .y{opacity:.5} display:none}", True),
        ("@media print{.x{display:none}}", False),
        ("@media (max-width:600px){.x{display:none}}", False),
        ("@supports (a:b){.x{display:none}}", False),
        ("@keyframes x{from{visibility:hidden}}", False),
        ("@font-face{font-family:x;font-size:0}", False),
        ("/*.x{display:none}*/", False),
        ("'.x{display:none}'", False),
        (".z{display:none}", False),
        ("p.x{display:none}", False),
        (".x.z{display:none}", False),
        ("body .x{display:none}", False),
        (".x:hover{display:none}", False),
        (".x[hidden]{display:none}", False),
        (".x::before{display:none}", False),
        ("*{display:none}", False),
        (".a{.x{display:none}}", False),
    ],
)
def test_a_rule_of_a_style_sheet_hides_if_it_is_simple(sheet: str, *, is_hidden: bool) -> None:
    """Tag, classes and id of one element, for every screen."""
    text = seen(f"<style>{sheet}</style><p>{SEEN}</p><div id=i class='x y'>{SECRET}</div>")
    assert (SECRET not in text) == is_hidden


@pytest.mark.parametrize(
    ("rules", "is_hidden"),
    [
        (".x{display:block} .x{display:none}", True),
        (".x{display:none} .x{display:block}", False),
        (".x{display:none} div{display:block}", True),
        (".x{display:none} #i{display:block}", False),
        (".x{display:none!important} #i{display:block}", True),
        (".x{display:none} @media (min-width:700px){.md\\:show{display:block}}", False),
        (".x{display:none} @media print{.x{display:block}}", True),
        (".x{display:none} .page > .x:first-child{display:block}", False),
        (".x{display:none} .x:hover{display:block}", True),
        (".x{display:none} .x.open{display:block}", True),
        (".x{opacity:0} .x{display:block}", True),
    ],
)
def test_a_later_or_stronger_rule_shows(rules: str, *, is_hidden: bool) -> None:
    """Also a conditional one, since some readers see the text."""
    text = seen(f"<style>{rules}</style><p>{SEEN}</p><div id=i class='x md:show'>{SECRET}</div>")
    assert (SECRET not in text) == is_hidden


@pytest.mark.parametrize(
    "rules",
    [
        ".x{display:none} .x:not(#z){display:block}",
        ".x{display:none} .x:not(:hover){display:block}",
        ".x{display:none} :checked ~ .x{display:block}",
        ".x{display:none} :is(.x){display:block}",
        ".x{display:none} [class~=x]{display:block}",
        ".x{display:none} *{display:block!important}",
        ".x{display:none} .\\78{display:block}",
        ".x{display:none} .X{display:block}",
        f".x{{display:none}} {'body ' * 80}.x{{display:block}}",
        ".x{display:none} body{& .x{display:block}}",
        ".x{display:none} @scope (body){.x{display:block}}",
        ".x{display:none} @media not print{.x{display:block}}",
        ".x{display:block} @layer a{.x{display:none}}",
        "@layer a,b; @layer b{.x{display:block}} @layer a{.x{display:none}}",
        ".x{visibility:hidden} .x>*{visibility:visible}",
        ".x{opacity:0} .x{animation:appear 0s forwards}",
        ".x{display:none} .x{all:unset}",
        ".x{display:block;display:none!soon}",
        ".x{--a:(;display:none;)}",
        ".x,{display:none}",
        ".x,:strange{display:none}",
        ".X{display:none}",
    ],
)
def test_what_a_browser_may_show_is_seen(rules: str) -> None:
    """Rules that are read only in part, or that a browser drops, hide no text from us that readers see."""
    assert SECRET in seen(f"<style>{rules}</style><p>{SEEN}</p><div class=x><b>{SECRET}</b></div>")


@pytest.mark.parametrize(
    "sheets",
    [
        "<style type=text/plain>.x{display:none}</style>",
        "<template><style>.x{display:none}</style></template>",
        "<style media=print>} .x{display:none}</style>",
        "<style>.x{display:none}</style><style media='(min-width:0)'>.x{display:block}</style>",
    ],
)
def test_only_style_sheets_for_this_page_hide(sheets: str) -> None:
    """And any that some readers have may show."""
    assert SECRET in seen(f"{sheets}<p>{SEEN}</p><div class=x>{SECRET}</div>")


def test_what_is_longer_than_a_limit_hides_nothing() -> None:
    """What stands behind the limit may show."""
    colours, classes = "color:red;" * 120, " ".join(f"c{number}" for number in range(45))
    assert SECRET in seen(f"<p>{SEEN}</p><div style='display:none;{colours}display:block'>{SECRET}</div>")
    rules = "<style>.x{display:none} .c44{display:block}</style>"
    assert SECRET in seen(f"{rules}<p>{SEEN}</p><div class='x {classes}'>{SECRET}</div>")
    for filling in (
        "/*" + "a" * style_sheets.SHEETS_CHARS_MAX + "*/",
        ".y{display:block}" * style_sheets.SELECTORS_MAX,
    ):
        rules = f"<style>.x{{display:none}} {filling} .x{{display:block}}</style>"
        assert SECRET in seen(f"{rules}<p>{SEEN}</p><div class=x>{SECRET}</div>")


@pytest.mark.parametrize(
    ("hiding", "showing", "is_hidden"),
    [
        ("visibility:hidden", "visibility:visible", False),
        ("font-size:0", "font-size:16px", False),
        ("font-size:0", "font-weight:bold", True),
        ("display:none", "display:block", True),
        ("opacity:0", "opacity:1", True),
    ],
)
def test_what_is_within_may_be_shown_again(hiding: str, showing: str, *, is_hidden: bool) -> None:
    """By styles of elements, and by rules."""
    inner = f"<b class=y>{SECRET}</b>"
    for text in (
        seen(f"<p>{SEEN}</p><div style='{hiding}'><p style='{showing}'>{SECRET}</p></div>"),
        seen(f"<style>.x{{{hiding}}} .y{{{showing}}}</style><p>{SEEN}</p><div class=x><p>{inner}</p></div>"),
    ):
        assert (SECRET not in text) == is_hidden


def test_a_style_of_an_element_is_stronger_than_rules() -> None:
    """Unless they are important."""
    div = f"<div class=x style='display:block'>{SECRET}</div>"
    assert SECRET in seen(f"<style>.x{{display:none}}</style><p>{SEEN}</p>{div}")
    assert SECRET not in seen(f"<style>.x{{display:none!important}}</style><p>{SEEN}</p>{div}")


@pytest.mark.parametrize(
    "page",
    [
        f"<style>.fade{{opacity:0}}</style><div class=fade><p>{SEEN}</p></div><p>{SECRET}</p>",
        f"<style>.fade{{opacity:0}}</style><p class=fade>{SEEN}</p><p class=fade>{SEEN}</p><p>{SECRET}</p>",
        f"<p style='opacity:0;top:1px'>{SEEN}</p><p style='opacity:0;top:2px'>{SEEN}</p><p>{SECRET}</p>",
        f"<style>body{{visibility:hidden}}</style><p>{SEEN}</p><p>{SECRET}</p>",
        f"<body style='opacity:0'><p>{SEEN}</p><p>{SECRET}</p>",
        f"<div style='display:none'><p>{SEEN}</p></div><p>{SECRET}</p>",
        f"<p style='display:none'>{SEEN}</p><p style='display:none'>{SEEN}</p>",
        f"<div hidden>{SEEN}</div>{SECRET}",
    ],
)
def test_a_rule_that_hides_most_of_a_page_does_not_count(page: str) -> None:
    """A script ends it; no text is lost."""
    assert SEEN.strip() in seen(page)
    assert not hidden_elements(parse_html(page, 1_000))


def test_links_are_no_text_that_is_hidden() -> None:
    """A long menu does not hide that a rule hides most of the rest."""
    menu = f"<ul>{'<li><a href=x>Another section of this site</a></li>' * 50}</ul>"
    assert SEEN.strip() in seen(f"<style>.x{{opacity:0}}</style>{menu}<div class=x>{SEEN}</div>")


def test_the_attribute_hides() -> None:
    """As a browser's own style sheet has it, and any style may show what it hides."""
    assert SECRET not in seen(f"<p>{SEEN}</p><div hidden>{SECRET}</div>")
    assert SECRET in seen(f"<p>{SEEN}</p><div hidden style='display:block'>{SECRET}</div>")


def test_hidden_text_is_no_part_of_an_article() -> None:
    """Neither within it nor beside it, and not of a page without an article."""
    article = f"<style>.k{{text-indent:-9999px}}</style><div><p>{SEEN}</p><p class=k>{SECRET}</p><p>{SEEN}</p></div>"
    hidden = f"<div style='visibility:hidden'><p>{SECRET * 8}</p></div>"
    for revision in ("fast/2", "precise/2"):
        assert SECRET not in read_page(f"<body>{article}{hidden}</body>", revision, LIMITS).text
        whole = f"<body>The ferry came in at dawn.<i style='display:none'>{SECRET}</i></body>"
        page = read_page(whole, revision, LIMITS)
        assert (page.extracted, page.text) == ("whole_text", "The ferry came in at dawn.")


def test_an_article_that_fades_in_outweighs_a_notice() -> None:
    """Even where comments are longer, so that what fades in is less than half of the page."""
    thread = "".join(f"<li>Reader {number}<p>{SEEN}</p></li>" for number in range(6))
    article = f"<div class=in><p>{SEEN}</p><p>{SEEN}</p></div>"
    page = f"<style>.in{{opacity:0}}</style>{article}<ol class=comments>{thread}</ol><div><p>{SECRET * 8}</div>"
    assert read_page(page, "fast/2", LIMITS).text == f"{SEEN.strip()}\n{SEEN.strip()}"


def test_style_sheets_for_other_readers_are_not_read() -> None:
    """Those for printers, and those for browsers without scripts."""
    for sheet in ("<style media=print>{}</style>", "<noscript><style>{}</style></noscript>"):
        assert SECRET in seen(f"{sheet.format('.x{display:none}')}<p>{SEEN}</p><div class=x>{SECRET}</div>")


@pytest.mark.parametrize(
    ("module", "limit", "value"),
    [
        (style_sheets, "SHEETS_CHARS_MAX", 40),
        (style_sheets, "SELECTORS_MAX", 3),
        (element_styles, "COMPARISONS_MAX", 2),
    ],
)
def test_what_lies_behind_a_limit_has_no_effect(
    monkeypatch: pytest.MonkeyPatch, module: object, limit: str, value: int
) -> None:
    """Of characters, selectors and comparisons."""
    page = f"<style>{'p.a{opacity:0}' * 3}.x{{display:none}}</style><p class=a>{SEEN}</p><div class=x>{SECRET}</div>"
    assert SECRET not in seen(page)
    monkeypatch.setattr(module, limit, value)
    assert SECRET in seen(page)


@given(st.text(alphabet="{}()<>;:,.#@/*'\"\\ abdiplnoyse0-", max_size=80))
def test_any_style_sheet_is_read(sheet: str) -> None:
    """Nothing is raised, and nothing but the element that rules may hide is missing."""
    text = seen(f"<style>{sheet.replace('</', '')}</style><p>{SEEN}</p><b id=a class='b d'>x</b>")
    assert SEEN.strip() in text
