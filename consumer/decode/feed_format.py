"""Guesses the format of a feed whose records are rejected, and advises what to set or convert.

It inspects only the first record and some of the rejected records. Its functions are pure.
"""

import re
import shlex
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from consumer.decode.article import FieldMap, field_at
from consumer.decode.codecs import COMPRESSIONS, Codec
from consumer.model.article import Reason

FEED: Final = "FEED"
"""Stands for the feed in suggested commands."""
UNKNOWN: Final = "NAME"
"""Stands for an unknown name in suggested settings."""
_NAMES_MAX: Final = 5
_NAME_CHARS_MAX: Final = 16
_CONTAINERS: Final[Mapping[bytes, tuple[str, str]]] = {
    b"PK\x03\x04": (
        "a ZIP archive or a spreadsheet",
        f"unpack an archive, as with unzip -p {FEED}; save a spreadsheet as CSV in UTF-8",
    ),
    b"PAR1": ("Parquet", "convert it to JSON lines"),
    b"Obj\x01": ("an Avro file", f"convert it, as with avro-tools tojson {FEED}"),
}
_RECORD_SEPARATOR: Final = b"\x1e"
_EVENT_DATA: Final = re.compile(rb"data: ?\{")
_EVENT_LINE: Final = re.compile(rb"(?:data|event|id|retry)?:")
"""The beginning of a line of an event stream. A line without a name is a comment."""
_WIDE: Final = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_KIND_OF: Final = {"id": "id", "body": "text"}
_NAMES_OF: Final = {
    "id": ("id", "guid", "uuid", "_id", "article_id", "doc_id", "key", "url", "link"),
    "body": ("body", "text", "content", "article", "full_text", "body_html", "content_html", "description", "summary"),
    "title": ("title", "headline", "heading", "subject"),
}


class RejectedRecord(NamedTuple):
    """A rejected record, or its first bytes, and the reason."""

    reason: str
    data: bytes


class FormatGuess(NamedTuple):
    """A sentence on the probable format and what to do. ``whole``: the whole feed is at fault, not a few records."""

    sentence: str
    whole: bool


def guess(opening: bytes, rejected: Sequence[RejectedRecord], fields: FieldMap) -> FormatGuess | None:
    """Guess the format of a feed from its first record, ``opening``, and from rejected records.

    Return None if there is no clue.
    """
    reasons = Counter(record.reason for record in rejected)
    main_reason = reasons.most_common(1)[0][0] if reasons else ""
    shape = (
        _binary(opening)
        or _encoding(opening, rejected, main_reason)
        or framing(rejected)
        or _text_shape(opening, rejected)
    )
    if shape is not None:
        what, do = shape
        return FormatGuess(f"The feed looks like {what}: {do}", whole=True)
    return _fields(rejected, fields)


def guess_of_table(rejected: Sequence[RejectedRecord]) -> FormatGuess | None:
    """Guess why rows of a table with a valid header cannot be judged. Return None if there is no clue."""
    reasons = Counter(record.reason for record in rejected)
    if not reasons or reasons.most_common(1)[0][0] != Reason.INVALID_UTF8:
        return None
    undecodable = [record.data for record in rejected if record.reason == Reason.INVALID_UTF8]
    return FormatGuess(f"The table has another encoding: {encoding_advice(undecodable)}", whole=True)


def encoding_advice(undecodable: Sequence[bytes]) -> str:
    """Advise on the encoding of a table from its header or rows that cannot be decoded."""
    without_mark = "gb18030" if all(map(_is_gb18030, undecodable)) else "windows-1252"
    return f"set source.encoding, for example to {_marked_encoding(undecodable[0]) or without_mark}"


def framing(rejected: Sequence[RejectedRecord]) -> tuple[str, str] | None:
    """Recognise JSON in an unsupported framing from rejected records. Return the format and advice, or None.

    No line of such a feed is an article, so one or two rejected lines are enough.
    """
    lines = [record.data.removeprefix(BOM_UTF8).strip() for record in rejected]
    if any(line.startswith(_RECORD_SEPARATOR) for line in lines):
        return "a JSON text sequence (RFC 7464)", f"remove the separators, as with tr -d '\\036' <{FEED} | jq -c ."
    if any(map(_EVENT_DATA.match, lines)) and all(map(_EVENT_LINE.match, lines)):
        return "server-sent events", f"keep the data alone, as with sed -n 's/^data: *//p' {FEED}"
    if len(lines) > 1 and _is_majority(map(_is_logged_object, lines)):
        return "JSON lines behind a prefix, as in a log", f"remove the prefix, as with sed 's/^[^{{]*//' {FEED}"
    return None


