"""Decodes the bytes of a record into an article.

Only the first step depends on the format: it parses bytes into plain values. Then the fields are read from their
configured places and checked. An invalid record gets the first reason that applies, in this order: size, number of
values, UTF-8 and JSON (or another format), depth, type of the record, id, body, the other fields in the order of
``FieldMap``. A faulty ``published_at`` is not a reason. ``docs/use/events.md`` lists the reasons.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple, cast

from annotated_types import MinLen

from consumer.decode.html.html_reader import text_of_html
from consumer.decode.html.markup import MarkupTooComplex
from consumer.decode.html.page import read_page
from consumer.decode.json_value import parse_json
from consumer.decode.published_at import Instant, TimeForm, read_time
from consumer.decode.rows import parse_row
from consumer.fingerprint.characters.folding import GROWTH_MAX, folded_length
from consumer.model.article import Article, BodyForm, ExtractionOutcome, PageForm, Reason, TimeFault, record_too_long
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits
from consumer.model.record import RawRecord

Parse = Callable[[bytes], object]
"""A parser of a record's bytes into values of JSON, ``bytes`` and ``Instant``.

It raises ``BadRecord``. A parser that fetches schemas also raises ``Fatal`` and ``Abandoned``.
"""


_Path = Annotated[str, MinLen(1)]


@dataclass(frozen=True, slots=True)
class FieldPaths:
    """The path of each field in a record. ``FieldsSection`` of the configuration is derived from this class.

    ``a.b`` is the member ``b`` of the object ``a``. Members whose names contain dots take precedence: at each level the
    longest existing name is used, without backtracking.
    """

    id: _Path = "id"
    """The member of a record that holds the article's id."""
    body: _Path = "body"
    """The member that holds the text or the markup. The value null retracts the article."""
    title: _Path = "title"
    """The member that holds the title."""
    source: _Path = "source"
    """The member that names the source, by which rules are chosen."""
    url: _Path = "url"
    """The member that holds the address of the article."""
    lang: _Path = "lang"
    """The member that declares the language."""
    published_at: _Path = "published_at"
    """The member that holds the time of publication."""


@dataclass(frozen=True, slots=True)
class FieldMap(FieldPaths):
    """The path of each field, and how to read numbers and times without a zone in ``published_at``."""

    times: TimeForm = field(default_factory=TimeForm)


FOLDED_FREE_CHARS_MAX: Final = 10_000
"""Texts of up to this many characters after folding may grow by any factor, since they cost little."""
_HTML_REVISIONS: Final[Mapping[str, int]] = MappingProxyType({"html/1": 1, "html/2": 2})
"""The revision of the HTML reader for each form of HTML bodies."""
_ABSENT: Final = object()


def decode(
    data: bytes,
    fields: FieldMap,
    limits: DecodeLimits,
    body_form: BodyForm,
    key: str | None = None,
    parse: Parse = parse_json,
) -> Article:
    """Decode one record, by default a JSON object.

    ``body_form`` is the form of the body, such as text or HTML. ``key`` is the message key, if it is the article's id.
    Then the record may omit its id, but must not have a different one. Raises ``BadRecord`` with a ``Reason``, and the
    errors of ``parse``.
    """
    if len(data) > limits.record_bytes_max:
        raise record_too_long(len(data), limits.record_bytes_max)
    record = parse(data)
    _check_depth(record, limits.depth_max)
    if not isinstance(record, dict):
        raise BadRecord(Reason.NOT_AN_OBJECT, f"the record is {_kind(record)}, not an object")
    published_at, time_fault = _time(record, fields.published_at, fields.times)
    article_id = _id(record, fields.id, limits.id_bytes_max, key)
    body = _body(record, fields.body, limits, body_form)
    return Article(
        id=article_id,
        body=body.text,
        title=_text(record, fields.title, "title_chars_max", limits) or body.title,
        source=_text(record, fields.source, "source_chars_max", limits),
        url=_text(record, fields.url, "url_chars_max", limits),
        lang=_text(record, fields.lang, "lang_chars_max", limits),
        published_at=published_at,
        time_fault=time_fault,
        extracted=body.extracted,
        without_text=body.without_text,
    )


@dataclass(frozen=True, slots=True)
class ArticleDecoder:
    """A decoder that calls ``decode`` with the settings of one configuration.

    Its methods raise the errors of ``decode``.
    """

    fields: FieldMap
    limits: DecodeLimits
    body_form: BodyForm
    parse: Parse

    def __call__(self, data: bytes, key: str | None = None) -> Article:
        """Decode the bytes of a record."""
        return decode(data, self.fields, self.limits, self.body_form, key, self.parse)

    def record(self, record: RawRecord) -> Article:
        """Decode a record from a source: a row of a table, or else the input of ``parse``.

        Also raises the fault that was found while reading the record, if any.
        """
        table = record.table
        if table is None:
            return self(record.whole())
        parse = partial(parse_row, table=table)
        return decode(record.whole(), self.fields, self.limits, self.body_form, parse=parse)


def _check_depth(record: object, depth_max: int) -> None:
    """Raise ``BadRecord`` if a record is nested too deep. Go level by level: recursion could exhaust the stack."""
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
    raise BadRecord(
        Reason.NESTED_TOO_DEEP, f"objects or lists are nested deeper than depth_max = {depth_max}", "depth_max"
    )


