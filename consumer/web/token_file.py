"""The token file: versioned JSON, which is replaced as a whole.

The file is refused if its owner is neither root nor this process's user, if its group may write it, or if other users
have any access to it.

One process at a time changes the file. The process holds the ``flock`` of the folder, because the file itself is
replaced. Readers see the old file or the new one. A killed process leaves either, and its lock is released.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from consumer.model.errors import ConfigError, SinkError
from consumer.text.json_faults import json_fault
from consumer.text.redaction import redacted
from consumer.web.token import (
    NAME_PATTERN,
    NAME_RULE,
    OWNER_CHARS_MAX,
    SECRET,
    Role,
    Token,
    digest_of,
    new_secret,
)
from storage.files import FILE_MODE, WriteOptions, locked_folder, replace_file

SCHEMA: Final = "dupwatch.tokens/1"
TOKENS_MAX: Final = 10_000
FILE_BYTES_MAX: Final = 16 * 1024 * 1024
"""The maximum size of the file. ``TOKENS_MAX`` of the longest tokens take less."""
_OTHERS: Final = stat.S_IWGRP | stat.S_IRWXO
_ROOT: Final = 0

Tokens = tuple[Token, ...]
LIFETIME: Final = timedelta(days=90)
"""The default validity of a token."""
LIFETIME_MAX: Final = timedelta(days=366)
LOCK_S: Final = 10.0
"""How long to wait while another process changes the file. Normally that takes milliseconds."""
_WRITING: Final = WriteOptions(durable=True, mode=FILE_MODE)


class Signature(NamedTuple):
    """The metadata of a file that changes with its content."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int


class _Head(msgspec.Struct, frozen=True):
    """The members that every version of the file has."""

    schema: str


class _Content(_Head, frozen=True, forbid_unknown_fields=True):
    tokens: Tokens