def _is_logged_object(line: bytes) -> bool:
    begins = line.find(b"{")
    return begins > 0 and line[:1] not in b"[<" and isinstance(_parsed(line[begins:]), dict)


def _binary(opening: bytes) -> tuple[str, str] | None:
    if opening[257:262] == b"ustar":
        return "a tar archive", f"unpack it, as with tar -xOf {FEED}"
    compression = next((compression for compression in COMPRESSIONS if opening.startswith(compression.magic)), None)
    if compression is None:
        return next((found for magic, found in _CONTAINERS.items() if opening.startswith(magic)), None)
    name = compression.name
    if isinstance(compression, Codec):
        # The input has been decompressed once already.
        return f"{name} data within {name}", f"unpack it once, as with {name} -dc {FEED}"
    return f"{name} data", f"unpack it, as with {name} -dc {FEED}"


def _encoding(opening: bytes, rejected: Sequence[RejectedRecord], main_reason: str) -> tuple[str, str] | None:
    name = _marked_encoding(opening)
    if name is None and len(opening) > 3:  # noqa: PLR2004  # two characters at least
        name = "UTF-16LE" if not any(opening[1:8:2]) else "UTF-16BE" if not any(opening[0:8:2]) else None
    if name is not None and any(opening):
        return name, f"convert it, as with iconv -f {name} -t UTF-8 {FEED}"
    if main_reason != Reason.INVALID_UTF8:
        return None
    if b"\0" in opening or any(b"\0" in record.data for record in rejected):
        return "a binary file", "name a file of JSON lines, with an id and a body each"
    undecodable = [record.data for record in rejected if record.reason == main_reason]
    name = "GB18030" if all(map(_is_gb18030, undecodable)) else "ITS_ENCODING"
    return "text that is not UTF-8", f"convert it, as with iconv -f {name} -t UTF-8 {FEED}"


def _marked_encoding(opening: bytes) -> str | None:
    """Return the encoding given by a byte order mark, except UTF-8; None without a mark."""
    return next((name for mark, name in _WIDE if opening.startswith(mark)), None)


def _is_gb18030(data: bytes) -> bool:
    try:
        text = data.decode("gb18030")
    except UnicodeDecodeError:
        return False
    return any("\u4e00" <= character <= "\u9fff" for character in text)


def _text_shape(opening: bytes, rejected: Sequence[RejectedRecord]) -> tuple[str, str] | None:
    text = opening.removeprefix(BOM_UTF8).strip()
    lines = [record.data.strip() for record in rejected]
    if text.startswith(b"["):
        rows = _parsed(text)
        if isinstance(rows, list) and rows and not isinstance(rows[0], dict):
            return "lines of JSON arrays", "write each article as an object with an id and a body"
        return "a JSON array", f"write one article per line, as with jq -c '.[]' {FEED}"
    if text.startswith(b"<"):
        return "XML or HTML", "convert it to JSON lines: one object with an id and a body per line"
    if text.startswith(b"{'"):
        return "Python dictionaries", "write them as JSON, with json.dumps"
    if text.startswith(b"{") and _parsed(text) is None:
        return _broken_objects(text, lines)
    return _wrapped(text, rejected) or _table(text, lines)


def _broken_objects(text: bytes, lines: Sequence[bytes]) -> tuple[str, str] | None:
    if _is_majority(line.endswith(b"},") for line in lines):
        return "objects separated by commas", f"remove the commas, as with sed 's/,$//' {FEED}"
    if not text.endswith(b"}") and len(lines) > 1 and _is_majority(line[:1] in b'"{}[]' for line in lines):
        return "JSON over several lines", f"write one article per line, as with jq -c . {FEED}"
    if b"}{" in text or b"} {" in text:
        return "several objects per line", f"write one article per line, as with jq -c . {FEED}"
    return None


def _wrapped(text: bytes, rejected: Sequence[RejectedRecord]) -> tuple[str, str] | None:
    """Recognise a single object that holds the articles in a list."""
    whole = _parsed(text) if len(rejected) == 1 else None
    for name, inner in whole.items() if isinstance(whole, dict) else ():
        if isinstance(inner, list) and inner and isinstance(inner[0], dict):
            path = f".{name}[]" if name.isidentifier() and name.isascii() else ".NAME[]"
            return (
                f"one object with a list in {_shown(name)}",
                f"write one article per line, as with jq -c '{path}' {FEED}",
            )
    return None


