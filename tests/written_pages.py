"""Web pages around a text: of odd kinds, which hide the article from careless rules, and ordinary ones of other sites.

A page is the same around every article of its site, but for the comments of its readers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tests.written_prose import prose

Wrap = Callable[[Sequence[str]], str]
"""Makes markup of the paragraphs of an article."""

NAMES: Final = (
    *("sidebar", "comment", "header", "promo", "menu", "share", "footer", "banner", "related", "social", "widget"),
    *("newsletter", "popup", "teaser", "sponsor", "cookie", "extra", "masthead", "recommend", "community", "toolbar"),
    *("pagination", "breadcrumb"),
)
"""Words in names of classes and ids that most sites give to what is around an article."""

NOTICES: Final = {
    "en": "We use small files on your device to remember your choices, to count visits and to show what others read, "
    "also with the help of partners abroad. You can agree, refuse, or choose in detail, and change your mind later.",
    "de": "Wir legen kleine Dateien auf Ihrem Gerät ab, um Ihre Auswahl zu behalten, Besuche zu zählen und zu zeigen, "
    "was andere lesen, auch mit Hilfe von Partnern. Sie können zustimmen, ablehnen oder einzeln wählen.",
    "fr": "Nous déposons de petits fichiers sur votre appareil pour retenir vos choix, compter les visites et montrer "
    "ce que d'autres lisent, aussi avec des partenaires. Vous pouvez accepter, refuser, ou choisir en détail.",
    "ru": "Мы храним на вашем устройстве небольшие файлы, чтобы помнить ваш выбор, считать посещения и показывать, что "
    "читают другие, в том числе с помощью партнёров. Вы можете согласиться, отказаться или выбрать подробно.",
    "zh": "我们在您的设备上保存小文件，用来记住您的选择、统计访问次数并显示别人在读什么，有时借助国外的合作伙伴。"
    "您可以同意、拒绝，或逐项选择，也可以随时在每页底部改变主意。",
    "ja": "当サイトはお使いの端末に小さなファイルを保存し、選択の記憶、訪問数の計測、人気記事の表示に利用します。"
    "海外の提携先も利用します。同意、拒否、個別の選択ができ、あとからいつでも変更できます。",
    "ar": "نحفظ ملفات صغيرة على جهازك لنتذكر اختياراتك ونحصي الزيارات ونعرض ما يقرؤه الآخرون، بمساعدة شركاء في الخارج "
    "أيضا. يمكنك أن توافق أو ترفض أو تختار بالتفصيل، وأن تغير رأيك في أي وقت.",
    "th": "เราเก็บไฟล์ขนาดเล็กไว้ในอุปกรณ์ของคุณ เพื่อจดจำตัวเลือก นับการเข้าชม และแสดงสิ่งที่ผู้อื่นอ่าน โดยมีพันธมิตรในต่างประเทศช่วย "
    "คุณยอมรับ ปฏิเสธ หรือเลือกทีละข้อก็ได้ และเปลี่ยนใจได้ทุกเมื่อที่ท้ายหน้า",
}
_SITE_LINKS: Final = "".join(f"<li><a href='/{number}'>Section {number} of this site</a></li>" for number in range(8))
MENU: Final = f"<nav><ul>{_SITE_LINKS}</ul></nav>"


def paragraphs(texts: Sequence[str], tag: str = "p") -> str:
    """Return each text in an element of its own."""
    return "".join(f"<{tag}>{text}</{tag}>" for text in texts)


def in_element(opening: str, tag: str = "div") -> Wrap:
    """Return what puts paragraphs into an element."""
    return lambda texts: f"{opening}{paragraphs(texts)}</{tag}>"


def by_breaks(opening: str, closing: str) -> Wrap:
    """Return what separates texts by breaks, in an element or in nothing."""
    return lambda texts: opening + "<br><br>".join(texts) + closing


def _sections(texts: Sequence[str]) -> str:
    parts = "".join(
        f"<section><h2>Part {place}</h2>{paragraphs(texts[place : place + 2])}</section>"
        for place in range(0, len(texts), 2)
    )
    return f"<div class='sidebar-layout'>{parts}</div>"


def _definitions(texts: Sequence[str]) -> str:
    return "<dl>" + "".join(f"<dt>Point {place}</dt><dd>{text}</dd>" for place, text in enumerate(texts)) + "</dl>"


def _open_dialog(texts: Sequence[str]) -> str:
    dialog = "<div role=dialog aria-modal=true><p>Choose.</p><button>Yes</button><button>No</button></div>"
    return f"{dialog}<main aria-hidden=true>{paragraphs(texts)}</main>"


ODD: Final[Mapping[str, Wrap]] = {
    **{f"class {name}": in_element(f"<div class='{name}-wrap'>") for name in NAMES[::2]},
    **{f"id {name}": in_element(f"<div id='right-{name}'>") for name in NAMES[1::2]},
    "form": in_element("<form method=post action='./default.aspx' id=form1><div class=promo>", "div></form"),
    "form alone": in_element("<form method=post action='./default.aspx'>", "form"),
    "fieldset": in_element("<form><fieldset>", "fieldset></form"),
    "numbered list": lambda texts: f"<article><h1>Advice</h1><ol>{paragraphs(texts, 'li')}</ol></article>",
    "list": lambda texts: f"<div><ul>{paragraphs(texts, 'li')}</ul></div>",
    "list in a menu": lambda texts: f"<ul class='menu-list'>{paragraphs(texts, 'li')}</ul>",
    "definitions": _definitions,
    "definitions in a form": lambda texts: f"<form>{_definitions(texts)}</form>",
    "breaks in an article": by_breaks("<article>", "</article>"),
    "breaks in the body": by_breaks("", ""),
    "breaks in main": by_breaks("<main>", "</main>"),
    "breaks in a form": by_breaks("<form>", "</form>"),
    "breaks in a named span": by_breaks("<div class=widget><span>", "</span></div>"),
    "main behind a dialog": _open_dialog,
    "hidden until a script runs": in_element("<main hidden>", "main"),
    "aria-hidden wrapper": in_element("<div id=app aria-hidden=true>"),
    "aside": in_element("<aside>", "aside"),
    "named aside": in_element("<aside class=related>", "aside"),
    "nav": in_element("<nav>", "nav"),
    "footer": in_element("<footer>", "footer"),
    "dialog": in_element("<dialog open>", "dialog"),
    "role": in_element("<div role=complementary>"),
    "role of a banner": in_element("<header role=banner>", "header"),
    "three wrappers": in_element("<form><div class=sidebar><aside>", "aside></div></form"),
    "paragraphs in named elements": lambda texts: (
        "<div id=share>" + "".join(f"<div><p>{text}</p></div>" for text in texts) + "</div>"
    ),
    "elements as paragraphs": lambda texts: f"<div class=extra>{paragraphs(texts, 'div')}</div>",
    "sections": _sections,
    "cells": lambda texts: f"<table class=header><tr><td>{paragraphs(texts)}</td></tr></table>",
    "custom elements": in_element("<app-root><page-header><div class=teaser>", "div></page-header></app-root"),
    "quotes": lambda texts: f"<div class=comment><blockquote>{paragraphs(texts)}</blockquote></div>",
    "preformatted": lambda texts: "<aside><pre>" + "\n\n".join(texts) + "</pre></aside>",
    "fading in": lambda texts: f"<style>.reveal{{opacity:0}}</style><div class='reveal'>{paragraphs(texts)}</div>",
    "fading in, named": lambda texts: (
        f"<style>.reveal{{visibility:hidden}}</style><div class='reveal popup'>{paragraphs(texts)}</div>"
    ),
}
"""Articles that stand where most pages have something else, or are made of other elements than most."""


def comments(language: str, chars: int, seed: int, form: int = 0) -> str:
    """Return a thread of about so many characters in one of the forms that sites give it."""
    texts = [" ".join(prose(language, "kitchen" if seed % 2 else "island", 150, seed * 1_000 + n)) for n in range(60)]
    count = next(n for n in range(1, 61) if sum(map(len, texts[:n])) >= chars or n == 60)
    thread = [(f"Reader {seed}-{n}", text) for n, text in enumerate(texts[:count])]
    forms = (
        "<div class='comment'><b>{}</b> <time>Monday</time><p>{}</p><a href='#'>Reply</a></div>",
        "<li class='comment'><cite>{}</cite> <p>{}</p></li>",
        "<article class='comment'><header>{}</header><div>{}</div></article>",
        "<div class='comment'><p>{}</p><p>{}</p></div>",
    )
    items = "".join(forms[form % len(forms)].format(*each) for each in thread)
    opening, closing = ("<ol class='comment-list'>", "</ol>") if form % len(forms) == 1 else ("<div>", "</div>")
    return f"<section id='comments'><h3>Comments</h3>{opening}{items}{closing}</section>"


def related(language: str) -> str:
    """Return teasers of other articles."""
    texts = prose(language, "kitchen", 300, 77)[:3]
    items = "".join(f"<li><a href='/more/{n}'>Another story {n}</a><p>{text}</p></li>" for n, text in enumerate(texts))
    return f"<div class='related'><h3>More</h3><ul>{items}</ul></div>"


def notice(language: str) -> str:
    """Return a notice in an element whose name says nothing."""
    return f"<div id='bottom'><p>{NOTICES[language]}</p></div>"


def long_notice(language: str) -> str:
    """Return a notice that is nearly as long as a short article, in several paragraphs."""
    return f"<div id='bottom'><p>{NOTICES[language]}</p>{paragraphs(prose(language, 'kitchen', 350, 88))}</div>"
