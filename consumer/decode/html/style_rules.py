"""Reads declarations of style sheets: whether they hide or show text, and whether a box has a fixed position.

Colours are ignored, because the colour behind a text depends on the whole cascade.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

HidingProperty = Literal["display", "visibility", "opacity", "font-size", "place"]
"""A way to hide text. ``place`` means off the screen, or in a box without room."""


class Effect(NamedTuple):
    """Whether declarations hide or show text in one way, and whether with ``!important``."""

    way: HidingProperty
    hides: bool
    important: bool


class Effects(NamedTuple):
    """The effects of a block of declarations, at most one for each way, and whether it fixes the position of a box."""

    ways: tuple[Effect, ...]
    fixed: bool


NO_EFFECTS: Final = Effects((), fixed=False)
_VALUE_CHARS_MAX: Final = 100
_DECLARATION: Final = re.compile(
    "(?:^|;)\\s*+(all|animation|animation-name|bottom|clip|clip-path|display|font|font-size|height|left|margin-left"
    "|margin-top|max-height|max-width|opacity|overflow|position|right|text-indent|top|transform|visibility|width)"
    # Browsers drop a declaration that ends in any other way.
    "\\s*+:([^;!]*+)(!\\s*+important\\s*+)?(?=;|\\Z)",
    re.IGNORECASE,
)
_OPAQUE: Final = re.compile(
    "/\\*.*?(?:\\*/|\\Z)|\"(?:[^\"\\\\\n]|\\\\.)*+\"?|'(?:[^'\\\\\n]|\\\\.)*+'?|url\\([^)\"']*+\\)?", re.DOTALL
)
_ENCLOSED_END: Final = re.compile("[(\\[][^)\\]]*;")
_MOVED: Final[tuple[HidingProperty, ...]] = ("visibility", "opacity", "font-size", "place")
"""Ways of hiding that an animation may end."""
_WAYS: Final[tuple[HidingProperty, ...]] = ("display", *_MOVED)
_MAY_HIDE: Final = re.compile(
    "display\\s*+:\\s*+none|visibility\\s*+:\\s*+[hc]|opacity\\s*+:\\s*+[+.0]|font(?:-size)?\\s*+:[^;]{0,60}?(?<![\\d.])[.0]"
    "|clip|scale|(?:height|width)\\s*+:\\s*+[01]|position\\s*+:\\s*+(?:fixed|sticky|-w)|-\\d{3}|-\\d++(?:\\.\\d++)?(?:r?em|v)",
    re.IGNORECASE,
)
_ZERO: Final = re.compile("[+-]?(?:0+(?:\\.0*)?|\\.0+)(?:[a-z]+|%)?$")
_NO_SIZE: Final = re.compile("(?:0[a-z%]*|1px)$")
_FAR: Final = re.compile("-(?:\\d{4,}|999)(?:\\.\\d+)?(?:px|pt)$|-\\d{2,}(?:\\.\\d+)?r?em$|-\\d{3,}(?:\\.\\d+)?v[wh]$")
_MOVED_AWAY: Final = re.compile("translate[xy3d]*\\((?:0(?:px)?, ?)?-(?:\\d{4,}|999)px|scale\\(0[,)]")
_CLIPPED: Final = re.compile("rect\\((?:[01](?:px)?(?:, ?| |\\))){4}$|inset\\((?:50|100)%\\)$")
_SIDES: Final = ("left", "top", "right", "bottom")
_SIZES: Final = ("height", "max-height", "width", "max-width")
_SHIFTS: Final = ("text-indent", "margin-left", "margin-top")
_PLACES: Final = (*_SIDES, *_SIZES, *_SHIFTS, "clip", "clip-path", "overflow", "position", "transform")


def may_hide(declarations: str) -> bool:
    """Return whether declarations may hide text or fix a box, by a quick search."""
    return _MAY_HIDE.search(declarations) is not None


def hides_or_fixes(effects: Effects) -> bool:
    """Return whether any effect hides, or the box has a fixed position."""
    return effects.fixed or any(effect.hides for effect in effects.ways)


def without_opaque(styles: str) -> str:
    """Replace comments, strings and URLs with spaces, since they may contain braces and semicolons."""
    return _OPAQUE.sub(" ", styles)


def effects_of(declarations: str) -> Effects:
    """Return the effects of the declarations between two braces, or in a ``style`` attribute.

    Declarations that a browser may read differently count as showing.
    """
    values: dict[str, str] = {}
    important: set[str] = set()
    for written, value, mark in _DECLARATION.findall(declarations):
        name = written.lower()
        values[name] = " ".join(value[:_VALUE_CHARS_MAX].lower().split())
        if mark:
            important.add(name)
    if not values:
        return NO_EFFECTS
    ways = {way: Effect(way, hides, not important.isdisjoint(names)) for way, hides, names in _ways(values)}
    if _ENCLOSED_END.search(declarations):
        ways = {way: effect._replace(hides=False) for way, effect in ways.items()}
    if "all" in values:
        ways |= {way: Effect(way, hides=False, important="all" in important) for way in _WAYS}
    if not {values.get("animation", "none"), values.get("animation-name", "none")} <= {"none", ""}:
        # An animation overrides declarations.
        ways |= {way: Effect(way, hides=False, important=True) for way in _MOVED}
    return Effects(tuple(ways.values()), values.get("position") in {"fixed", "sticky", "-webkit-sticky"})


def _ways(values: Mapping[str, str]) -> Iterator[tuple[HidingProperty, bool, tuple[str, ...]]]:
    if "display" in values:
        yield "display", values["display"] == "none", ("display",)
    if "visibility" in values:
        yield "visibility", values["visibility"] in {"hidden", "collapse"}, ("visibility",)
    if "opacity" in values:
        yield "opacity", bool(_ZERO.match(values["opacity"])), ("opacity",)
    size = values.get("font-size") or _size_in(values.get("font", ""))
    if size:
        yield "font-size", bool(_ZERO.match(size)), ("font-size", "font")
    if not values.keys().isdisjoint(_PLACES):
        yield "place", _is_out_of_place(values), _PLACES


def _size_in(font: str) -> str:
    return next((word.partition("/")[0] for word in font.split() if word[0].isdigit()), "")


def _is_out_of_place(values: Mapping[str, str]) -> bool:
    def any_of(names: tuple[str, ...], form: re.Pattern[str]) -> bool:
        return any(form.match(values.get(name, "")) for name in names)

    if any_of(_SHIFTS, _FAR) or any_of(("clip-path",), _CLIPPED) or _MOVED_AWAY.search(values.get("transform", "")):
        return True
    if values.get("position") in {"absolute", "fixed"} and (any_of(_SIDES, _FAR) or any_of(("clip",), _CLIPPED)):
        return True
    return values.get("overflow", "").startswith(("hidden", "clip")) and any_of(_SIZES, _NO_SIZE)
