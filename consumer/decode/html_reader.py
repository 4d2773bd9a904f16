"""Reads HTML into a tree, by one of two revisions.

Revision 1 is what libxml2 makes of the markup. Revision 2 is closer to what a browser shows: end tags without a start
tag break lines (``markup_repair``), readings above words are left out, a line end between two characters of East Asia
is no space, and a body that was escaped twice, or is in a CDATA section, is read as the markup that it was.

A change of what some markup is read as needs a new revision: stores are bound to it.
"""

import re
from collections import Counter
from itertools import islice
from typing import Final

from lxml import etree

from consumer.decode.html_tags import BLOCKS, HIDDEN, INLINE
from consumer.decode.markup import parse_html
from consumer.decode.markup_repair import repaired, without_cdata

_START_TAG: Final = re.compile("<[a-z]", re.ASCII | re.IGNORECASE)
_SHOWN_TAG: Final = re.compile("<(/?)([a-z][a-z0-9]*)(?:\\s[^<>]*+|/)?>", re.ASCII | re.IGNORECASE)
_KNOWN: Final = BLOCKS | INLINE
_PAIRS_MIN: Final = 2
"""A text that shows fewer pairs of tags is about markup, unless one pair is around all of it."""
_READINGS: Final = ("rp", "rt", "rtc")
_READING_ELEMENTS_MAX: Final = 50
"""What has more elements is no reading, but a text behind a tag that was never closed."""
_DROPPED: Final = "DROPPED"
"""No element of HTML has this tag, as the parser writes tags in small letters."""
_WIDE: Final = (
    "\u2e80-\u2fff\u3001-\u312f\u31a0-\u9fff\ua000-\ua4cf\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff9f"
    "\U00016fe0-\U00018cff\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
)
"""Ideographs, kana, bopomofo, Yi and their punctuation, which are written without spaces; Hangul has spaces."""
_NO_LINES: Final = HIDDEN | {"pre", "textarea", "listing", "xmp"}
"""Elements in which a line end is shown as one, or nothing is shown."""
_MAYBE_JOINED: Final = re.compile(
    f"\\n\\s{{0,200}}+(?:</?(?i:{'|'.join(sorted(INLINE))})(?=[\\s/>])[^<>]*+>\\s{{0,200}}+){{0,8}}+(?:[{_WIDE}]|&#)"
)
"""A quick look at markup, bounded so that many line ends in a row are not read again for each of them."""
_PLACE: Final = "\0"
"""Stands between the texts of two places in the tree; no text contains it."""
_LINE: Final = "\1"
"""Stands where a line begins or ends."""
_GAP: Final = re.compile(f"(?<=[{_WIDE}])(?=[\\s{_PLACE}])\\s*+{_PLACE}?\\s*+(?=[{_WIDE}])")
"""What is between two elements next to each other has two places in it, and stays: links in a row are words apart."""


def tree_of(
    markup: str,
    revision: int,
    attributes_max: int,
    values_max: int | None = None,
    parser_type: type[etree.HTMLParser] = etree.HTMLParser,
) -> etree._Element | None:
    """Return the tree of markup by a revision; None where there is nothing in it. Raises as ``parse_html`` does."""

    def parsed(text: str) -> etree._Element | None:
        return parse_html(text, attributes_max, values_max, parser_type)

    if revision == 1:
        return parsed(markup)
    text = repaired(without_cdata(markup))
    tree = parsed(text)
    if tree is not None and (shown := _markup_in(text, tree)):
        text = repaired(without_cdata(shown))
        tree = parsed(text)
    if tree is not None:
        _drop_readings(tree)
        if _MAYBE_JOINED.search(text):
            _join_lines(tree)
    return tree


def _markup_in(markup: str, tree: etree._Element) -> str | None:
    """Return the text of a body without elements if that is markup itself: it was escaped once too often.

    A text about markup has few tags, or elements of its own.
    """
    if "&" not in markup or _START_TAG.search(markup):
        return None
    text = "".join(tree.itertext(etree.Element)).strip()
    opened: Counter[str] = Counter()
    pairs = 0
    tags = [tag for tag in _SHOWN_TAG.finditer(text) if tag[2].lower() in _KNOWN]
    for tag in tags:
        name = tag[2].lower()
        if not tag[1]:
            opened[name] += 1
        elif opened[name]:
            opened[name] -= 1
            pairs += 1
    return text if pairs >= _PAIRS_MIN or (pairs and _encloses(tags, text)) else None


def _encloses(tags: list[re.Match[str]], text: str) -> bool:
    first, last = tags[0], tags[-1]
    return (first.start(), last.end()) == (0, len(text)) and not first[1] and first[2].lower() == last[2].lower()


def _drop_readings(tree: etree._Element) -> None:
    """Take readings, and the brackets around them for browsers without ruby, out of a tree; the text behind stays."""
    found = list(tree.iter(*_READINGS))
    if not found:
        return
    for element in found:
        around = element.getparent()
        if around is not None and around.tag in {"ruby", "rtc"} and _is_reading(element):
            element.tag = _DROPPED
    etree.strip_elements(tree, _DROPPED, with_tail=False)


def _is_reading(element: etree._Element) -> bool:
    inner = list(islice(element.iter(), _READING_ELEMENTS_MAX + 1))
    return len(inner) <= _READING_ELEMENTS_MAX and all(each.tag not in BLOCKS for each in inner)


def _join_lines(tree: etree._Element) -> None:
    """Take line ends between East Asian characters out of a tree, also where tags within a line stand between."""
    places: list[tuple[etree._Element, str]] = []
    texts: list[str] = []
    walk = etree.iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        is_start = event == "start"
        is_line = element.tag in BLOCKS
        if is_start and element.tag in _NO_LINES:
            walk.skip_subtree()
            text = None
        else:
            text = element.text if is_start else element.tail
        if is_line or text:
            places.append((element, "text" if is_start else "tail"))
            texts.append(f"{_LINE if is_line else ''}{text or ''}")
    joined = _GAP.sub(_without_line_end, _PLACE.join(texts))
    for (element, place), before, after in zip(places, texts, joined.split(_PLACE), strict=True):
        if after != before:
            setattr(element, place, after.lstrip(_LINE))


def _without_line_end(gap: re.Match[str]) -> str:
    if "\n" not in gap[0]:
        return gap[0]
    return _PLACE if _PLACE in gap[0] else ""
