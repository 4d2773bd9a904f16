"""Templates of ordinary sites: each puts the same article between a menu, teasers, comments and notices of its own."""

from collections.abc import Callable, Sequence
from typing import Final

from tests.written_pages import MENU, NOTICES, notice, paragraphs, related

Site = Callable[[str, Sequence[str], str], str]
"""Makes the page of an article from its language, its paragraphs and the markup of its comments."""

_FOOTER: Final = "<footer><p>All rights reserved. Printed on paper, too.</p><a href='/imprint'>Imprint</a></footer>"
_SIGN_UP: Final = (
    "<form class='newsletter'><p>Get our letter every Sunday morning.</p><input type=email><button>Go</button></form>"
)
_SHARE: Final = "<ul class='share'><li><a href='#'>Post</a></li><li><a href='#'>Mail</a></li></ul>"
_ADVERT: Final = "<div class='ad-box'>Advertisement</div>"


def _news(lang: str, texts: Sequence[str], thread: str) -> str:
    return (
        f"<html><head><title>Island news</title></head><body><header class='masthead'>{MENU}</header><main><article>"
        f"<h1>Notes from here</h1><p class='byline'>By our reporter</p>{_SHARE}{paragraphs(texts)}</article>"
        f"{related(lang)}{thread}</main>{_FOOTER}{notice(lang)}</body></html>"
    )


def _weblog(lang: str, texts: Sequence[str], thread: str) -> str:
    half = len(texts) // 2
    return (
        f"<body class='single'><div id='page'><div id='header'><h1><a href='/'>A quiet weblog</a></h1>{MENU}</div>"
        f"<div id='content'><div class='post hentry'><h2 class='entry-title'>What we saw</h2>"
        f"<div class='entry-content'>{paragraphs(texts[:half])}{_ADVERT}{paragraphs(texts[half:])}</div>"
        f"<div class='tags'><a href='#'>sea</a></div></div>{thread}</div>"
        f"<div id='sidebar' class='widget-area'>{_SIGN_UP}{related(lang)}</div></div>{_FOOTER}</body>"
    )


def _portal(lang: str, texts: Sequence[str], thread: str) -> str:
    rows = "".join(f"<div class='text-block'><p>{text}</p></div>" for text in texts)
    return (
        f"<body>{MENU}<div class='page'><div class='row'><div class='col-8'><div class='story__head'><h1>Report</h1>"
        f"<span>Monday</span></div><div class='story__body'>{rows}</div>{thread}</div>"
        f"<aside class='col-4'>{related(lang)}{_SIGN_UP}</aside></div></div>{notice(lang)}{_FOOTER}</body>"
    )


def _tables(lang: str, texts: Sequence[str], thread: str) -> str:
    return (
        f"<body><table><tr><td colspan=2>{MENU}</td></tr><tr><td class='left'>{related(lang)}</td><td>"
        f"<font size=2>{'<br><br>'.join(texts)}</font></td></tr><tr><td colspan=2>{thread}{NOTICES[lang]}</td></tr>"
        "</table></body>"
    )


def _forms(lang: str, texts: Sequence[str], thread: str) -> str:
    return (
        f"<body><form id='aspnetForm' action='x.aspx'><div id='top'>{MENU}</div><div id='main-content'><h1>Page</h1>"
        f"{paragraphs(texts)}</div>{thread}{related(lang)}<input type=hidden name=state value=x></form>{notice(lang)}"
        "</body>"
    )


def _sections(lang: str, texts: Sequence[str], thread: str) -> str:
    third = max(1, len(texts) // 3)
    parts = "".join(
        f"<section><h2>Section</h2>{paragraphs(texts[place : place + third])}</section>"
        for place in range(0, len(texts), third)
    )
    return (
        f"<body>{MENU}<main id='content'><h1>Guide</h1>{parts}</main>{thread}{_SIGN_UP}{_FOOTER}{notice(lang)}</body>"
    )


def _modern(lang: str, texts: Sequence[str], thread: str) -> str:
    rows = "".join(f"<div class='css-1x{place % 3}'>{text}</div>" for place, text in enumerate(texts))
    banner = f"<div style='position:fixed;bottom:0'><p>{NOTICES[lang]}</p><button>OK</button><button>No</button></div>"
    return (
        f"<body><div id='root'><div class='css-a1'>{MENU}</div><div class='css-b2'>"
        f"<div class='css-c3'><h1>Read</h1></div><div class='css-d4'>{rows}</div></div>"
        f"<div class='css-e5'>{thread}</div>{banner}</div></body>"
    )


def _lists(lang: str, texts: Sequence[str], thread: str) -> str:
    return (
        f"<body>{MENU}<article class='howto'><h1>Advice</h1><p>{texts[0]}</p><ol>{paragraphs(texts[1:], 'li')}</ol>"
        f"</article>{thread}{related(lang)}{_FOOTER}{notice(lang)}</body>"
    )


SITES: Final[Sequence[Site]] = (_news, _weblog, _portal, _tables, _forms, _sections, _modern, _lists)
