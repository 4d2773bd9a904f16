"""Articles as callers pass them: ``Article`` objects, or mappings such as decoded lines of JSON."""

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
    """An article: its ``id``, its text (``body``), and optional metadata.

    An article with the id of an earlier one is a new version of it, unless title and body are the same: then it is the
    same version and gets the same verdict. ``source`` selects the configured rules for that source. ``lang`` is a
    language tag (BCP 47) such as ``zh`` or ``en``. ``published_at`` is RFC 3339 text or a number of seconds since 1970,
    unless the settings name another unit. It does not affect verdicts.

    >>> Article("wire-1", "The harbour council opened the new ferry terminal.", title="Terminal opens", lang="en").title
    'Terminal opens'
    """

    id: str
    body: str
    title: str = ""
    source: str = ""
    url: str = ""
    lang: str = ""
    published_at: str | float | None = None


UNKNOWN_FIELD: Final = "unknown_field"
"""A reason that only ``InvalidArticle`` has: records of a feed may have further members, but mappings may not."""
_NAMES: Final = tuple(field.name for field in fields(Article))
_REQUIRED: Final = tuple(field.name for field in fields(Article) if field.default is MISSING)
_STRING: Final[tuple[tuple[type, ...], str]] = ((str,), "a string")
_TYPES: Final = MappingProxyType(
    {"id": ((str, int), "a string or an integer"), "published_at": ((str, int, float), "a string or a number")}
)
"""The types of fields that may be something other than strings."""
_NONE_ADVICE: Final = MappingProxyType({"id": "", "body": "; a window takes no retractions"})
"""What to do about a required field that is None."""
_MISSING: Final = MappingProxyType({"id": Reason.MISSING_ID, "body": Reason.MISSING_BODY})
_WRONG_TYPE: Final = MappingProxyType({"id": Reason.ID_WRONG_TYPE, "body": Reason.BODY_WRONG_TYPE})

_NAME_CHARS_MAX: Final = 64
_INTEGER_BITS_MAX: Final = 1024
"""Far more than any id needs. Python refuses to format integers of more than some 14,000 bits."""

ArticleChecker = Callable[[Article], model.Article]
"""Checks an article as every source does, and returns it decoded. Raises ``BadRecord``."""


def article_from(given: Mapping[Any, Any]) -> Article:
    """Return the article in a mapping whose keys are the fields of ``Article``.

    Raises ``BadRecord`` for a field that is unknown or None, and if ``id`` or ``body`` is missing.
    """
    for name in given:
        if name not in _NAMES:
            raise BadRecord(UNKNOWN_FIELD, f"{cut(repr(name), _NAME_CHARS_MAX)} is not a field; {_hint(name)}")
    for name in _REQUIRED:
        if name not in given:
            raise BadRecord(_MISSING[name], f"{name} is missing")
    for name, value in given.items():
        if value is None:
            raise _wrong_type(name, value)
    return Article(**given)


def article_checker(limits: DecodeLimits, body_form: BodyForm, times: TimeForm) -> ArticleChecker:
    """Return a function that checks articles and reads their bodies as text, HTML or whole pages."""
    field_map = FieldMap(times=times)

    def check(article: Article) -> model.Article:
        # A caller's subclass may have further fields.
        fields_given = {name: getattr(article, name) for name in _NAMES}
        for name, value in fields_given.items():
            _check_type(name, value)
        # Through JSON, so that an article is refused for the same reasons as in a feed.
        data = json.dumps(fields_given, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return decode(data, field_map, limits, body_form)

    return check


def _check_type(name: str, value: object) -> None:
    allowed, _ = _TYPES.get(name, _STRING)
    is_omitted = value is None and name not in _REQUIRED
    # bool is a subclass of int, and JSON has neither NaN nor infinity.
    is_invalid = isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value))
    if not is_omitted and (is_invalid or not isinstance(value, allowed)):
        raise _wrong_type(name, value)
    if isinstance(value, int) and value.bit_length() > _INTEGER_BITS_MAX:
        raise BadRecord(_WRONG_TYPE.get(name, Reason.FIELD_WRONG_TYPE), f"{name} is an integer with too many digits")


def _wrong_type(name: str, value: object) -> BadRecord:
    _, expected = _TYPES.get(name, _STRING)
    actual = repr(value) if value is None or isinstance(value, float) else f"of type {type(value).__name__}"
    advice = _NONE_ADVICE.get(name, "; leave it out instead") if value is None else ""
    return BadRecord(_WRONG_TYPE.get(name, Reason.FIELD_WRONG_TYPE), f"{name} is {actual}, not {expected}{advice}")


def _hint(name: object) -> str:
    """Suggest the most similar field, or list all fields."""
    close = get_close_matches(name[:_NAME_CHARS_MAX].lower(), _NAMES, 1) if isinstance(name, str) else []
    return f"did you mean {close[0]!r}?" if close else f"the fields are {', '.join(_NAMES)}"
