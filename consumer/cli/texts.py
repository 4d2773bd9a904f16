"""Texts that commands are given by name."""

import sys
from pathlib import Path
from typing import NamedTuple

from consumer.app import STREAM, decoder
from consumer.config import Config
from consumer.errors import BadRecord, SourceError


class NamedText(NamedTuple):
    """A text, how it was named, and the language it declares, "" for none."""

    name: str
    text: str
    language: str


def read_text(source: str, config: Config) -> NamedText:
    """Read an article's body where ``source`` is an article as JSON, else the whole of it; ``-`` is standard input.

    ``SourceError`` where it cannot be read or is too long.
    """
    bytes_max = config.source.record_bytes_max
    try:
        if source == STREAM:
            data = sys.stdin.buffer.read(bytes_max + 1)
        else:
            with Path(source).open("rb") as file:
                data = file.read(bytes_max + 1)
    except OSError as error:
        raise SourceError(f"{source!r} cannot be read: {error.strerror}") from error
    if len(data) > bytes_max:
        raise SourceError(f"{source!r} is longer than {bytes_max} bytes; raise source.record_bytes_max to allow that")
    try:
        article = decoder(config)(data)
    except BadRecord:
        return NamedText(source, data.decode(errors="replace"), "")
    return NamedText(source, article.body or "", article.lang)
