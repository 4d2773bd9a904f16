"""Reads the simple rules of a page's own style sheets.

A rule *hides* elements only if its selector is one compound of a tag, classes and an id, outside of conditions. All
selectors in its list must be valid, because browsers drop the whole rule if one is not. A rule *shows* the elements
that match the last compound of any of its selectors, under any condition except print, because text that some readers
see counts as visible. A compound that is not understood shows every element. All work is bounded. Beyond the limits on
sheets and selectors, no rule hides anything.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from lxml import etree

from consumer.decode.html.html_text import HIDDEN
from consumer.decode.html.style_rules import Effects, effects_of, without_opaque

SHEETS_CHARS_MAX: Final = 262_144
"""If the style sheets of a page have more characters in total, none of them is read."""
SELECTORS_MAX: Final = 5_000
"""If more selectors of a page have to be read, no rule hides anything."""
_SELECTOR_CHARS_MAX: Final = 200
_BRACE: Final = re.compile("([{}])")
_COMPOUND: Final = re.compile("(\\*|[a-z][\\w-]*+)?((?:[.#](?:[\\w-]|\\\\.)++)*+)$", re.IGNORECASE)
_NAME: Final = re.compile("([.#])((?:[\\w-]|\\\\.)++)")
_ESCAPE: Final = re.compile("\\\\(.)")
_CODE: Final = re.compile("\\\\[0-9a-f]", re.IGNORECASE)
"""The beginning of a character escaped by its code point."""
_VALID: Final = re.compile("(?:[\\w\\s.#*>+~-]|\\\\[^0-9a-f\n])*+", re.IGNORECASE)
"""Selectors that every browser understands."""
_NEGATION: Final = re.compile(":not\\([^)]*\\)", re.IGNORECASE)
_LAST_COMPOUND: Final = re.compile("[^\\s>+~]*+$")
_CONDITION: Final = re.compile("\\[[^\\]]*+\\]?|(?<!\\\\):[\\w-]++(?:\\([^)]*+\\)?)?")
_REACTS: Final = re.compile("::|:(?:hover|focus|active|target|before|after|first-l)", re.IGNORECASE)
"""Pseudo-elements, and states that begin with an action of the reader. Selectors with these are ignored."""
_PLAIN: Final = re.compile("[a-z0-9_.#-]*+", re.IGNORECASE)
_SEPARATOR: Final = re.compile("[.#]")
_CLASS_LIKE: Final = re.compile("[.:\\[]")
_TAG_LIKE: Final = re.compile("(?:^|[\\s>+~])[a-z]", re.IGNORECASE)
_SCREENS: Final = frozenset(["", "all", "screen", "only screen", "screen, print", "all, print"])
_PRINTERS: Final = frozenset(["print", "only print"])
_NO_RULES_WITHIN: Final = ("keyframes", "-webkit-keyframes", "-moz-keyframes", "font-", "page", "property", "counter-")
"""Beginnings of the names of at-rules that contain no rules for elements."""


class StyleBlock(NamedTuple):
    """Selectors and their declarations, numbered across all sheets of the page.

    ``everywhere`` is False under a condition, such as the width of a screen. ``layered`` marks a block in a cascade
    layer: any other block may show what it hides.
    """

    number: int
    selectors: str
    declarations: str
    everywhere: bool
    layered: bool


class StyleRule(NamedTuple):
    """The last compound of a selector, the selector's rank in the cascade, and the effects of its declarations.

    ``block`` is the number of its block. A rule that is not ``simple`` may show, but never hides. ``tag`` or ``id`` may
    be ""; a rule without any name matches every element.
    """

    block: int
    tag: str
    id: str
    classes: frozenset[str]
    rank: tuple[int, int, int]
    effects: Effects
    simple: bool
    layered: bool

    @property
    def key(self) -> str:
        """A name that all matching elements have, or ""."""
        return f"#{self.id}" if self.id else min((f".{name}" for name in self.classes), default=self.tag)


def blocks_of_sheets(tree: etree._Element) -> list[StyleBlock]:
    """Return the blocks of a page's style sheets for screens, in order; none if the sheets are too long."""
    left, blocks = SHEETS_CHARS_MAX, list[StyleBlock]()
    for element in tree.iter("style"):
        context = _context(f"@media {element.get('media') or ''}", _Context())
        if not element.text or context is None or not _is_read(element):
            continue
        left -= len(element.text)
        if left < 0:
            return []
        number = blocks[-1].number + 1 if blocks else 0
        blocks += _blocks(without_opaque(element.text), context, number)
    return blocks


