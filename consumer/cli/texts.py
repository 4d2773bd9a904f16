"""Reads articles and texts from a file or standard input."""

import sys
from codecs import BOM_UTF8
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from consumer.config.config import Config
from consumer.decode.codecs import Codec, codec_of
from consumer.decode.json_value import parse_json
from consumer.files.source import STREAM
from consumer.model.article import Article, Reason
from consumer.model.errors import BadRecord, ConfigError, SourceError
from consumer.text.counts import counted
from consumer.wiring.components import decoder, file_form

_TEXT_REASONS: Final = frozenset({Reason.INVALID_JSON, Reason.NOT_AN_OBJECT, Reason.INVALID_UTF8})
"""A file with one of these faults is read as plain text, even if it begins with a brace."""
_UTF16_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")
_CHUNK_BYTES: Final = 256 * 1024
_HEAD_BYTES: Final = 64 * 1024
_LINES_EXAMINED: Final = 8


class NamedText(NamedTuple):
    """A text, the name of its file, and its declared language, or "" for none."""

    name: str
    text: str
    language: str


def read_text(source: str, config: Config) -> NamedText:
    """Return the text of the article that ``read_article`` reads, and raise the same errors."""
    article = read_article(source, config)
    return NamedText(source, article.body or "", article.lang)


def input_name(source: str) -> str:
    """Return the name of a file or of standard input in messages."""
    return "standard input" if source == STREAM else source


def no_valid_article(source: str, lines: int, first_fault: str) -> SourceError:
    """Return the error for a feed without a valid article. ``first_fault`` includes the number of its line."""
    return SourceError(
        f"no valid article in {input_name(source)}: {counted(lines, 'line')} failed ({first_fault}). Check "
        "source.format and source.encoding, and map other field names with --set source.fields.body=NAME."
    )


def check_one_stream(sources: Sequence[str]) -> None:
    """Raise ``ConfigError`` if standard input would be read twice."""
    if sources.count(STREAM) > 1:
        raise ConfigError("both texts are standard input; name a file for one of them")


def is_folder(name: str) -> bool:
    """Return whether a folder has this name; False for an id or a text that is too long for a file name."""
    with suppress(OSError, ValueError):
        return Path(name).is_dir()
    return False


def is_text(name: str) -> bool:
    """Return whether a file, a pipe or standard input has this name; False for an id too long for a file name.

    Raises ``SourceError`` if this user has no permission to find out.
    """
    path = Path(name)
    try:
        return name == STREAM or (path.exists() and not path.is_dir())
    except PermissionError as error:
        raise SourceError(f"{name!r} cannot be read: {error.strerror}") from error
    except (OSError, ValueError):
        return False


def is_one_article(source: str, config: Config) -> bool:
    """Return whether a regular file holds one article for ``read_article``, and not JSON lines or a table.

    A file is JSON lines if one of its first lines is an object. An array of objects also counts as JSON lines, and
    each of its lines is then an error. So do an empty file, and a file that begins with a brace or a bracket and is too
    long for one article or damaged. Anything else is one article: an object over several lines, or a text, which may
    begin with a brace or a bracket. Raises ``SourceError`` if the file cannot be read.
    """
    if file_form(config).separator(Path(source)) is not None:
        return False
    try:
        with Path(source).open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise SourceError(f"{source!r} cannot be read: {error.strerror}") from error
    if (codec := codec_of(head)) is not None:
        head = _beginning(codec, head)
    lines = head.removeprefix(BOM_UTF8).strip().splitlines()
    if not lines:
        return False
    if lines[0].startswith((b"{", b"[")) and not isinstance(_parse_or_none(lines[0]), dict):
        try:
            whole = _read(source, config.source.record_bytes_max).removeprefix(BOM_UTF8).strip()
        except SourceError:
            # The file is too long for one article, or its compressed data is damaged.
            return False
        # The first line may be longer than the head that was read.
        lines[0] = whole.split(b"\n", 1)[0]
        if isinstance(_parse_or_none(whole), dict):
            return lines[0] != whole
        if _is_array_of_objects(whole):
            return False
    return not any(isinstance(_parse_or_none(line), dict) for line in lines)


