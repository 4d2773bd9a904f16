"""HTML that cannot be broken out of: a string is text wherever it stands, and only ``element`` makes markup."""

from html import escape
from typing import Final, NamedTuple

_VOID: Final = frozenset({"br", "hr", "link", "meta"})


class Html(NamedTuple):
    """Markup that was made here."""

    markup: str


Child = Html | str


def element(name: str, /, *children: Child, **attributes: str | None) -> Html:
    """An element. Strings are escaped; an attribute of None is left out; names come from the code, never from data.

    A trailing underscore is dropped from an attribute's name and others become hyphens: ``class_``, ``http_equiv``.
    """
    opened = "".join(
        f' {key.removesuffix("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{opened}>")
    return Html(f"<{name}{opened}>{joined(*children).markup}</{name}>")


def joined(*children: Child) -> Html:
    """One after the other."""
    return Html("".join(one.markup if isinstance(one, Html) else escape(one) for one in children))


def style(css: str) -> Html:
    """A style sheet of this program's own: in it nothing is escaped."""
    return Html(f"<style>{css}</style>")


def document(root: Html) -> bytes:
    """A whole page, encoded."""
    return f"<!doctype html>\n{root.markup}\n".encode()
