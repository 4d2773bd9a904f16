"""Articles as a caller gives them: objects of a class, or mappings as those of JSON lines."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final

from consumer.decode.article import FieldMap, decode
from consumer.decode.published_at import TimeForm
from consumer.model import article as model
from consumer.model.article import BodyForm, Reason
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits
from consumer.text.visible import cut


@dataclass(frozen=True, slots=True)
class Article:
    """An article: its ``id``, its text, and what else is known of it.

    An article that comes again with the same id is another version of it, unless title and body are the same; then it
    is the same version, and gets the same verdict. ``source`` selects the rules that the configuration has for sources,
    ``lang`` is a language tag (BCP 47) such as ``zh`` or ``en``. ``published_at`` is a time as feeds have it, and
    decides nothing.
    """

    id: str
    body: str
    title: str = ""
    source: str = ""
    url: str = ""
    lang: str = ""
    published_at: str | float | None = None


UNKNOWN_FIELD: Final = "unknown_field"
"""A reason that no dead letter has: records of a feed may have members of their own, mappings may not."""
_NAMES: Final = tuple(field.name for field in fields(Article))
_REQUIRED: Final = tuple(field.name for field in fields(Article) if field.default is MISSING)
_STRING: Final[tuple[tuple[type, ...], str]] = ((str,), "a string")
_TYPES: Final = MappingProxyType(
    {"id": ((str, int), "a string or an integer"), "published_at": ((str, int, float), "a string or a number")}
)
"""The types of fields that need not be strings."""
_WITHOUT: Final = MappingProxyType({"id": "", "body": "; a window takes no retractions"})
"""The advice on a field that may not be left out, where it is None."""
_MISSING: Final = MappingProxyType({"id": Reason.MISSING_ID, "body": Reason.MISSING_BODY})
_WRONG_TYPE: Final = MappingProxyType({"id": Reason.ID_WRONG_TYPE, "body": Reason.BODY_WRONG_TYPE})

_NAME_CHARS_MAX: Final = 64
_INTEGER_BITS_MAX: Final = 1024
"""Far more than any id has. Python refuses to write integers of more than some 14,000 bits."""

Checked = Callable[[Article], model.Article]
"""Checks an article as every source does; raises ``BadRecord``."""


def article_of(given: Mapping[Any, Any]) -> Article:
    """Return the article of a mapping whose keys are the fields of ``Article``.

    Raises ``BadRecord`` for a field that is unknown, missing or None.
    """
    for name in given:
        if name not in _NAMES:
            raise BadRecord(UNKNOWN_FIELD, f"{cut(repr(name), _NAME_CHARS_MAX)} is not a field; {_hint(name)}")
    for name in _REQUIRED:
        if name not in given:
            raise BadRecord(_MISSING[name], f"{name} is missing")
    for name, value in given.items():
        if value is None:
            _refuse_type(name, value)
    return Article(**given)


def checked_by(limits: DecodeLimits, body_form: BodyForm, times: TimeForm) -> Checked:
    """Return what checks articles: by these limits, their bodies read as text, as HTML, or as pages."""
    field_map = FieldMap(times=times)

    def checked(article: Article) -> model.Article:
        # A class of the caller's may have fields of its own.
        given = {name: getattr(article, name) for name in _NAMES}
        for name, value in given.items():
            _check_type(name, value)
        # By way of JSON, so that what is refused, and why, is the same as for a feed.
        data = json.dumps(given, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return decode(data, field_map, limits, body_form)

    return checked


def _check_type(name: str, value: object) -> None:
    allowed, _ = _TYPES.get(name, _STRING)
    is_left_out = value is None and name not in _REQUIRED
    # JSON has neither NaN nor infinity.
    is_no_value = isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value))
    if not is_left_out and (is_no_value or not isinstance(value, allowed)):
        _refuse_type(name, value)
    if isinstance(value, int) and value.bit_length() > _INTEGER_BITS_MAX:
        raise BadRecord(_WRONG_TYPE.get(name, Reason.FIELD_WRONG_TYPE), f"{name} is an integer of too many digits")


def _refuse_type(name: str, value: object) -> None:
    _, wanted = _TYPES.get(name, _STRING)
    found = repr(value) if value is None or isinstance(value, float) else f"of type {type(value).__name__}"
    advice = _WITHOUT.get(name, "; leave it out if there is none") if value is None else ""
    raise BadRecord(_WRONG_TYPE.get(name, Reason.FIELD_WRONG_TYPE), f"{name} is {found}, not {wanted}{advice}")


def _hint(name: object) -> str:
    """Return the field that a caller may have meant, or all of them."""
    close = get_close_matches(name[:_NAME_CHARS_MAX].lower(), _NAMES, 1) if isinstance(name, str) else []
    return f"did you mean {close[0]!r}?" if close else f"the fields are {', '.join(_NAMES)}"