def _beginning(codec: Codec, compressed: bytes) -> bytes:
    """Return the beginning of compressed data, decompressed; no bytes if it cannot be decompressed."""
    parts: list[bytes] = []
    with suppress(BadRecord):
        parts.extend(islice(codec.decompress(iter([compressed]), _HEAD_BYTES), 1))
    return b"".join(parts)


def read_article(source: str, config: Config) -> Article:
    """Return the one article in a file: a JSON object, or else the whole file as plain text; ``-`` is standard input.

    Gzip and zstd data are decompressed. Raises ``SourceError`` if the file cannot be read or decompressed, is too long,
    is not UTF-8 text, or holds several articles or an array of them. Raises ``ConfigError`` for an invalid article or a
    retraction.
    """
    data = _read(source, config.source.record_bytes_max)
    name = input_name(source)
    try:
        article = decoder(config)(data)
    except BadRecord as error:
        is_object = data.removeprefix(BOM_UTF8).lstrip().startswith(b"{")
        if is_object and error.reason not in _TEXT_REASONS:
            raise ConfigError(f"invalid article in {name}: {error.detail}") from error
        return Article(id=source, body=_text(name, data))
    if article.body is None:
        raise ConfigError(f"{name} is a retraction: its body is null. Name an article with a text.")
    return article


def _read(source: str, bytes_max: int) -> bytes:
    try:
        if source == STREAM:
            data = sys.stdin.buffer.read(bytes_max + 1)
        else:
            with Path(source).open("rb") as file:
                data = file.read(bytes_max + 1)
        if (codec := codec_of(data)) is not None:
            data = _decompress(codec, source, data, bytes_max)
    except OSError as error:
        raise SourceError(f"{source!r} cannot be read: {error.strerror}") from error
    if len(data) > bytes_max:
        raise SourceError(f"{source!r} is longer than {bytes_max} bytes; raise source.record_bytes_max to allow it")
    return data


def _decompress(codec: Codec, source: str, data: bytes, bytes_max: int) -> bytes:
    parts: list[bytes] = []
    size_bytes = 0
    try:
        for part in codec.decompress(iter([data]), _CHUNK_BYTES):
            parts.append(part)
            size_bytes += len(part)
            if size_bytes > bytes_max:
                break
    except BadRecord as error:
        raise SourceError(f"cannot decompress {source}: {error.detail}") from error
    return b"".join(parts)


def _text(source: str, data: bytes) -> str:
    """Return the whole file as plain text, without the line end after the last line. Raises ``SourceError``."""
    if data.startswith(_UTF16_BOMS):
        raise _not_utf8(source, "it begins with a UTF-16 byte order mark", "UTF-16")
    if b"\0" in data:
        raise SourceError(
            f"{source} is not text: it has a NUL at byte {data.index(0)}. Name a text in UTF-8, or an article as JSON."
        )
    try:
        text = data.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(source, f"{error.reason} at byte {error.start}", "LATIN1") from error
    if _holds_articles(text):
        raise SourceError(
            f"{source} holds several articles, and this command takes one: pipe one line into it, with - as the file. "
            "To judge all of them, use dupwatch run or dupwatch query."
        )
    if _is_array_of_objects(data.removeprefix(BOM_UTF8)):
        raise SourceError(
            f"{source} is a JSON array, and this command takes one article. Convert it to JSON lines with "
            f"jq -c '.[]' {source}, and use one line."
        )
    return text.removesuffix("\n").removesuffix("\r")


def _not_utf8(source: str, fault: str, encoding: str) -> SourceError:
    return SourceError(
        f"{source} is not UTF-8: {fault}. Convert it, for example with iconv -f {encoding} -t UTF-8 {source} > text.txt"
    )


def _holds_articles(text: str) -> bool:
    """Return whether the text is JSON lines: it begins with a brace, and one of its first lines is an object."""
    begins = text.lstrip()
    lines = begins.split("\n", _LINES_EXAMINED)[:_LINES_EXAMINED]
    return begins.startswith("{") and any(isinstance(_parse_or_none(line.encode()), dict) for line in lines)


def _is_array_of_objects(data: bytes) -> bool:
    whole = _parse_or_none(data) if data.lstrip().startswith(b"[") else None
    return isinstance(whole, list) and bool(whole) and isinstance(whole[0], dict)


def _parse_or_none(data: bytes) -> object:
    try:
        return parse_json(data)
    except BadRecord:
        return None
