"""What records cost that were made to cost much: ``python -m benchmarks.hostile``.

Each case is a record of a given length that tries one stage: parsing, HTML, folding, words, figures, names, shingles.
Its processor time, from bytes to fingerprint, is compared with what ordinary text takes for as many characters, or
ordinary markup where the case is markup, by the same engine. docs/contributing/load_tests.md has the figures.
"""

import json
import random
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from consumer.decode.article import FieldMap, decode
from consumer.fingerprint import Engine, Scheme
from consumer.model.article import Article, BodyForm
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits
from consumer.workers.engines import EngineChoice, EngineName, chosen_engine, new_engine
from consumer.workers.word_files import load_lexicon

SAMPLE: Final = Path(__file__).parents[1] / "sample" / "feed.jsonl"
CHARS: Final = 1_000_000
RATIO_MAX: Final = 10.0
"""What no record shall cost more than, as a multiple of an ordinary one of its length."""
_HAN: Final = (0x4E00, 0x9FA5)
_SMALL: Final = "abcdefghijklmnopqrstuvwxyz"

Make = Callable[[int], str]
"""Makes a text of about so many characters."""


class Cost(NamedTuple):
    """Processor time of one record, how many characters it has, and why it was refused, if it was."""

    work_s: float
    chars: int
    refused: str | None

    def ratio(self, ordinary: "Cost") -> float:
        """How many times as much a character as the other."""
        return self.work_s / self.chars / (ordinary.work_s / ordinary.chars)


