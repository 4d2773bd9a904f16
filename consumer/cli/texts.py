"""Articles and texts that commands are given by name."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from consumer.config.config import Config
from consumer.decode.codecs import Codec, codec_of
from consumer.decode.json_value import parse_json
from consumer.model.article import Article, Reason
from consumer.model.errors import BadRecord, ConfigError, SourceError
from consumer.wiring.parts import STREAM, decoder

_NO_ARTICLE: Final = frozenset({Reason.INVALID_JSON, Reason.NOT_AN_OBJECT, Reason.INVALID_UTF8})
_UTF8_BOM: Final = b"\xef\xbb\xbf"
_UTF16_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")
_CHUNK_BYTES: Final = 256 * 1024
_HEAD_BYTES: Final = 64 * 1024
_LINES_LOOKED_AT: Final = 8


class NamedText(NamedTuple):
    """A text, how it was named, and the language it declares, "" for none."""

    name: str
    text: str
    language: str


def read_text(source: str, config: Config) -> NamedText:
    """The body of the one article that ``read_article`` finds, or the text that it takes for one."""
    article = read_article(source, config)
    return NamedText(source, article.body or "", article.lang)


def check_one_stream(sources: Sequence[str]) -> None:
    """Refuse to read standard input twice."""
    if sources.count(STREAM) > 1:
        raise ConfigError("standard input can be one of the two texts, not both")


def is_text(name: str) -> bool:
    """Whether a name is of a file, a pipe or standard input; an id may be longer than any file's name.

    ``SourceError`` where this user may not know.
    """
    path = Path(name)
    try:
        return name == STREAM or (path.exists() and not path.is_dir())
    except PermissionError as error:
        raise SourceError(f"{name!r} cannot be read: {error.strerror}") from error
    except (OSError, ValueError):
        return False


def is_one_article(source: str, config: Config) -> bool:
    """Whether a regular file is what ``read_article`` takes, told by its beginning, and not JSON lines."""
    try:
        with Path(source).open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise SourceError(f"{source!r} cannot be read: {error.strerror}") from error
    if (codec := codec_of(head)) is not None:
        head = _beginning(codec, head)
    lines = head.removeprefix(_UTF8_BOM).strip().splitlines()
    if not lines:
        return False
    if not lines[0].startswith((b"{", b"[")):
        return not any(isinstance(_parsed(line), dict) for line in lines)
    # One object over several lines is an article. What is none may be lines that all have a fault.
    first_is_whole = isinstance(_parsed(lines[0]), dict)
    return not first_is_whole and isinstance(_parsed(_read(source, config.source.record_bytes_max)), dict)


def _beginning(codec: Codec, compressed: bytes) -> bytes:
    """Return what the first bytes of compressed data decompress to, as far as possible."""
    parts: list[bytes] = []
    with suppress(BadRecord):
        parts.extend(islice(codec.decompress(iter([compressed]), _HEAD_BYTES), 1))
    return b"".join(parts)


def read_article(source: str, config: Config) -> Article:
    """The one article in a file: a JSON object, or else the whole of it as a plain text; ``-`` is standard input.

    Gzip data is decompressed. ``SourceError`` where the file cannot be read, is too long, is not text in UTF-8, or
    holds several articles, and ``ConfigError`` where it is an article with a fault or a retraction.
    """
    data = _read(source, config.source.record_bytes_max)
    name = "standard input" if source == STREAM else source
    try:
        article = decoder(config)(data)
    except BadRecord as error:
        is_object = data.removeprefix(_UTF8_BOM).lstrip().startswith(b"{")
        if is_object and error.reason not in _NO_ARTICLE:
            raise ConfigError(f"{name} is an article with a fault: {error.detail}") from error
        return Article(id=source, body=_text(name, data))
    if article.body is None:
        raise ConfigError(f"{name} is a retraction: its body is null, so it has no text. Name an article with a text.")
    return article


def _read(source: str, bytes_max: int) -> bytes:
    try:
        if source == STREAM:
            data = sys.stdin.buffer.read(bytes_max + 1)
        else:
            with Path(source).open("rb") as file:
                data = file.read(bytes_max + 1)
        if (codec := codec_of(data)) is not None:
            data = _decompressed(codec, source, data, bytes_max)
    except OSError as error:
        raise SourceError(f"{source!r} cannot be read: {error.strerror}") from error
    if len(data) > bytes_max:
        raise SourceError(f"{source!r} is longer than {bytes_max} bytes; raise source.record_bytes_max to allow that")
    return data


def _decompressed(codec: Codec, source: str, data: bytes, bytes_max: int) -> bytes:
    parts: list[bytes] = []
    size_bytes = 0
    try:
        for part in codec.decompress(iter([data]), _CHUNK_BYTES):
            parts.append(part)
            size_bytes += len(part)
            if size_bytes > bytes_max:
                break
    except BadRecord as error:
        raise SourceError(f"{source} is {codec.name} data that cannot be read: {error.detail}") from error
    return b"".join(parts)


def _text(source: str, data: bytes) -> str:
    """The whole as a plain text; the line end that editors put behind the last line is the file's."""
    if data.startswith(_UTF16_BOMS):
        raise _not_utf8(source, "it begins with the byte order mark of UTF-16", "UTF-16")
    if b"\0" in data:
        raise SourceError(
            f"{source} is not a text: there is a NUL byte at byte {data.index(0)}. Name a text in UTF-8, or an article "
            "as JSON."
        )
    try:
        text = data.removeprefix(_UTF8_BOM).decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(source, f"{error.reason} at byte {error.start}", "LATIN1") from error
    if _holds_articles(text):
        raise SourceError(
            f"{source} holds several articles, and this command takes one: pipe one line of it into the command, with "
            "- for the file's name. To judge all of them use dupwatch run or dupwatch query."
        )
    if _is_array_of_objects(text):
        raise SourceError(
            f"{source} is a JSON array of objects, and this command takes one article. Make JSON lines of it, as in "
            f"jq -c '.[]' {source}, and give it one of them."
        )
    return text.removesuffix("\n").removesuffix("\r")


def _not_utf8(source: str, why: str, encoding: str) -> SourceError:
    return SourceError(
        f"{source} is not UTF-8: {why}. Convert it from its own encoding, as in "
        f"iconv -f {encoding} -t UTF-8 {source} > text.txt"
    )


def _holds_articles(text: str) -> bool:
    """Whether one of the first lines is a whole JSON object: then these are JSON lines."""
    begins = text.lstrip()
    lines = begins.split("\n", _LINES_LOOKED_AT)[:_LINES_LOOKED_AT]
    return begins.startswith("{") and any(isinstance(_parsed(line.encode()), dict) for line in lines)


def _is_array_of_objects(text: str) -> bool:
    whole = _parsed(text.encode()) if text.lstrip().startswith("[") else None
    return isinstance(whole, list) and bool(whole) and isinstance(whole[0], dict)


def _parsed(data: bytes) -> object:
    try:
        return parse_json(data)
    except BadRecord:
        return None