def _table(text: bytes, lines: Sequence[bytes]) -> tuple[str, str] | None:
    if text[:1] in {b"{", b""} or len(lines) < 2:  # noqa: PLR2004  # a heading and a row
        return None
    for separator, name, do in (
        (b"\t", "TSV", "set source.format=tsv"),
        (b",", "CSV", "set source.format=csv"),
        (b";", "CSV", f"convert it to JSON lines, as with mlr --icsv --ifs ';' --ojsonl cat {FEED}"),
    ):
        columns = text.count(separator)
        if columns and _is_majority(line.count(separator) >= columns for line in lines):
            return name, do
    return None


def _fields(rejected: Sequence[RejectedRecord], fields: FieldMap) -> FormatGuess | None:
    """Guess which fields are missing from their configured places, and list the existing fields."""
    records = [parsed for record in rejected if isinstance(parsed := _parsed(record.data), dict)]
    if not records:
        return None
    seen = Counter(name for record in records for name in _paths(record))
    missing, suggested = [], {}
    for field, path in (("id", fields.id), ("body", fields.body)):
        found = [field_at(record, path) for record in records]
        lacking = sum(not isinstance(value, (str, int)) for value in found)
        if lacking * 2 > len(records):
            what = f"no {path!r}" if all(value is None for value in found) else f"no {_KIND_OF[field]} in {path!r}"
            missing.append(f"{lacking / len(rejected):.0%} have {what}")
            suggested[field] = next((name for name in likely_names(field, seen) if name != path), UNKNOWN)
    if not missing:
        return None
    sentence = f"Of these, {', '.join(missing)}; fields {mapping_advice(suggested, seen, fields.title, _shown)}"
    return FormatGuess(sentence, whole=False)


def mapping_advice(
    missing: Mapping[str, str], found: Mapping[str, int], title: str, shown: Callable[[str], str]
) -> str:
    """Return a text that lists the members or columns, and the options that map the missing fields to them.

    ``missing`` has the suggested name for each missing field; ``found`` counts each existing name. If ``title``, the
    configured name, does not exist, a likely name for the title is suggested, too. ``shown`` formats a name.
    """
    names = dict(missing)
    if title not in found and (titles := likely_names("title", found)):
        names["title"] = titles[0]
    # Suggested names come first, so that the limit does not hide them.
    ordered = sorted(found, key=lambda name: (name not in names.values(), -found[name]))
    listed = ", ".join(map(shown, ordered[:_NAMES_MAX])) + (", …" if len(ordered) > _NAMES_MAX else "")
    options = " ".join(f"--set {shlex.quote(f'source.fields.{field}={name}')}" for field, name in names.items())
    numbered = ". If nothing identifies an article, add a number to each" if names.get("id") == UNKNOWN else ""
    return f"found: {listed}. Add {options}{numbered}"


def likely_names(field: str, paths: Iterable[str]) -> list[str]:
    """Return the paths whose last name is common for this field.

    The most common names come first. Of paths with the same name, the shortest comes first.
    """
    known = _NAMES_OF[field]
    found = [path for path in paths if path.rpartition(".")[2].lower() in known]
    return sorted(found, key=lambda path: (known.index(path.rpartition(".")[2].lower()), path.count(".")))


def _paths(record: Mapping[str, Any]) -> list[str]:
    """Return the paths of texts and numbers, also one level down; all names if there are none."""
    paths = []
    for name, value in record.items():
        inner = value.items() if isinstance(value, dict) else ()
        paths += [f"{name}.{below}" for below, member in inner if isinstance(member, (str, int, float))]
        if isinstance(value, (str, int, float)):
            paths.append(name)
    return paths or list(record)


def _parsed(data: bytes) -> Any:  # noqa: ANN401  # whatever JSON can hold, or None if it is not JSON
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _is_majority(answers: Iterable[bool]) -> bool:
    counted = list(answers)
    return sum(counted) * 2 > len(counted)


def _shown(name: str) -> str:
    return name if len(name) <= _NAME_CHARS_MAX else f"{name[:_NAME_CHARS_MAX]}…"
