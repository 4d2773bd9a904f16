"""Reads the rules of a page's own style sheets, as far as they are simple.

A rule *hides* elements if its selector is one compound of a tag, classes and an id, outside of conditions. A rule
*shows* them by the last compound of any selector, and under any condition but print, since what some readers see is
text. All work is bounded; what lies behind a limit has no effect.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from lxml import etree

from consumer.decode.style_rules import Effects, effects_of

SHEETS_CHARS_MAX: Final = 262_144
"""The style sheets of a page are read up to here, all together."""
SELECTORS_MAX: Final = 5_000
"""This many selectors of a page are read, and as many again for what they show."""
_SELECTOR_CHARS_MAX: Final = 200
_OPAQUE: Final = re.compile(
    "/\\*.*?(?:\\*/|\\Z)|\"(?:[^\"\\\\\n]|\\\\.)*+\"?|'(?:[^'\\\\\n]|\\\\.)*+'?|url\\([^)\"']*+\\)?", re.DOTALL
)
"""Comments, strings and addresses, in which braces and semicolons mean nothing."""
_BRACE: Final = re.compile("([{}])")
_COMPOUND: Final = re.compile("(\\*|[a-z][\\w-]*+)?((?:[.#](?:[\\w-]|\\\\.)++)*+)$", re.IGNORECASE)
_NAME: Final = re.compile("([.#])((?:[\\w-]|\\\\.)++)")
_ESCAPE: Final = re.compile("\\\\(.)")
_LAST_COMPOUND: Final = re.compile("[^\\s>+~]*+$")
_CONDITION: Final = re.compile("\\[[^\\]]*+\\]?|(?<!\\\\):[\\w-]++(?:\\([^)]*+\\)?)?")
_REACTS: Final = re.compile("::|:(?:hover|focus|active|target|checked|before|after|first-l|not)", re.IGNORECASE)
"""What is shown while a reader points at something, or is no element."""
_PLAIN: Final = re.compile("[a-z0-9_.#-]*+")
_SEPARATOR: Final = re.compile("[.#]")
_CLASS_LIKE: Final = re.compile("[.:\\[]")
_TAG_LIKE: Final = re.compile("(?:^|[\\s>+~])[a-z]", re.IGNORECASE)
_SCREENS: Final = frozenset(["", "all", "screen", "only screen", "screen, print", "all, print"])


class Block(NamedTuple):
    """Selectors and their declarations, with the place of both in all sheets of the page.

    ``everywhere`` is False under a condition, such as the width of a screen.
    """

    number: int
    selectors: str
    declarations: str
    everywhere: bool


class Rule(NamedTuple):
    """A selector's last compound, its rank in the cascade, and what its declarations do.

    ``block`` is the number of its block. A rule that is not ``simple`` shows, but never hides. Tag or id may be "".
    """

    block: int
    tag: str
    id: str
    classes: frozenset[str]
    rank: tuple[int, int, int]
    effects: Effects
    simple: bool

    @property
    def key(self) -> str:
        """A name that each element of the rule has."""
        return f"#{self.id}" if self.id else min((f".{name}" for name in self.classes), default=self.tag)


def blocks_of_sheets(tree: etree._Element) -> list[Block]:
    """Return the blocks of a page's style sheets for screens, in their order."""
    texts, left = [], SHEETS_CHARS_MAX
    for element in tree.iter("style"):
        outer = element.getparent()
        if element.text and _is_for_screens(element.get("media") or "") and (outer is None or outer.tag != "noscript"):
            texts.append(element.text[:left])
            left -= len(texts[-1])
    return list(_blocks(_OPAQUE.sub(" ", "\n".join(texts)))) if texts else []


def rules_of(blocks: Iterable[Block], names: frozenset[str], is_kept: Callable[[Effects], bool]) -> Iterator[Rule]:
    """Yield the rules for elements with one of these tags, ids and classes, if ``is_kept`` accepts what they do."""
    left = SELECTORS_MAX
    for block in blocks:
        effects: Effects | None = None
        for selector in block.selectors.split(",", left):
            left -= 1
            if not _may_match(selector, names):
                continue
            effects = effects or effects_of(block.declarations)
            if not is_kept(effects):
                break
            rule = _rule(block, selector[:_SELECTOR_CHARS_MAX].strip(), effects)
            if rule is not None:
                yield rule
        if left <= 0:
            return


def _may_match(selector: str, names: frozenset[str]) -> bool:
    """Return quickly whether a selector may match an element with one of these names."""
    last = selector[-_SELECTOR_CHARS_MAX:].split()[-1:]
    return bool(last) and (not _PLAIN.fullmatch(last[0]) or not names.isdisjoint(_SEPARATOR.split(last[0])))


def _rule(block: Block, selector: str, effects: Effects) -> Rule | None:
    last = _LAST_COMPOUND.search(selector)
    compound = _COMPOUND.match(_CONDITION.sub("", last.group() if last else ""))
    if compound is None or _REACTS.search(selector):
        return None
    names = [(kind, _ESCAPE.sub("\\1", name)) for kind, name in _NAME.findall(compound.group(2))]
    ids = [name for kind, name in names if kind == "#"]
    tag = (compound.group(1) or "").lower().replace("*", "")
    if len(ids) > 1 or not (tag or names):
        return None
    classes = frozenset(name for kind, name in names if kind == ".")
    rank = selector.count("#"), len(_CLASS_LIKE.findall(selector)), len(_TAG_LIKE.findall(selector))
    simple = block.everywhere and compound.group() == selector
    return Rule(block.number, tag, ids[0] if ids else "", classes, rank, effects, simple)


_Context = tuple[str | None, bool] | None
"""What a brace opened: the selectors, or None around blocks, and ``everywhere``; None where nothing is read."""


def _blocks(sheet: str) -> Iterator[Block]:
    around: list[_Context] = []
    inside: _Context = (None, True)
    pieces = _BRACE.split(sheet)
    for number, (text, brace) in enumerate(zip(pieces[::2], pieces[1::2], strict=False)):
        declarations, _, prelude = text.rpartition(";") if brace == "{" else (text, "", "")
        if declarations and inside is not None and inside[0] is not None:
            yield Block(number, inside[0], declarations, inside[1])
        if brace == "{":
            around.append(inside)
            inside = _context(prelude.strip(), inside)
        else:
            inside = around.pop() if around else (None, True)


def _context(prelude: str, outer: _Context) -> _Context:
    if outer is None or outer[0] is not None:
        # Rules within rules are not simple.
        return None
    if not prelude.startswith("@"):
        return prelude, outer[1]
    name, _, condition = prelude[1:].lower().partition(" ")
    if name == "layer":
        return outer
    if name == "media" and "print" not in condition:
        return None, outer[1] and _is_for_screens(condition)
    return (None, False) if name in {"supports", "container"} else None


def _is_for_screens(media: str) -> bool:
    return " ".join(media.lower().split()) in _SCREENS