def _is_read(sheet: etree._Element) -> bool:
    kind = (sheet.get("type") or "").strip().lower()
    return kind in {"", "text/css"} and all(outer.tag not in HIDDEN for outer in sheet.iterancestors())


def rules_of(
    blocks: Iterable[StyleBlock], names: frozenset[str], is_kept: Callable[[Effects], bool]
) -> list[StyleRule]:
    """Return the rules that may match an element with one of these names, if ``is_kept`` accepts their effects.

    ``names`` are tags, ids and classes in lower case. Returns no rules if the selectors exceed ``SELECTORS_MAX``.
    """
    left = SELECTORS_MAX
    rules: list[StyleRule] = []
    for block in blocks:
        effects: Effects | None = None
        selectors = block.selectors.split(",", left)
        left -= len(selectors)
        if left < 0:
            return []
        is_valid = all(selector.strip() and _VALID.fullmatch(selector) for selector in selectors)
        for selector in selectors:
            if not _may_match(selector, names):
                continue
            effects = effects or effects_of(block.declarations)
            if not is_kept(effects):
                break
            if not _REACTS.search(_NEGATION.sub("", selector)):
                rules.append(_rule(block, selector.strip(), effects, is_valid=is_valid))
    return rules


def _may_match(selector: str, names: frozenset[str]) -> bool:
    """Return whether a selector may match an element with one of these names, by a quick search."""
    last = selector[-_SELECTOR_CHARS_MAX:].split()[-1:]
    return bool(last) and (not _PLAIN.fullmatch(last[0]) or not names.isdisjoint(_SEPARATOR.split(last[0].lower())))


def _rule(block: StyleBlock, selector: str, effects: Effects, *, is_valid: bool) -> StyleRule:
    rank = selector.count("#"), len(_CLASS_LIKE.findall(selector)), len(_TAG_LIKE.findall(selector))
    for_all = StyleRule(block.number, "", "", frozenset(), rank, effects, simple=False, layered=block.layered)
    if len(selector) > _SELECTOR_CHARS_MAX or _CODE.search(selector):
        return for_all
    last = _LAST_COMPOUND.search(selector)
    compound = _COMPOUND.match(_CONDITION.sub("", last.group() if last else ""))
    if compound is None:
        return for_all
    names = [(kind, _ESCAPE.sub("\\1", name)) for kind, name in _NAME.findall(compound.group(2))]
    ids = [name for kind, name in names if kind == "#"]
    tag = (compound.group(1) or "").lower().replace("*", "")
    if len(ids) > 1:
        return for_all
    classes = frozenset(name for kind, name in names if kind == ".")
    simple = block.everywhere and is_valid and compound.group() == selector and bool(tag or names)
    return StyleRule(block.number, tag, ids[0] if ids else "", classes, rank, effects, simple, block.layered)


class _Context(NamedTuple):
    """The context that a brace opens. ``selectors`` is None around blocks; other fields are those of ``StyleBlock``."""

    selectors: str | None = None
    everywhere: bool = True
    layered: bool = False


def _blocks(sheet: str, context: _Context, first: int) -> Iterator[StyleBlock]:
    """Yield the blocks of a sheet, numbered from ``first`` on."""
    around: list[_Context | None] = []
    inside: _Context | None = context
    pieces = _BRACE.split(sheet)
    for number, (text, brace) in enumerate(zip(pieces[::2], pieces[1::2], strict=False), first):
        declarations, _, prelude = text.rpartition(";") if brace == "{" else (text, "", "")
        if declarations and inside is not None and inside.selectors is not None:
            yield StyleBlock(number, inside.selectors, declarations, inside.everywhere, inside.layered)
        if brace == "{":
            around.append(inside)
            inside = _context(prelude.strip(), inside)
        else:
            inside = around.pop() if around else context


def _context(prelude: str, outer: _Context | None) -> _Context | None:
    """Return the context that a brace opens after this text; None if its rules are ignored."""
    if outer is None:
        return None
    if not prelude.startswith("@"):
        # A nested rule depends on the rule around it.
        return outer._replace(selectors=prelude, everywhere=outer.everywhere and outer.selectors is None)
    name, _, condition = prelude[1:].lower().partition(" ")
    if name.startswith(_NO_RULES_WITHIN) or (name == "media" and condition.strip() in _PRINTERS):
        return None
    if name == "layer":
        return outer._replace(layered=True)
    is_for_all = name == "media" and _is_for_screens(condition)
    return outer if is_for_all else outer._replace(everywhere=False)


def _is_for_screens(media: str) -> bool:
    return " ".join(media.lower().split()) in _SCREENS
