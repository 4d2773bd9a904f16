"""The token file: JSON with a version, which is replaced as a whole and read only if nobody else may write to it."""

import errno
import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from consumer.model.errors import ConfigError
from consumer.text.redaction import redacted
from consumer.web.token import Token

SCHEMA: Final = "dupwatch.tokens/1"
TOKENS_MAX: Final = 10_000
FILE_BYTES_MAX: Final = 16 * 1024 * 1024
"""More than ``TOKENS_MAX`` of the longest tokens need."""
_OTHERS: Final = stat.S_IWGRP | stat.S_IRWXO
_ROOT: Final = 0

Tokens = tuple[Token, ...]


class Signature(NamedTuple):
    """What changes with a file: if it is the same, so is the content."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int


class _Head(msgspec.Struct, frozen=True):
    """What every version of the file has."""

    schema: str


class _Content(_Head, frozen=True, forbid_unknown_fields=True):
    tokens: Tokens


def signature_of(status: os.stat_result) -> Signature:
    """Return the signature of a file."""
    return Signature(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def read_tokens(path: Path) -> Tokens:
    """Return the tokens in a file. Raises ``ConfigError`` if it is missing, invalid, or open to other users."""
    try:
        return load(path)[0]
    except OSError as error:
        raise ConfigError(f"the token file {path} cannot be read: {error.strerror}") from error


def load(path: Path) -> tuple[Tokens, Signature]:
    """Return the tokens in a file, and the signature of what was read; a link is followed.

    Raises ``OSError`` where the system does not let it be read, ``ConfigError`` where the content cannot be used.
    """
    # A named pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor has no path
        status = os.fstat(descriptor)
        _check_kind(path, status)
        data = file.read(FILE_BYTES_MAX + 1)
    return parse(path, data), signature_of(status)


def parse(path: Path, data: bytes) -> Tokens:
    """Return the tokens in the content of a file. Raises ``ConfigError``, which names the ``path``."""
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"the token file {path} has more than {FILE_BYTES_MAX:,} bytes; name another file")
    try:
        schema = msgspec.json.decode(data, type=_Head).schema
        if schema != SCHEMA:
            raise ConfigError(
                f"the token file {path} has the schema {schema!r}, and this version of dupwatch reads {SCHEMA}; use "
                "the version that wrote it"
            )
        tokens = msgspec.json.decode(data, type=_Content).tokens
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # The error may quote a secret that somebody typed into the file.
        raise ConfigError(
            f"the token file {path} is invalid: {redacted(str(error))}; restore it, or make a new one with dupwatch "
            "tokens add"
        ) from None
    _check_together(path, tokens)
    return tokens


def encoded(tokens: Tokens) -> bytes:
    """Return the content of a file with these tokens, for programs and for people."""
    return msgspec.json.format(msgspec.json.encode(_Content(SCHEMA, tokens)), indent=1) + b"\n"


def _check_kind(path: Path, status: os.stat_result) -> None:
    """Refuse what is not a file, and a file that another user could have written, or that everybody can read.

    A group may read it, since Kubernetes shows a Secret to a group.
    """
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"the token file {path} is not a regular file; name another one")
    if status.st_mode & _OTHERS:
        raise ConfigError(
            f"the token file {path} has mode {stat.S_IMODE(status.st_mode):04o}, with which other users can read or "
            f"change it; run chmod 600 {path}"
        )
    if status.st_uid not in {_ROOT, os.geteuid()}:
        raise ConfigError(
            f"the token file {path} belongs to user {status.st_uid}, and this process is user {os.geteuid()}; run this "
            "as that user, or give the file to this one"
        )


def _check_together(path: Path, tokens: Tokens) -> None:
    if len(tokens) > TOKENS_MAX:
        raise ConfigError(f"the token file {path} has more than {TOKENS_MAX:,} tokens; name another file")
    for field in ("name", "sha256"):
        values = [getattr(token, field) for token in tokens]
        if len(set(values)) != len(values):
            raise ConfigError(f"two tokens in {path} have the same {field}; remove one of them")
