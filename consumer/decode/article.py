"""Articles, and how a record's bytes become one.

Bytes are parsed into plain values, which is the only step that knows how they are written; then fields are taken from
where the mapping says, and checked. Whatever is wrong with a record is told by one of the reasons below, the first one
found in this order: size, number of values, UTF-8 and JSON (or what stands for it), depth, id, body, the other fields
in the order of ``FieldMap``. ``docs/formats.md`` has an example of each.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NoReturn

import msgspec
from annotated_types import MinLen

from consumer.decode.html_text import MarkupTooComplex, text_of_html
from consumer.decode.published_at import Instant, TimeForm, read_time
from consumer.fingerprint.folding import GROWTH_MAX, folded_length
from consumer.model.article import Article, BodyFormat, Reason, TimeFault, record_too_long, too_many_values
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits

Parse = Callable[[bytes], object]
"""Makes plain values of a record's bytes: what JSON has, and ``bytes``. Raises ``BadRecord``, and what ends a run."""


_Path = Annotated[str, MinLen(1)]


@dataclass(frozen=True, slots=True)
class FieldPaths:
    """Where in a record each field is. The configuration's section is derived from this.

    ``a.b`` is the member ``b`` of the object ``a``. A member whose own name contains dots takes precedence: at each
    level the longest name that exists is taken, without backtracking.
    """

    id: _Path = "id"
    body: _Path = "body"
    title: _Path = "title"
    source: _Path = "source"
    url: _Path = "url"
    lang: _Path = "lang"
    published_at: _Path = "published_at"


@dataclass(frozen=True, slots=True)
class FieldMap(FieldPaths):
    """Where each field is, and what a number, or a time without a zone, means in ``published_at``."""

    times: TimeForm = field(default_factory=TimeForm)