def signature_of(status: os.stat_result) -> Signature:
    """Return the signature of a file."""
    return Signature(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def read_tokens(path: Path) -> Tokens:
    """Return the tokens in a file. Raises ``ConfigError`` if it is missing, unreadable, invalid, or not private."""
    try:
        return load(path)[0]
    except OSError as error:
        raise ConfigError(f"the token file {path} cannot be read: {error.strerror}") from error


def load(path: Path) -> tuple[Tokens, Signature]:
    """Return the tokens in a file, and the signature of the file that was read. Links are followed.

    Raises ``OSError`` if the file cannot be read, and ``ConfigError`` if it is not private or is invalid.
    """
    # Non-blocking, because opening a named pipe would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor has no path
        status = os.fstat(descriptor)
        _check_kind(path, status)
        data = file.read(FILE_BYTES_MAX + 1)
    return parse(path, data), signature_of(status)


def parse(path: Path, data: bytes) -> Tokens:
    """Return the tokens in the content of a file. Raises ``ConfigError``, naming ``path``, if it is invalid."""
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
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # The error may quote a secret that somebody typed into the file.
        raise ConfigError(
            f"the token file {path} is invalid: {redacted(json_fault(error))}; restore it, or make a new one with "
            "dupwatch tokens add"
        ) from None
    _check_tokens(path, tokens)
    return tokens


def encode_tokens(tokens: Tokens) -> bytes:
    """Return the content of a file with these tokens, as readable JSON."""
    return msgspec.json.format(msgspec.json.encode(_Content(SCHEMA, tokens)), indent=1) + b"\n"


def _check_kind(path: Path, status: os.stat_result) -> None:
    """Refuse anything but a regular file that no other user could have written, and that at most the group may read.

    The group may read the file, because Kubernetes mounts Secrets that way. Raises ``IsADirectoryError`` for a folder,
    and ``ConfigError`` for any other file that is refused.
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
            f"the token file {path} belongs to user {status.st_uid}, and this process is user {os.geteuid()}; run the "
            "process as the owner of the file, or change the owner"
        )


def _check_tokens(path: Path, tokens: Tokens) -> None:
    if len(tokens) > TOKENS_MAX:
        raise ConfigError(f"the token file {path} has more than {TOKENS_MAX:,} tokens; name another file")
    for field in ("name", "sha256"):
        values = [getattr(token, field) for token in tokens]
        if len(set(values)) != len(values):
            raise ConfigError(f"two tokens in {path} have the same {field}; remove one of them")


class NewToken(NamedTuple):
    """The properties of a token to add."""

    name: str
    owner: str
    roles: Collection[Role]
    lifetime: timedelta = LIFETIME


def add_token(path: Path, new: NewToken, now: datetime, show: Callable[[str], None]) -> Token:
    """Add a token, ``show`` its secret, and return it. A missing file is created.

    The secret is shown before the file is changed, so that no token has a secret that nobody has seen.
    Raises ``ConfigError`` for invalid values, for a name that has been used before, and for a file that is invalid,
    full or not private. Raises ``SinkError`` if the file cannot be read or changed.
    """
    secret = new_secret()
    token = _checked_token(new, digest_of(secret), now)

    def change(tokens: Tokens) -> Tokens:
        more = with_token(tokens, token)
        show(secret)
        return more

    _change(path, change, makes_file=True)
    return token


def revoke_token(path: Path, name: str, now: datetime) -> tuple[Token, bool]:
    """Revoke a token. Return the revoked token, and whether this call revoked it.

    Raises ``ConfigError`` if there is no token of that name or ``read_tokens`` refuses the file, and ``SinkError`` if
    the file cannot be changed.
    """
    before: list[Token] = []

    def change(tokens: Tokens) -> Tokens:
        before.append(_token_named(tokens, name))
        return with_revoked(tokens, name, now)

    after = _token_named(_change(path, change, makes_file=False), name)
    return after, before[0].revoked_at is None


def with_token(tokens: Tokens, token: Token) -> Tokens:
    """Return the tokens with this one added. Raises ``ConfigError`` if its name is taken, or there are too many."""
    if any(other.name == token.name for other in tokens):
        # Even a revoked token keeps its name, because the audit log contains it.
        raise ConfigError(f"there is, or was, a token named {token.name}; choose another name")
    if len(tokens) >= TOKENS_MAX:
        raise ConfigError(f"the file already has {TOKENS_MAX:,} tokens, the maximum; use a new file")
    return (*tokens, token)


def with_revoked(tokens: Tokens, name: str, now: datetime) -> Tokens:
    """Return the tokens with the named one revoked. Raises ``ConfigError`` if there is no token of that name."""
    revoked = _token_named(tokens, name)
    if revoked.revoked_at is not None:
        return tokens
    return tuple(msgspec.structs.replace(token, revoked_at=now) if token is revoked else token for token in tokens)


def _token_named(tokens: Tokens, name: str) -> Token:
    for token in tokens:
        if token.name == name:
            return token
    what = "a secret is not the name of a token" if SECRET.fullmatch(name) else f"there is no token named {name!r}"
    raise ConfigError(f"{what}; dupwatch tokens list shows the names")


def _checked_token(new: NewToken, digest: str, now: datetime) -> Token:
    if not re.match(NAME_PATTERN, new.name):
        raise ConfigError(f"{new.name!r} cannot name a token; use {NAME_RULE}")
    if not new.owner.isprintable() or not 0 < len(new.owner) <= OWNER_CHARS_MAX:
        raise ConfigError(f"the owner must be 1 to {OWNER_CHARS_MAX} printable characters")
    if not timedelta(0) < new.lifetime <= LIFETIME_MAX:
        raise ConfigError(f"a token is valid for at most {LIFETIME_MAX.days} days; add another one before it expires")
    roles = tuple(role for role in Role if role in new.roles)
    if not roles:
        raise ConfigError(f"a token needs a role: {', '.join(Role)}")
    expires = now + new.lifetime
    return Token(name=new.name, owner=new.owner, roles=roles, sha256=digest, created_at=now, expires_at=expires)


def _change(path: Path, change: Callable[[Tokens], Tokens], *, makes_file: bool) -> Tokens:
    """Change the tokens in a file, and return the new ones. Nothing is written if ``change`` returns equal tokens.

    Unless ``makes_file``, the file must exist.
    """
    if not makes_file:
        # If the file cannot be read at all, its name is probably wrong: report that, not a failed change.
        read_tokens(path)
    try:
        # Replace the file itself, not a link to it.
        target = path.resolve()
        with locked_folder(target.parent, LOCK_S):
            before = () if makes_file and not target.exists() else load(target)[0]
            after = change(before)
            if after != before:
                replace_file(target, target.with_name(f".{target.name}.tmp"), encode_tokens(after), _WRITING)
    except OSError as error:
        raise SinkError(f"the token file {path} cannot be changed: {error.strerror or error}") from error
    return after
