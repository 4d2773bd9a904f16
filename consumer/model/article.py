"""Articles, and the reasons for rejecting a record."""

from enum import StrEnum, unique
from typing import Final, Literal

import msgspec

from consumer.model.errors import BadRecord

READER_REVISION: Final = 2
"""The latest revision of the HTML reader and of the extractors, which new stores use by default."""

ExtractorName = Literal["fast", "precise"]
"""An extractor, which finds the article on a web page."""
PageForm = Literal["fast/1", "fast/2", "precise/1", "precise/2"]
"""A revision of an extractor."""
BodyForm = Literal["text", "html/1", "html/2", PageForm]
"""How a body becomes a text: unchanged, or through a revision of the HTML reader or of an extractor."""


@unique
class Reason(StrEnum):
    """The reason why a record became a dead letter.

    The list is fixed: a new reason needs a new version of the schema.
    """

    RECORD_TOO_LONG = "record_too_long"
    TRUNCATED_INPUT = "truncated_input"
    TRAILING_GARBAGE = "trailing_garbage"
    INVALID_UTF8 = "invalid_utf8"
    INVALID_JSON = "invalid_json"
    LONE_SURROGATE = "lone_surrogate"
    NUMBER_OUT_OF_RANGE = "number_out_of_range"
    NESTED_TOO_DEEP = "nested_too_deep"
    TOO_MANY_VALUES = "too_many_values"
    NOT_AN_OBJECT = "not_an_object"
    MISSING_ID = "missing_id"
    ID_WRONG_TYPE = "id_wrong_type"
    EMPTY_ID = "empty_id"
    ID_TOO_LONG = "id_too_long"
    MISSING_BODY = "missing_body"
    BODY_WRONG_TYPE = "body_wrong_type"
    BODY_TOO_LONG = "body_too_long"
    FOLDED_TOO_LONG = "folded_too_long"
    MARKUP_TOO_COMPLEX = "markup_too_complex"
    FIELD_WRONG_TYPE = "field_wrong_type"
    FIELD_TOO_LONG = "field_too_long"
    NUL_CHARACTER = "nul_character"
    MISSING_KEY = "missing_key"
    INVALID_KEY = "invalid_key"
    KEY_CONTRADICTS_ID = "key_contradicts_id"
    NULL_VALUE = "null_value"
    NO_SCHEMA_ID = "no_schema_id"
    UNKNOWN_SCHEMA = "unknown_schema"
    UNUSABLE_SCHEMA = "unusable_schema"
    SCHEMA_MISMATCH = "schema_mismatch"
    UNREADABLE_MESSAGE = "unreadable_message"


@unique
class TimeFault(StrEnum):
    """The reason why ``published_at`` could not be read; the label of a metric."""

    EMPTY = "empty"
    NO_ZONE = "no_zone"
    NO_UNIT = "no_unit"
    NOT_A_TIME = "not_a_time"
    OUT_OF_RANGE = "out_of_range"
    WRONG_TYPE = "wrong_type"


@unique
class ExtractionOutcome(StrEnum):
    """The part of a web page that was extracted; the label of a metric.

    ``FAST_ARTICLE`` is an article that the extractor *fast* found after *precise* had found nothing, or had skipped
    the page because of its size or depth. ``WHOLE_TEXT`` is the text of a page on which no article was found.
    """

    ARTICLE = "article"
    FAST_ARTICLE = "fast_article"
    WHOLE_TEXT = "whole_text"


class Article(msgspec.Struct, frozen=True):
    """A decoded article.

    A ``body`` of None retracts the id; "" is an article without words. ``published_at`` is in seconds since 1970.
    Fields that the record lacks are "" or None. ``time_fault`` says why the record's ``published_at`` could not be
    read. ``extracted`` is the part that was taken from a web page; it is None for other bodies. ``without_text`` marks
    a body of markup without any text.
    """

    id: str
    body: str | None
    title: str = ""
    source: str = ""
    url: str = ""
    lang: str = ""
    published_at: float | None = None
    time_fault: TimeFault | None = None
    extracted: ExtractionOutcome | None = None
    without_text: bool = False


def record_too_long(size_bytes: int, record_bytes_max: int) -> BadRecord:
    """Return the error for a record over the size limit. The first stage that sees the size rejects the record."""
    return BadRecord(
        Reason.RECORD_TOO_LONG,
        f"the record has {size_bytes} bytes, more than record_bytes_max = {record_bytes_max}",
        "record_bytes_max",
    )


def too_many_values(values_max: int) -> BadRecord:
    """Return the error for a record that would decode to too many values."""
    return BadRecord(Reason.TOO_MANY_VALUES, f"the record has more values than values_max = {values_max}", "values_max")