FOLDED_FREE_CHARS: Final = 10_000
"""A text of up to this many characters after folding may have grown by any factor: it costs little all the same."""
_STRING_OR_SIGN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[,\[{]', re.DOTALL)
_QUOTE: Final = ord('"')
_BOM: Final = b"\xef\xbb\xbf"
_ABSENT: Final = object()


def parse_json(data: bytes, values_max: int = DecodeLimits().values_max) -> object:
    """Parse JSON in UTF-8; a byte order mark before it is passed over. Raises nothing but ``BadRecord``."""
    # An empty object takes 3 bytes here and more than 64 in memory. Commas in strings are only told apart where there
    # are so many that it matters.
    signs = data.count(b",") + data.count(b"[") + data.count(b"{")
    if signs >= values_max and _has_more_values(data, values_max):
        raise too_many_values(values_max)
    return _parse(data.removeprefix(_BOM))


def decode(
    data: bytes,
    fields: FieldMap,
    limits: DecodeLimits,
    body_format: BodyFormat,
    key: str | None = None,
    parse: Parse = parse_json,
) -> Article:
    """Make an article of one record, by default a JSON object.

    ``key`` is the id that the record was sent under: one in the record itself may be left out then, and has to be the
    same. Raises ``BadRecord`` with a ``Reason``, and nothing else but what ``parse`` raises, whatever the bytes are.
    """
    if len(data) > limits.record_bytes_max:
        raise record_too_long(len(data), limits.record_bytes_max)
    record = parse(data)
    _check_depth(record, limits.depth_max)
    if not isinstance(record, dict):
        raise BadRecord(Reason.NOT_AN_OBJECT, f"the record is {_kind(record)}, not an object")
    published_at, time_fault = _time(record, fields.published_at, fields.times)
    return Article(
        id=_id(record, fields.id, limits.id_bytes_max, key),
        body=_body(record, fields.body, limits, body_format),
        title=_text(record, fields.title, limits.title_chars_max),
        source=_text(record, fields.source, limits.source_chars_max),
        url=_text(record, fields.url, limits.url_chars_max),
        lang=_text(record, fields.lang, limits.lang_chars_max),
        published_at=published_at,
        time_fault=time_fault,
    )


def _has_more_values(data: bytes, values_max: int) -> bool:
    values = 1
    for found in _STRING_OR_SIGN.finditer(data):
        values += data[found.start()] != _QUOTE
        if values > values_max:
            return True
    return False


def _parse(data: bytes) -> Any:  # noqa: ANN401  # whatever JSON can hold
    try:
        return msgspec.json.decode(data)
    except UnicodeDecodeError as error:
        raise _invalid_utf8(data, error) from error
    except msgspec.ValidationError as error:
        raise BadRecord(Reason.NUMBER_OUT_OF_RANGE, "the record has a number that is too large to be held") from error
    except msgspec.DecodeError as error:
        raise _malformed(data, error) from error
    except RecursionError as error:
        raise _bottomless() from error


def _malformed(data: bytes, error: msgspec.DecodeError) -> BadRecord:
    """Find out what the decoder stumbled over, since it has one name for different things.

    The standard library's decoder is slower and takes lone surrogates, so it tells them from what is no JSON at all.
    """
    try:
        text = data.decode()
        if not text.strip():
            return BadRecord(Reason.INVALID_JSON, "the record is empty")
        loose = json.loads(text, parse_constant=_refuse, parse_int=len, parse_float=len)
        json.dumps(loose, ensure_ascii=False).encode()
    except UnicodeDecodeError as fault:
        return _invalid_utf8(data, fault)
    except UnicodeEncodeError:
        return BadRecord(Reason.LONE_SURROGATE, "an escape is half a surrogate pair without the other, no character")
    except RecursionError:
        return _bottomless()
    except ValueError:
        pass
    return BadRecord(Reason.INVALID_JSON, f"the record is not JSON: {error}")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _invalid_utf8(data: bytes, error: UnicodeDecodeError) -> BadRecord:
    """Say where: the decoder counts from the start of a string, a person from the start of the record."""
    try:
        data.decode()
    except UnicodeDecodeError as whole:
        error = whole
    return BadRecord(Reason.INVALID_UTF8, f"the record is not UTF-8: {error.reason} at byte {error.start}")


def _bottomless() -> BadRecord:
    return BadRecord(Reason.NESTED_TOO_DEEP, "objects or lists are nested too deep to be read at all")


def _check_depth(record: object, depth_max: int) -> None:
    """Go down level by level and not by recursion, which some input could exhaust."""
    level = [record] if isinstance(record, (dict, list)) else []
    for _ in range(depth_max):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise BadRecord(Reason.NESTED_TOO_DEEP, f"objects or lists are nested deeper than depth_max = {depth_max}")


def field_at(record: dict[str, Any], path: str) -> Any:  # noqa: ANN401  # whatever JSON can hold
    """The value at a path, None where there is none."""
    found = _find(record, path)
    return None if found is _ABSENT else found


def _find(node: dict[str, Any], path: str) -> Any:  # noqa: ANN401  # whatever JSON can hold
    """The value at a path, or ``_ABSENT``."""
    if path in node:
        return node[path]
    end = path.rfind(".")
    while end >= 0:
        if path[:end] in node:
            inner = node[path[:end]]
            return _find(inner, path[end + 1 :]) if isinstance(inner, dict) else _ABSENT
        end = path.rfind(".", 0, end)
    return _ABSENT


def _id(record: dict[str, Any], path: str, bytes_max: int, key: str | None) -> str:
    value = _find(record, path)
    # Where a field cannot be left out, as in Protobuf, an empty one stands for that.
    if value is _ABSENT or value is None or (key is not None and value == ""):
        if key is None:
            raise BadRecord(Reason.MISSING_ID, f"the record has no {path}")
        return key
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise BadRecord(Reason.ID_WRONG_TYPE, f"{path} is {_kind(value)}, neither a string nor an integer")
    check_id(value, path, bytes_max)
    if key is not None and value != key:
        raise BadRecord(
            Reason.KEY_CONTRADICTS_ID, f"{path} is not the key that the record was sent under; the key is the id"
        )
    return value


def check_id(value: str, what: str, bytes_max: int) -> None:
    """Raise BadRecord where a string cannot be an article's id."""
    if not value:
        raise BadRecord(Reason.EMPTY_ID, f"{what} is an empty string")
    if len(value.encode()) > bytes_max:
        raise BadRecord(Reason.ID_TOO_LONG, f"{what} has more bytes of UTF-8 than id_bytes_max = {bytes_max}")
    _check_nul(value, what)


def _body(record: dict[str, Any], path: str, limits: DecodeLimits, body_format: BodyFormat) -> str | None:
    value = _find(record, path)
    if value is _ABSENT:
        raise BadRecord(Reason.MISSING_BODY, f"the record has no {path}; null would retract the article")
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadRecord(Reason.BODY_WRONG_TYPE, f"{path} is {_kind(value)}, neither a string nor null")
    if len(value) > limits.body_chars_max:
        raise BadRecord(
            Reason.BODY_TOO_LONG,
            f"{path} has {len(value)} characters, more than body_chars_max = {limits.body_chars_max}",
        )
    _check_nul(value, path)
    if body_format == "html":
        try:
            value = text_of_html(value, limits.attributes_max)
        except MarkupTooComplex as error:
            raise BadRecord(Reason.MARKUP_TOO_COMPLEX, f"the markup of {path} was not read: {error}") from error
    _check_folded(value, path, limits)
    return value


def _check_folded(text: str, path: str, limits: DecodeLimits) -> None:
    if len(text) * GROWTH_MAX <= min(FOLDED_FREE_CHARS, limits.folded_chars_max):
        return
    folded = folded_length(text)
    if folded > limits.folded_chars_max:
        raise BadRecord(
            Reason.FOLDED_TOO_LONG,
            f"{path} becomes {folded} characters when folded, more than folded_chars_max = {limits.folded_chars_max}",
        )
    if folded > FOLDED_FREE_CHARS and folded > limits.fold_growth_max * len(text):
        raise BadRecord(
            Reason.FOLDED_TOO_LONG,
            f"{path} becomes {folded} characters when folded, more than fold_growth_max = {limits.fold_growth_max}"
            f" times the {len(text)} that it has",
        )


def _text(record: dict[str, Any], path: str, chars_max: int) -> str:
    value = _find(record, path)
    if value is _ABSENT or value is None:
        return ""
    if not isinstance(value, str):
        raise BadRecord(Reason.FIELD_WRONG_TYPE, f"{path} is {_kind(value)}, not a string")
    if len(value) > chars_max:
        raise BadRecord(Reason.FIELD_TOO_LONG, f"{path} has {len(value)} characters, more than {chars_max}")
    _check_nul(value, path)
    return value


def _time(record: dict[str, Any], path: str, form: TimeForm) -> tuple[float | None, TimeFault | None]:
    value = _find(record, path)
    if value is _ABSENT or value is None:
        return None, None
    read = read_time(value, form)
    return (None, read) if isinstance(read, TimeFault) else (read, None)


def _check_nul(value: str, path: str) -> None:
    if "\0" in value:
        raise BadRecord(Reason.NUL_CHARACTER, f"{path} has a NUL character")


def _kind(value: object) -> str:
    """What a person who writes JSON calls the value."""
    names = {
        bool: "a boolean",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
        bytes: "bytes",
        Instant: "a time",
    }
    return names.get(type(value), "null")
