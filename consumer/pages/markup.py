"""HTML that text cannot break out of: strings are always escaped, and only ``element`` makes markup."""

from html import escape
from typing import Final, NamedTuple

_VOID: Final = frozenset({"br", "hr", "link", "meta"})


class Html(NamedTuple):
    """Markup made by this module."""

    markup: str


Child = Html | str


def element(name: str, /, *children: Child, **attributes: str | None) -> Html:
    """Return an element. Strings are escaped, attributes of None left out. Names come from the code, never from data.

    Attribute names lose a trailing underscore, and other underscores become hyphens: ``class_``, ``http_equiv``.
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
    """Return these children one after the other."""
    return Html("".join(child.markup if isinstance(child, Html) else escape(child) for child in children))


def style(css: str) -> Html:
    """Return a style element. The style sheet comes from the code and is not escaped."""
    return Html(f"<style>{css}</style>")


def document(root: Html) -> bytes:
    """Return a whole page, encoded."""
    return f"<!doctype html>\n{root.markup}\n".encode()