def field_at(record: dict[str, Any], path: str) -> Any:  # noqa: ANN401  # whatever JSON can hold
    """Return the value at a path, or None if there is none."""
    found = _find(record, path)
    return None if found is _ABSENT else found


def _find(node: dict[str, Any], path: str) -> Any:  # noqa: ANN401  # whatever JSON can hold
    """Return the value at a path, or ``_ABSENT``."""
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
    # In formats such as Protobuf a field cannot be omitted, so an empty id counts as missing if there is a key.
    if value is _ABSENT or value is None or (key is not None and value == ""):
        if key is None:
            raise BadRecord(Reason.MISSING_ID, f"the record has no {path}")
        return key
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise BadRecord(Reason.ID_WRONG_TYPE, f"{path} is {_kind(value)}, not a string or an integer")
    check_id(value, path, bytes_max)
    if key is not None and value != key:
        raise BadRecord(Reason.KEY_CONTRADICTS_ID, f"{path} differs from the key of the message, which is the id")
    return value


def check_id(value: str, what: str, bytes_max: int) -> None:
    """Raise ``BadRecord`` if a string cannot be an article's id. ``what`` names it in the message."""
    if not value:
        raise BadRecord(Reason.EMPTY_ID, f"{what} is an empty string")
    if len(value.encode()) > bytes_max:
        raise BadRecord(
            Reason.ID_TOO_LONG, f"{what} has more UTF-8 bytes than id_bytes_max = {bytes_max}", "id_bytes_max"
        )
    _check_nul(value, what)


class _Body(NamedTuple):
    """A body's text, or None for a retraction. A web page also has a title and the outcome of extraction.

    ``without_text`` marks a body of markup without any text.
    """

    text: str | None
    title: str = ""
    extracted: ExtractionOutcome | None = None
    without_text: bool = False


def _body(record: dict[str, Any], path: str, limits: DecodeLimits, body_form: BodyForm) -> _Body:
    value = _find(record, path)
    if value is _ABSENT:
        raise BadRecord(Reason.MISSING_BODY, f"the record has no {path}; to retract the article, set it to null")
    if value is None:
        return _Body(None)
    if not isinstance(value, str):
        raise BadRecord(Reason.BODY_WRONG_TYPE, f"{path} is {_kind(value)}, not a string or null")
    is_page = body_form not in {"text", *_HTML_REVISIONS}
    if is_page:
        _check_length(value, f"the page in {path}", "page_chars_max", limits.page_chars_max)
    else:
        _check_length(value, path, "body_chars_max", limits.body_chars_max)
    _check_nul(value, path)
    text, title, extracted = (value, "", None) if body_form == "text" else _read(value, path, limits, body_form)
    if is_page:
        _check_length(text, f"the text of the page in {path}", "body_chars_max", limits.body_chars_max)
    _check_folded(text, path, limits)
    return _Body(text, title, extracted, without_text=not text and not (value == "" or value.isspace()))


def _read(
    markup: str, path: str, limits: DecodeLimits, body_form: BodyForm
) -> tuple[str, str, ExtractionOutcome | None]:
    """Return the text of markup, its title, and the outcome of extraction. Only pages have a title and an outcome."""
    try:
        if body_form in _HTML_REVISIONS:
            return text_of_html(markup, limits.attributes_max, _HTML_REVISIONS[body_form]), "", None
        page = read_page(markup, cast("PageForm", body_form), limits)
    except MarkupTooComplex as error:
        raise BadRecord(Reason.MARKUP_TOO_COMPLEX, f"the HTML in {path} is too complex: {error}") from error
    return page.text, page.title, page.extracted


def _check_length(text: str, what: str, setting: str, chars_max: int) -> None:
    if len(text) > chars_max:
        raise BadRecord(
            Reason.BODY_TOO_LONG, f"{what} has {len(text)} characters, more than {setting} = {chars_max}", setting
        )


def _check_folded(text: str, path: str, limits: DecodeLimits) -> None:
    if len(text) * GROWTH_MAX <= min(FOLDED_FREE_CHARS_MAX, limits.folded_chars_max):
        return
    folded = folded_length(text)
    if folded > limits.folded_chars_max:
        raise BadRecord(
            Reason.FOLDED_TOO_LONG,
            f"{path} has {folded} characters after folding, more than folded_chars_max = {limits.folded_chars_max}",
            "folded_chars_max",
        )
    if folded > FOLDED_FREE_CHARS_MAX and folded > limits.fold_growth_max * len(text):
        raise BadRecord(
            Reason.FOLDED_TOO_LONG,
            f"{path} grows from {len(text)} to {folded} characters by folding, by more than the factor"
            f" fold_growth_max = {limits.fold_growth_max}",
            "fold_growth_max",
        )


def _text(record: dict[str, Any], path: str, limit: str, limits: DecodeLimits) -> str:
    value = _find(record, path)
    if value is _ABSENT or value is None:
        return ""
    if not isinstance(value, str):
        raise BadRecord(Reason.FIELD_WRONG_TYPE, f"{path} is {_kind(value)}, not a string")
    chars_max = getattr(limits, limit)
    if len(value) > chars_max:
        raise BadRecord(Reason.FIELD_TOO_LONG, f"{path} has {len(value)} characters, more than {chars_max}", limit)
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
        raise BadRecord(Reason.NUL_CHARACTER, f"{path} contains a NUL character")


def _kind(value: object) -> str:
    """Return the name of the value's type in JSON terms."""
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
