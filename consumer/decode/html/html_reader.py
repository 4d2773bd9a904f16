"""Reads HTML into a tree or a text, in one of two revisions.

Revision 1 uses libxml2's tree. Revision 2 is closer to a browser:

- End tags without a start tag break lines (``markup_repair``).
- Ruby readings and text that styles hide are left out.
- A line end between two East Asian characters is not a space.
- A body that was escaped twice or wrapped in a CDATA section is read as the original markup.

Any change of the result needs a new revision, because stores are bound to one.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from itertools import islice
from typing import Final, NamedTuple

from lxml import etree

from consumer.decode.html.hidden_text import seen_text
from consumer.decode.html.html_text import BLOCKS, HIDDEN, INLINE, text_of
from consumer.decode.html.markup import parse_html
from consumer.decode.html.markup_repair import repair_markup, without_cdata
from consumer.model.article import READER_REVISION

_START_TAG: Final = re.compile("<[a-z]", re.ASCII | re.IGNORECASE)
_SHOWN_TAG: Final = re.compile("<(/?)([a-z][a-z0-9]*)(?:\\s[^<>]*+|/)?>", re.ASCII | re.IGNORECASE)
_KNOWN: Final = BLOCKS | INLINE | HIDDEN | {"audio", "embed", "img", "object", "picture", "source", "video"}
_PAIRS_MIN: Final = 2
"""A text with fewer pairs of tags is a text about markup, unless it begins and ends with tags."""
_READINGS: Final = ("rp", "rt", "rtc")
_READING_ELEMENTS_MAX: Final = 50
"""An element that has more elements, counting itself, is not a reading, but text after an unclosed tag."""
_WIDE: Final = (
    "\u2e80-\u2fff\u3001-\u312f\u31a0-\u9fff\ua000-\ua4cf\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff9f"
    "\U00016fe0-\U00018cff\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
)
"""Ideographs, kana, bopomofo, Yi and their punctuation, which are written without spaces. Hangul is not included."""
_NO_LINES: Final = HIDDEN | {"pre", "textarea", "listing", "xmp"}
"""Elements that keep line ends, or are hidden."""
_MAYBE_JOINED: Final = re.compile(
    f"\\n\\s{{0,200}}+(?:</?(?i:{'|'.join(sorted(INLINE))})(?=[\\s/>])[^<>]*+>\\s{{0,200}}+){{0,8}}+(?:[{_WIDE}]|&#)"
)
"""Matches markup that may have lines to join. Its repetitions are bounded, so the search takes linear time."""
_PLACE: Final = "\0"
"""Separates the texts of two places in the tree. No text contains it."""
_PLACES_MAX: Final = 10_000
"""The maximum number of places joined at once. Real lines have fewer."""
_GAP: Final = re.compile(f"(?<=[{_WIDE}])(?=[\\s{_PLACE}])\\s*+{_PLACE}?\\s*+(?=[{_WIDE}])")
"""Matches white space between two wide characters, with at most one separator of places.

White space between adjacent elements has two separators and stays, because links in a row are separate words.
"""


def text_of_html(markup: str, attributes_max: int, revision: int = READER_REVISION) -> str:
    """Return the visible text: one line per block, white space collapsed, references decoded; "" for empty markup.

    Scripts, styles, titles, templates, frames and noscript elements are left out. Revision 2 also leaves out text that
    the page's styles hide. Raises ``MarkupTooComplex``.
    """
    tree = tree_of(markup, revision, attributes_max)
    if tree is None:
        return ""
    return text_of(tree) if revision == 1 else seen_text(tree)


def tree_of(
    markup: str,
    revision: int,
    attributes_max: int,
    values_max: int | None = None,
    parser_type: type[etree.HTMLParser] = etree.HTMLParser,
) -> etree._Element | None:
    """Return the tree that a revision reads from markup, or None for empty markup. Raises ``MarkupTooComplex``.

    The other parameters are those of ``parse_html``.
    """

    def parsed(text: str) -> etree._Element | None:
        return parse_html(text, attributes_max, values_max, parser_type)

    if revision == 1:
        return parsed(markup)
    text = repair_markup(without_cdata(markup))
    tree = parsed(text)
    if tree is not None and (shown := _markup_in(text, tree)):
        text = repair_markup(without_cdata(shown))
        tree = parsed(text)
    if tree is not None:
        _drop_readings(tree)
        if _MAYBE_JOINED.search(text):
            _join_lines(tree)
    return tree


def _markup_in(markup: str, tree: etree._Element) -> str | None:
    """Return the markup in a body that was escaped twice, or None.

    Such a body has no elements, but its text has tags. A text about markup has few tags, or elements of its own.
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
    is_within_tags = pairs and (tags[0].start(), tags[-1].end()) == (0, len(text))
    return text if pairs >= _PAIRS_MIN or is_within_tags else None


def _drop_readings(tree: etree._Element) -> None:
    """Remove ruby readings and their fallback brackets from a tree, but keep the text after them."""
    around: dict[etree._Element, set[etree._Element]] = {}
    for element in tree.iter(*_READINGS):
        parent = element.getparent()
        if parent is not None and parent.tag in {"ruby", "rtc"} and _is_reading(element):
            around.setdefault(parent, set()).add(element)
    for parent, readings in around.items():
        _remove(parent, readings)


def _is_reading(element: etree._Element) -> bool:
    inner = list(islice(element.iter(), _READING_ELEMENTS_MAX + 1))
    return len(inner) <= _READING_ELEMENTS_MAX and all(each.tag not in BLOCKS for each in inner)


def _remove(parent: etree._Element, readings: Collection[etree._Element]) -> None:
    """Remove these children, but keep the texts after them.

    The texts after several removed children in a row are joined only once.
    """
    place, texts = _Place(parent, "text"), [parent.text or ""]
    for child in list(parent):
        if child not in readings:
            place.set("".join(texts))
            place, texts = _Place(child, "tail"), []
        texts.append(child.tail or "")
        if child in readings:
            parent.remove(child)
    place.set("".join(texts))


class _Place(NamedTuple):
    """The place of a text in a tree: the ``text`` of an element, or its ``tail``."""

    element: etree._Element
    attribute: str

    def set(self, text: str) -> None:
        """Set the text of this place."""
        setattr(self.element, self.attribute, text)


def _join_lines(tree: etree._Element) -> None:
    """Remove line ends between East Asian characters from a tree, even across inline tags."""
    line: dict[_Place, str] = {}
    walk = etree.iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        if element.tag in BLOCKS or len(line) >= _PLACES_MAX:
            _join(line)
            line = {}
        if event == "start" and element.tag in _NO_LINES:
            walk.skip_subtree()
            continue
        text = element.text if event == "start" else element.tail
        if text:
            line[_Place(element, "text" if event == "start" else "tail")] = text
    _join(line)


def _join(line: Mapping[_Place, str]) -> None:
    """Remove line ends between East Asian characters from the texts of a line."""
    if not line:
        return
    joined = _GAP.sub(_without_line_end, _PLACE.join(line.values()))
    for (place, before), after in zip(line.items(), joined.split(_PLACE), strict=True):
        if after != before:
            place.set(after)


def _without_line_end(gap: re.Match[str]) -> str:
    if "\n" not in gap[0]:
        return gap[0]
    return _PLACE if _PLACE in gap[0] else ""
