"""Computes how styles hide or show the elements of a page: a cascade of simple rules and ``style`` attributes."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from lxml import etree

from consumer.decode.html.style_rules import (
    NO_EFFECTS,
    Effect,
    Effects,
    HidingProperty,
    effects_of,
    hides_or_fixes,
    may_hide,
    without_opaque,
)
from consumer.decode.html.style_sheets import StyleBlock, StyleRule, blocks_of_sheets, rules_of

COMPARISONS_MAX: Final = 200_000
"""The maximum number of comparisons of names with rules. Elements with equal names are compared once."""
REVERSIBLE_WAYS: Final = frozenset[HidingProperty](["visibility", "font-size"])
"""Ways of hiding that an inner element can undo."""
_STYLE_CHARS_MAX: Final = 1_000
"""A longer ``style`` attribute is ignored."""
_CLASSES_MAX: Final = 40
"""Elements with more classes are never hidden by rules."""
_WORDS: Final[Mapping[HidingProperty, str]] = {
    "display": "display",
    "visibility": "visibility",
    "opacity": "opacity",
    "font-size": "font",
    "place": "left|top|right|bottom|height|width|clip|overflow|position|transform|indent",
}
"""A pattern for each way of hiding.

Every declaration that affects the way matches it, except ``all`` and animations.
"""
_Names = tuple[str, str | None, str | None]
"""Tag, id and class."""


class HidingStyle(NamedTuple):
    """A way in which an element is hidden, and the number of the block that hides it, or None for its own style."""

    way: HidingProperty
    block: int | None


class ElementStyle(NamedTuple):
    """The effect of styles on an element: how they hide it, how they show it, and whether its position is fixed."""

    hidden: tuple[HidingStyle, ...] = ()
    shown: frozenset[HidingProperty] = frozenset()
    fixed: bool = False


_NOTHING: Final = ElementStyle()


def styles_of(tree: etree._Element) -> dict[etree._Element, ElementStyle]:
    """Return the elements of a page that styles affect, with the effect of the styles.

    ``shown`` is complete only for elements that rules hide, and for all elements within an element that a rule hides in
    one of ``REVERSIBLE_WAYS``.
    """
    attributes = {element: text for element in tree.iter() if (text := element.get("style"))}
    own = {element: effects_of(without_opaque(text)) for element, text in attributes.items() if _is_read(text)}
    styles = {element: style for element, effects in own.items() if (style := _style({}, effects)) != _NOTHING}
    blocks = blocks_of_sheets(tree)
    may_match = [block for block in blocks if may_hide(block.declarations)]
    if not may_match:
        return styles
    names = _names_of(tree.iter())
    rules = rules_of(may_match, _words_of(names), hides_or_fixes)
    hiding = _matches((rule for rule in rules if rule.simple), names)
    affected = _affected_elements(names, hiding)
    ways = frozenset(way for found in hiding.values() for way in _ways(found))
    showing = _matches(_rules_about(ways, blocks, affected), affected)
    decided = {each: _cascade(found) for each, found in showing.items()}
    fixed = {each for each, found in hiding.items() if any(rule.effects.fixed for rule in found)}
    for element, each in affected.items():
        style = _style(decided.get(each, {}), own.get(element, NO_EFFECTS))
        if each in fixed:
            style = style._replace(fixed=True)
        if style != _NOTHING:
            styles[element] = style
    return styles


def _is_read(style: str) -> bool:
    return len(style) <= _STYLE_CHARS_MAX


def _names_of(elements: Iterable[etree._Element]) -> dict[etree._Element, _Names]:
    return {element: (element.tag, element.get("id"), element.get("class")) for element in elements}


def _words_of(names: Mapping[etree._Element, _Names]) -> frozenset[str]:
    """Return all tags, ids and classes in lower case."""
    found: set[str] = set()
    for tag, id_, class_ in set(names.values()):
        found.update(name.lower() for name in (tag, id_ or "", *(class_ or "").split()))
    return frozenset(found)


def _ways(rules: Iterable[StyleRule]) -> frozenset[HidingProperty]:
    """Return the ways in which any of these rules hide."""
    return frozenset(effect.way for rule in rules for effect in rule.effects.ways if effect.hides)


def _affected_elements(
    names: Mapping[etree._Element, _Names], hiding: Mapping[_Names, tuple[StyleRule, ...]]
) -> dict[etree._Element, _Names]:
    """Return the elements that rules hide, and the elements within them that may be visible nevertheless."""
    reversible = {each for each, rules in hiding.items() if not REVERSIBLE_WAYS.isdisjoint(_ways(rules))}
    found: dict[etree._Element, _Names] = {}
    within: set[etree._Element] = set()
    for element, each in names.items():
        if each in hiding:
            found[element] = each
        # Elements within such an element are included already.
        if each in reversible and element not in within:
            within.update(element.iter())
    return found | {element: names[element] for element in within}


def _rules_about(
    ways: Collection[HidingProperty], blocks: Iterable[StyleBlock], names: Mapping[etree._Element, _Names]
) -> list[StyleRule]:
    """Return the rules for elements with these names that hide or show in one of these ways."""
    words = re.compile("|".join([*(_WORDS[way] for way in sorted(ways)), "animation", "all\\s*:"]), re.IGNORECASE)
    read = (block for block in blocks if words.search(block.declarations))
    return rules_of(read, _words_of(names), lambda effects: any(effect.way in ways for effect in effects.ways))


def _matches(rules: Iterable[StyleRule], names: Mapping[etree._Element, _Names]) -> dict[_Names, tuple[StyleRule, ...]]:
    """Return the names that match the last compound of any rule, with the matching rules.

    After ``COMPARISONS_MAX`` comparisons, names that come later in the page are left out.

    Browsers ignore case in pages without a doctype. So a rule that matches only if case is ignored may show an element,
    but never hides one.
    """
    by_key: defaultdict[str, list[StyleRule]] = defaultdict(list)
    for rule in rules:
        by_key[rule.key.lower()].append(rule)
    left = COMPARISONS_MAX
    found: dict[_Names, tuple[StyleRule, ...]] = {}
    for each in dict.fromkeys(names.values()) if by_key else ():
        tag, id_, class_ = each
        classes = frozenset((class_ or "").split(None, _CLASSES_MAX + 1))
        if len(classes) > _CLASSES_MAX:
            continue
        keys = ("", tag, f"#{id_}", *sorted(f".{name}" for name in classes))
        maybe = [rule for key in dict.fromkeys(key.lower() for key in keys) for rule in by_key.get(key, ())]
        left -= len(maybe)
        if left < 0:
            break
        matching = tuple(filter(None, (_match(rule, tag, id_ or "", classes) for rule in maybe)))
        if matching:
            found[each] = matching
    return found


def _match(rule: StyleRule, tag: str, id_: str, classes: frozenset[str]) -> StyleRule | None:
    """Return the rule if it matches these names, or else None. A match that ignores case is not ``simple``."""
    if rule.tag in {"", tag} and rule.id in {"", id_} and rule.classes <= classes:
        return rule
    small = {name.lower() for name in classes}
    is_alike = rule.tag in {"", tag} and rule.id.lower() in {"", id_.lower()}
    return rule._replace(simple=False) if is_alike and small.issuperset(map(str.lower, rule.classes)) else None


_Rank = tuple[bool, bool, tuple[int, int, int], int]
"""Whether a declaration is important; whether it is the element's own; its selector's rank; its block's number."""
_WEAKEST: Final = (-1, 0, 0)
_Decisions = dict[HidingProperty, tuple[_Rank, HidingStyle | None]]
"""The rank and the style of the strongest declaration for each way of hiding. Its style is None if it shows."""


def _cascade(rules: Iterable[StyleRule]) -> _Decisions:
    """Return the strongest declarations of these rules. Rules that are not ``simple`` only show."""
    decided: _Decisions = {}
    for rule in rules:
        for effect in rule.effects.ways:
            if rule.simple or not effect.hides:
                rank = _WEAKEST if rule.layered and effect.hides else rule.rank
                _decide(decided, effect, rule.block, (effect.important, False, rank, rule.block))
    return decided


def _decide(decided: _Decisions, effect: Effect, block: int | None, rank: _Rank) -> None:
    if effect.way not in decided or decided[effect.way][0] <= rank:
        decided[effect.way] = rank, HidingStyle(effect.way, block) if effect.hides else None


def _style(by_rules: _Decisions, own: Effects) -> ElementStyle:
    """Combine rules and an element's own style."""
    decided = by_rules.copy()
    for effect in own.ways:
        _decide(decided, effect, None, (effect.important, True, (0, 0, 0), 0))
    hidden = tuple(hiding for _, hiding in decided.values() if hiding is not None)
    return ElementStyle(hidden, frozenset(way for way, (_, hiding) in decided.items() if hiding is None), own.fixed)
