"""The source, the sink, and the permissions of files: ``[source]``, ``[sink]``, ``[files]``."""

from typing import Annotated, Literal, cast

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from consumer.config.setting_types import SECTION_VALIDATION, Count, FileMode, Section, Share, SinkUrl, SourceUrl, Text
from consumer.decode.article import FieldPaths
from consumer.decode.encodings import encoding_named
from consumer.decode.published_at import Unit
from consumer.files.tables import UTF_8, FileFormat
from consumer.model.article import READER_REVISION, BodyForm, ExtractorName
from consumer.model.limits import DecodeLimits, ReadLimits
from consumer.model.ports import Emit
from consumer.text.timestamps import parse_zone
from storage.files import FILE_MODE

_READ = ReadLimits()
_DECODE = DecodeLimits()


def _encoding(name: str) -> str:
    encoding_named(name)
    return name


def _zone(name: str) -> str:
    parse_zone(name)
    return name


@dataclass(frozen=True, config=SECTION_VALIDATION)
class FieldsSection(FieldPaths):
    """Where the fields of an article are in a record: ``a.b`` is the member ``b`` of the object ``a``."""

    # Its settings are the fields of FieldPaths.


class SourceSection(Section):
    """Where articles come from and how they are read."""

    url: SourceUrl = "-"
    """A file of articles, plain or compressed, - for standard input, or kafka://HOST:PORT[,HOST:PORT]/TOPIC[,TOPIC]."""
    format: FileFormat | None = None
    """The format of files and standard input. When unset, the file name decides (feed.csv.gz); the default is jsonl."""
    encoding: Annotated[Text, AfterValidator(_encoding)] = UTF_8
    """The encoding of CSV and TSV, such as gb18030, utf-16 or windows-1252; JSON lines are UTF-8."""
    fields: FieldsSection = FieldsSection()
    body_format: Literal["text", "html", "article"] = "text"
    """The format of bodies: text; html, where all text counts; or article, for web pages, where only the article
    counts."""
    extractor: ExtractorName = "fast"
    """The extractor that finds the article of a web page: fast, or precise, which finds more but takes several times as
    long."""
    reader_revision: Annotated[int, Field(ge=1, le=READER_REVISION)] = READER_REVISION
    """The rules for reading HTML and web pages: 2, or 1 as in older stores."""
    published_at_unit: Unit = "auto"
    """The unit of numbers in published_at, counted from 1970. auto recognises numbers that fit only one unit."""
    published_at_zone: Annotated[Text, AfterValidator(_zone)] | None = None
    """The time zone of times that state none: +08:00, UTC or Asia/Shanghai. When unset, such times are not read."""
    record_bytes_max: Count = _READ.record_bytes_max
    """Maximum bytes of one record, without its line end."""
    body_chars_max: Count = _DECODE.body_chars_max
    """Maximum characters of a body, markup included."""
    page_chars_max: Count = _DECODE.page_chars_max
    """Maximum characters of a web page; body_chars_max is for the article in it."""
    folded_chars_max: Count = _DECODE.folded_chars_max
    """Maximum characters of a body after folding, by which one character can become eighteen."""
    fold_growth_max: Annotated[int, Field(ge=1, le=18)] = _DECODE.fold_growth_max
    """Maximum factor by which folding may lengthen a body that has more than 10,000 characters afterwards."""
    values_max: Count = _DECODE.values_max
    """Maximum objects, lists, members and items in a record, or elements and attributes in a web page."""
    attributes_max: Annotated[int, Field(ge=1, le=20_000)] = _DECODE.attributes_max
    """Maximum different attributes of one HTML tag."""
    depth_max: Annotated[int, Field(ge=1, le=500)] = _DECODE.depth_max
    """Maximum depth of nested objects and lists; the record itself is the first level."""
    poison_share_max: Share = 0.5
    """End a run over a file or a stream when more than this share of its last records is invalid; 1 for never."""
    poison_records_min: Count = 100
    """The number of records over which poison_share_max is computed. A shorter feed fails only if all of it is invalid
    or in another format."""
    batch_records_max: Annotated[int, Field(ge=1, le=10_000)] = _READ.batch_records_max
    """Maximum records that are judged and committed together."""
    batch_bytes_max: Count = _READ.batch_bytes_max
    """Maximum bytes of the records of a batch; a batch always has at least one record."""

    @property
    def body_form(self) -> BodyForm:
        """The form of bodies, which decides how they are read."""
        if self.body_format == "text":
            return "text"
        name = self.extractor if self.body_format == "article" else "html"
        return cast("BodyForm", f"{name}/{self.reader_revision}")


class SinkSection(Section):
    """Where verdicts go."""

    url: SinkUrl = "-"
    """A file of JSON lines, - for standard output, or kafka://HOST:PORT[,HOST:PORT]/PREFIX for topics."""
    emit: Emit = "duplicates"
    """Which verdicts are written: duplicates, which includes articles that a bank denies; all; or none."""


class FilesSection(Section):
    """Permissions of files on disk: stores, verdicts, dead letters, checkpoints, tables of words."""

    mode: FileMode = f"{FILE_MODE:04o}"
    """The mode of new files, in octal; new directories get the matching execute bits. Existing files keep
    their mode."""

    @property
    def bits(self) -> int:
        """The mode as a number."""
        return int(self.mode, 8)
