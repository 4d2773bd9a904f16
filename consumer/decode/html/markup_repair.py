"""Repairs markup that libxml2 parses differently from a browser.

Only faults that would move or join words are repaired: end tags without a start tag or for another heading, and ruby
readings without an end tag.
"""

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Final

from consumer.decode.html.html_text import BLOCKS, HEADINGS

_CDATA_START: Final = "<![CDATA["
_CDATA_END: Final = "]]>"
_RUBY_PARTS: Final = ("rb", "rp", "rt", "rtc")
_NOT_CLOSING: Final = ("body", "br", "button", "head", "html", "legend", "optgroup", "option", "select", "textarea")
_CLOSING: Final = BLOCKS.difference(_NOT_CLOSING)
"""Elements whose start or end tag ends an open paragraph."""
_RAW: Final = "script|style|textarea|title"
"""Elements whose content is not parsed for tags."""


def _any_of(names: Iterable[str]) -> str:
    """Return a pattern for any of these names, grouped by first letter so that other tags fail fast."""
    letters = groupby(sorted(names), key=lambda name: name[0])
    return "|".join(f"{letter}(?:{'|'.join(name[1:] for name in same)})" for letter, same in letters)


_TAG: Final = re.compile(
    f"<(?:(/?(?:{_any_of({*_CLOSING, *_RUBY_PARTS, 'br', 'ruby'})}))(?=[\\s/>])"
    # Skips a comment, or the content of a raw element, in one step.
    "|!--(?!-?>)[^-]*+(?:-(?!-!?>)[^-]*+)*+"
    f"|({_RAW})(?=[\\s/>])[^<]*+(?:<(?!/\\2[\\s/>])[^<]*+)*+)".encode()
)
_BLOCK_TAGS: Final = frozenset(
    f"{slash}{name}".encode() for name in _CLOSING.difference(["p", *HEADINGS]) for slash in ("", "/")
)
_SUSPECT: Final = re.compile(b"</(?:p|br|h[1-6])[\\s/>]|<r[bpt]")


def without_cdata(markup: str) -> str:
    """Return a body without the CDATA section around it, if any. Such a section is a leftover of the feed's XML."""
    body = markup.strip()
    if not body.startswith(_CDATA_START) or not body.endswith(_CDATA_END):
        return markup
    # Adjacent sections are one text: XML can write "]]>" in a text only by splitting it between two sections.
    return body[len(_CDATA_START) : -len(_CDATA_END)].replace(_CDATA_END + _CDATA_START, "")


def repair_markup(markup: str) -> str:
    """Return markup that libxml2 parses nearly as a browser would parse the original.

    ``</br>`` becomes a line break. So does ``</p>`` without an open paragraph, where browsers create an empty one. The
    end tag of any heading closes the open heading. ``rt`` and similar elements end where the next one begins.
    """
    data = markup.encode()
    # Searching a lower-case copy is faster than ignoring case. Offsets stay the same, because only ASCII changes.
    small = data.lower()
    if not _SUSPECT.search(small):
        return markup
    repair = _Repair()
    pieces: list[bytes] = []
    done = 0
    for tag in _TAG.finditer(small):
        name: bytes | None = tag[1]
        if name in _BLOCK_TAGS:
            repair.open_block = ""
            continue
        if name is None or tag.start() < done:
            continue
        text = repair.repair_for(name.decode())
        if text is None:
            continue
        end = data.find(b">", tag.end()) + 1
        if not end:
            break
        pieces += data[done : tag.start()], text.encode()
        # The repair replaces an end tag, but goes before a start tag.
        done = end if name.startswith(b"/") else tag.start()
    return b"".join([*pieces, data[done:]]).decode() if pieces else markup


class _Repair:
    """The open elements on which repairs depend."""

    def __init__(self) -> None:
        self.open_block = ""
        """The open paragraph or heading. Empty once another block has begun or ended."""
        self._outer_heading = ""
        """The heading directly around the paragraph, if any."""
        self._headings: list[str] = []
        self._ruby_part = ""
        self._in_container = False

    def repair_for(self, tag: str) -> str | None:
        """Return the text to put before a start tag or in place of an end tag, or None if the tag needs no repair."""
        name = tag.removeprefix("/")
        if name in _RUBY_PARTS or name == "ruby":
            return self._of_ruby(tag)
        if name == "br":
            return "<br>" if tag == "/br" else None
        if name == "p":
            return self._of_paragraph(tag)
        within, self.open_block = self.open_block, "" if tag.startswith("/") else tag
        if tag in HEADINGS:
            # A heading ends where another one begins directly in it, or in a paragraph directly in it.
            ended = self._headings.pop() if within in HEADINGS or (within == "p" and self._outer_heading) else None
            self._headings.append(tag)
            return f"</{ended}>" if ended else None
        return self._end_heading(name, within) if self._headings else None

    def _of_paragraph(self, tag: str) -> str | None:
        if tag == "/p":
            if self.open_block != "p":
                return "</p><br>"
            self.open_block = ""
        elif self.open_block != "p":
            self._outer_heading = self.open_block
            self.open_block = "p"
        return None

    def _end_heading(self, name: str, within: str) -> str | None:
        last = self._headings.pop()
        # The last heading may have ended with the element around it. Then libxml2 ignores the heading's end tag.
        ends = f"</{name}>" if last == name else f"</{last}></{name}>"
        if within != last:
            # In libxml2 a block closes the heading around it, and is still open after the heading's end tag.
            return f"{ends}<br>"
        return None if last == name else ends

    def _of_ruby(self, tag: str) -> str | None:
        if tag not in _RUBY_PARTS:
            self._ruby_part = ""
            self._in_container = self._in_container and tag in {"/rb", "/rp", "/rt"}
            return None
        ended = f"</{self._ruby_part}>" if self._ruby_part else ""
        within = self._in_container and tag in {"rp", "rt"}
        if self._in_container and not within:
            ended += "</rtc>"
        self._in_container = within or tag == "rtc"
        self._ruby_part = "" if tag == "rtc" else tag
        return ended or None