def again(piece: str) -> Make:
    """The same over and over."""
    return lambda chars: (piece * (chars // len(piece) + 1))[:chars]


def chance(first: int, end: int) -> Make:
    """Characters of a range by chance."""
    return lambda chars: "".join(map(chr, random.Random(first).choices(range(first, end), k=chars)))


def words(letters: str, length: int, between: str = " ") -> Make:
    """Words by chance, so that nearly each is another."""

    def make(chars: int) -> str:
        rng = random.Random(length)
        return between.join("".join(rng.choices(letters, k=length)) for _ in range(chars // (length + len(between))))

    return make


def numbered(form: str, start: str = "") -> Make:
    """A form with another number each time."""
    return lambda chars: start + "".join(form.format(number) for number in range(chars // len(form.format(99_999))))


def behind(start: str, piece: str) -> Make:
    """A beginning, and then the same over and over."""
    return lambda chars: start + again(piece)(chars)


def ordinary(chars: int) -> str:
    """The sample feed, which is Chinese, English and Japanese."""
    bodies = [json.loads(line)["body"] or "" for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    return again("\n".join(bodies))(chars)


def markup(chars: int) -> str:
    """The same as paragraphs with some inline markup."""
    pieces = [
        f'<p class="a">{text[:60]}<b>{text[60:70]}</b><a href="/{place}">{text[70:]}</a></p>\n'
        for place, text in enumerate(ordinary(chars).split("\n"))
        if text
    ]
    return "".join(pieces)[:chars]


@cache
def _known_words() -> tuple[str, ...]:
    known = [word for word in load_lexicon().idf if len(word) > 1]
    random.Random(1).shuffle(known)
    return tuple(known)


@cache
def _halves() -> tuple[str, ...]:
    phrases = [phrase for step in load_lexicon().chinese().steps for phrase in step.phrases]
    random.Random(1).shuffle(phrases)
    return tuple(phrase[:-1] for phrase in phrases)


def styled(sheet: Make, body: str | Make = "<p>x") -> Make:
    """A style sheet, and as many elements."""
    elements = again(body) if isinstance(body, str) else body
    return lambda chars: f"<style>{sheet(chars // 2)}{{display:none}}</style>{elements(chars // 2)}"


TEXTS: Final[Mapping[str, Make]] = {
    "U+FDFA": again("\ufdfa"),
    "U+FDFA and spaces": again("\ufdfa "),
    "U+FDFA, as many as may be": again("\ufdfa\ufdfa\ufdfa" + "中" * 15),
    "squares": again("㌖中"),
    "ellipses": again("…"),
    "ligatures": again("ﬃ"),
    "zero-width": again("\u200b"),
    "zero-width between letters": again("a\u200b"),
    "marks": again("\u0301"),
    "marks of several classes": again("a" + "\u0301\u0323\u05b0" * 40),
    "thirty marks on each": again("中" + "\u0323\u0301\u05b0" * 10),
    "half-width kana": again("ｶﾞ"),
    "jamo": again("\u1112\u1161\u11ab"),
    "mathematical letters": chance(0x1D400, 0x1D7CC),
    "one letter": again("a"),
    "one ideograph": again("中"),
    "ideographs": chance(*_HAN),
    "rare ideographs": chance(0x3400, 0x4DBF),
    "rarest ideographs": chance(0x20000, 0x2A6DF),
    "rare ones among others": again("中\u3400"),
    "all words of the dictionary": lambda chars: "".join(_known_words())[:chars],
    "traditional ideographs": again("氣象臺今天發布通知說"),
    "phrases without their ends": lambda chars: "說" + again("".join(_halves()))(chars),
    "beginnings of phrases": behind("說", "上梁"),
    "phrases that grow": behind("說", "妥瑞症"),
    "traditional ones and kana": again("說說說說說說說說の"),
    "handles": again("@a "),
    "handles with what leads to them": again("转@a"),
    "brackets": again("[a](转)"),
    "links": again("http://"),
    "words of two scripts": again("aбα "),
    "stress": again("а\u0301"),
    "raised digits": again("5²"),
    "separators": again("a . _-"),
    "words of 3": words(_SMALL, 3),
    "words of 6": words(_SMALL, 6),
    "words of 70": words(_SMALL, 70),
    "joined words": words(_SMALL, 4, "-"),
    "dotted words": words(_SMALL, 4, "."),
    "kana": chance(0x30A1, 0x30FA),
    "hangul": chance(0xAC00, 0xD7A3),
    "digits": again("1"),
    "digits with points": again("1."),
    "digits with all that joins them": again("1.2-3/4:5,6"),
    "thousands": again("111,222,333,"),
    "numbers": numbered("{} "),
    "codes": numbered("a{} "),
    "dates": again("1 january 2020 "),
    "Chinese dates": again("2020年1月2日"),
    "numerals": again("一二三"),
    "ordinals": again("第一"),
    "capitals": again("A "),
    "joined capitals": again("A-A-"),
    "names": words("ABCDEFGH", 4),
    "spaces": again(" "),
    "punctuation": again("!"),
    "full-width punctuation": again("，"),
    "emoji": chance(0x1F300, 0x1F6FF),
    "control characters": again("\x01"),
    "Devanagari": again("नमस्ते "),
}
MARKUP: Final[Mapping[str, Make]] = {
    "one tag with attributes": lambda chars: "<p " + numbered("a{} ")(chars) + ">x",
    "attributes with > in them": lambda chars: "<p " + numbered('a{}=">" ')(chars) + ">x",
    "tags with as many attributes as may be": again("<p " + numbered("a{} ")(8_000)[:4_800] + ">"),
    "attributes of html": numbered("<html a{}>"),
    "attributes of body": numbered("<body a{}>"),
    "paragraphs": again("<p>"),
    "deep": behind("<div>" * 2_000, "x"),
    "deep, and ends of nothing": behind("<div>" * 2_000, "</x>"),
    "too deep, and ends of nothing": lambda chars: "<i q='>'>" + again("<div>")(chars // 2) + again("</x>")(chars // 2),
    "ends of nothing": again("</x>"),
    "table rows": behind("<table>", "<tr><td>"),
    "comments": again("<!---->"),
    "comments that never end": again("<!--"),
    "CDATA": again("<![CDATA[x]]>"),
    "references": again("&amp;"),
    "references that are none": again("&foo"),
    "signs": again("<"),
    "scripts": again("<script>a</script>"),
    "a script that never ends": behind("<script>", "</scrip"),
    "quotes": again("<a b='"),
    "line breaks": again("<br>"),
    "different elements": numbered("<a{0}></a{0}>"),
    "ends of paragraphs": again("x</p>"),
    "ends of line breaks": again("x</br>"),
    "ends that never end": again("</br "),
    "ends of other headings": again("<h1>x</h2>"),
    "headings, and ends of others": lambda chars: again("<h1><b>")(chars // 2) + again("</h2>")(chars // 2),
    "readings": behind("<ruby>", "x<rt>a</rt>"),
    "readings in readings": behind("<ruby><rt>" * 1_000, "<rt>x"),
    "readings that never end": again("<ruby>x<rt><b>a"),
    "comments with dashes": again("<!-- - - >"),
    "scripts with signs": behind("</p><script>", "</ <"),
    "markup that was escaped": again("&lt;p&gt;x&lt;/p&gt;"),
    "tags that were escaped": again("&lt;p "),
    "lines of ideographs": again("中\n"),
    "lines of ideographs and spaces": again("中" + " " * 300 + "\n" + " " * 300),
    "lines of elements": again("<b>中</b>\n中"),
    "empty lines": lambda chars: "中" + again("\n")(chars) + "中",
    "lines of tags": lambda chars: "中\n" + again("<b>")(chars) + "中",
}
PAGES: Final[Mapping[str, Make]] = {
    "paragraphs of prose": again("<p>One, two, three, four, five, six, seven.</p>"),
    "prose in a deep place": behind("<div>" * 2_000, "<p>One, two, three, four, five, six.</p>"),
    "prose at every depth": behind("<div><p>One, two, three, four, five, six.</p>" * 2_000, "<p>x"),
    "breaks in cells": again("<table><tr><td>One, two, three,<br>four,<br>five, six.</table>"),
    "links": again('<a href="/">x</a> '),
    "links in lists": again('<ul><li><a href="/">One, two, three</a></ul>'),
    "open links": behind("<a href=x>", "<b>x</b>"),
    "names": numbered('<div class="c{0}" id="i{0}">x</div>'),
    "one long name": lambda chars: '<div class="' + again("comment ad- ")(chars) + '">x</div>',
    "long names": again('<div class="' + "comm com- share" * 50 + '">x</div>'),
    "styles": again('<p style="display' + " " * 300 + '">x</p>'),
    "titles": again("<title>x</title>"),
    "headings": again("<h1>"),
    "headings in headings": behind("<h1><div>" * 1_000, "x"),
    "descriptions": again("<meta property=og:title>"),
    "lists in lists": behind("<ul><li>" * 1_000, "<li>One, two, three, four."),
    "tables in tables": behind("<table><tr><td>" * 600, "<p>One, two, three, four, five, six."),
    "pictures": again("<figure><img src=x><figcaption>One, two, three, four</figcaption></figure>"),
    "quotations": again("<blockquote>One, two, three, four, five, six.</blockquote>"),
    "parts apart": again('<div class="comment">One, two, three, four, five.</div>'),
    "parts apart in parts apart": behind('<div class="comment">' * 1_900, "<p>One, two, three, four."),
    "lines in lines": behind("<span>" * 1_900, "<p>One, two, three, four."),
    "lines in hinted lines": behind('<span class="share">' * 1_900, "<p>One, two, three, four."),
    "dialogs in dialogs": behind("<div role=dialog>" * 1_900, "<p>x</p>"),
    "dialogs with headings": behind("<div role=dialog><input>" * 900, "<h1>x</h1>"),
    "hidden in hidden": behind('<div hidden style="opacity:0;visibility:hidden">' * 1_900, "<p>One, two, three."),
    "hidden and shown": behind('<div style="visibility:hidden"><div style="visibility:visible">' * 900, "<p>x"),
    "rules": styled(numbered(".a{}{{display:none}}")),
    "rules that all match": styled(again(".a{display:none}"), "<p class=a>x"),
    "rules that match in vain": styled(again(".a.c{display:none}"), numbered("<p class='a b{}'>x")),
    "rules that show": styled(behind(".a{visibility:hidden}", "b .a{visibility:visible}"), "<p class=a><b class=a>x"),
    "selectors": styled(again(".a,"), "<p class=a>x"),
    "long selectors": styled(again(".a"), "<p class=a>x"),
    "selectors with conditions": styled(again(".a[b]:c(d) ")),
    "classes of an element": styled(again(".a{opacity:0}"), lambda chars: f"<p class='{numbered('c{} ')(chars)}'>x"),
    "comments in style sheets": styled(again("/*")),
    "strings in style sheets": styled(again("'\"")),
    "addresses in style sheets": styled(again("url(")),
    "open braces": styled(again("{")),
    "closing braces": styled(again("}")),
    "text without braces": styled(again("a;")),
    "rules in conditions": styled(again("@media screen{")),
    "rules in rules": styled(again(".a{b:c;")),
    "declarations": styled(behind(".a{", "display:none;"), "<p class=a>x"),
    "fonts": styled(behind(".a{", "font:"), "<p class=a>x"),
    "spaces in declarations": styled(behind(".a{display", " "), "<p class=a>x"),
    "spaces in rectangles": styled(behind(".a{position:fixed;clip:rect(", "0 "), "<p class=a>x"),
    "spaces in selectors": styled(behind(".a", " "), "<p class=a>x"),
    "escapes in selectors": styled(behind(".", "\\:"), "<p class=a>x"),
}
FORMS: Final[Mapping[str, BodyForm]] = {"HTML": "html/2", "Page": "fast/2", "Page, precise": "precise/2"}
"""How the body of a case is read, by what its name begins with."""
VALUES: Final[Mapping[str, Make]] = {
    "lists": again("[],"),
    "objects": again('{"":{}},'),
    "numbers": again("1,"),
    "long numbers": lambda chars: "1" * (chars - 1) + ",",
    "members": lambda chars: "{" + numbered('"{}":0,')(chars) + '"":0},',
    "members of one name": lambda chars: "{" + again('"a":0,')(chars - chars % 6)[: chars // 6 * 6] + '"":0},',
    "escapes": lambda chars: '"' + again("\\u4e2d")(chars // 6 * 6) + '",',
}


def record(name: str, chars: int) -> tuple[bytes, BodyForm]:
    """The record of a case, and how its body is to be read."""
    if name.startswith("JSON: "):
        inner = VALUES[name.removeprefix("JSON: ")](chars)
        return f'{{"id": "a", "body": "", "x": [{inner[: inner.rindex(",")]}]}}'.encode(), "text"
    kind, _, case = name.partition(": ")
    if kind in FORMS:
        return encoded({**MARKUP, **PAGES}[case](chars)), FORMS[kind]
    return encoded(TEXTS[name](chars)), "text"


def encoded(body: str) -> bytes:
    """An article with this body."""
    return json.dumps({"id": "a", "body": body}, ensure_ascii=False).encode()


def cases() -> list[str]:
    """The names of all cases."""
    pages = [f"{kind}: {name}" for kind in FORMS for name in (MARKUP if kind == "HTML" else (*MARKUP, *PAGES))]
    return [*TEXTS, *pages, *(f"JSON: {name}" for name in VALUES)]


class Bench:
    """Takes the time from bytes to fingerprint, facts among it, with no word known beforehand."""

    def __init__(self, engine: EngineName) -> None:
        self._engine = engine
        self._lexicon = load_lexicon()
        # Tables that are built once a process are not the record's.
        self._fingerprint(Article(id="a", body=ordinary(2_000)))
        self.cost(encoded("中" * 1_000), "html/2")

    def cost(self, data: bytes, body_form: BodyForm) -> Cost:
        """What one record costs."""
        fingerprinter = self._fingerprinter()
        refused = None
        began_s = time.process_time()
        try:
            article = decode(data, FieldMap(), DecodeLimits(), body_form)
        except BadRecord as fault:
            refused = fault.reason
        else:
            fingerprinter.fingerprint([article.body or ""], [article.lang])
        return Cost(time.process_time() - began_s, len(data.decode()), refused)

    def ordinary(self, chars: int, body_form: BodyForm) -> Cost:
        """What ordinary text or markup costs, the cheapest of three."""
        body = ordinary(chars) if body_form == "text" else markup(chars)
        return min(self.cost(encoded(body), body_form) for _ in range(3))

    def _fingerprinter(self) -> Engine:
        return new_engine(self._engine, Scheme(facts=True), self._lexicon, sketched=True, parts=True)

    def _fingerprint(self, article: Article) -> None:
        self._fingerprinter().fingerprint([article.body or ""], [""])


def main(
    chars: Annotated[int, typer.Option(min=1_000, help="Characters of each record.")] = CHARS,
    rounds: Annotated[int, typer.Option(min=1, help="The cheapest of so many counts.")] = 2,
    engine: Annotated[EngineChoice, typer.Option(help="What computes fingerprints.")] = "auto",
) -> None:
    """Print every case with its processor time and its ratio to what is ordinary."""
    chosen = chosen_engine(engine, Scheme(facts=True), load_lexicon())
    typer.echo(f"Engine: {chosen.description}")
    bench = Bench(chosen.name)
    usual = {form: bench.ordinary(chars, form) for form in ("text", *FORMS.values())}
    for form, cost in usual.items():
        typer.echo(f"{cost.work_s:8.3f} s  {1:6.1f}  ordinary {form}")
    worst = 0.0
    for name in cases():
        data, form = record(name, chars)
        cost = min(bench.cost(data, form) for _ in range(rounds))
        ratio = cost.ratio(usual[form])
        worst = max(worst, ratio)
        typer.echo(f"{cost.work_s:8.3f} s  {ratio:6.1f}  {name}{f': {cost.refused}' if cost.refused else ''}")
    typer.echo(f"The most: {worst:.1f} times; the bound is {RATIO_MAX:.0f}.")


if __name__ == "__main__":
    typer.run(main)
