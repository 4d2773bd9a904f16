"""The token file: JSON with a version, which is replaced as a whole and read only if nobody else may write to it.

It is changed by one process at a time, and for readers all at once. Whoever changes the file holds the ``flock`` of its
folder meanwhile, since the file itself is replaced. A process that is killed leaves the old file or the new one, and
the lock goes with it.
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
from storage.files import FILE_MODE, FileWriting, locked_folder, replace_file

SCHEMA: Final = "dupwatch.tokens/1"
TOKENS_MAX: Final = 10_000
FILE_BYTES_MAX: Final = 16 * 1024 * 1024
"""More than ``TOKENS_MAX`` of the longest tokens need."""
_OTHERS: Final = stat.S_IWGRP | stat.S_IRWXO
_ROOT: Final = 0

Tokens = tuple[Token, ...]
LIFETIME: Final = timedelta(days=90)
"""How long a token is valid unless something else is asked for."""
LIFETIME_MAX: Final = timedelta(days=366)
LOCK_S: Final = 10.0
"""How long to wait for another process that changes the file; it needs milliseconds."""
_WRITING: Final = FileWriting(durable=True, mode=FILE_MODE)


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


class NewToken(NamedTuple):
    """What a token is to be."""

    name: str
    owner: str
    roles: Collection[Role]
    lifetime: timedelta = LIFETIME


def add_token(path: Path, wanted: NewToken, now: datetime, show: Callable[[str], None]) -> Token:
    """Add a token, to a new file if there is none, ``show`` its secret, and return it.

    It is shown before the file is changed: if that fails, no token is left behind whose secret nobody has. Raises
    ``ConfigError`` for invalid values and for a name that was ever used, ``SinkError`` where the file cannot be
    changed.
    """
    secret = new_secret()
    token = _token(wanted, digest_of(secret), now)

    def change(tokens: Tokens) -> Tokens:
        more = with_token(tokens, token)
        show(secret)
        return more

    _change(path, change, makes_file=True)
    return token


def revoke_token(path: Path, name: str, now: datetime) -> tuple[Token, bool]:
    """Revoke a token; return it as it is now, and whether this call revoked it.

    Raises ``ConfigError`` if there is no token of that name, ``SinkError`` where the file cannot be changed.
    """
    before: list[Token] = []

    def change(tokens: Tokens) -> Tokens:
        before.append(_named(tokens, name))
        return with_revoked(tokens, name, now)

    after = _named(_change(path, change, makes_file=False), name)
    return after, before[0].revoked_at is None


def with_token(tokens: Tokens, token: Token) -> Tokens:
    """Return the tokens with one more. Raises ``ConfigError`` if its name is taken, or there is no place."""
    if any(other.name == token.name for other in tokens):
        # Even a revoked one keeps its name: the audit log has it.
        raise ConfigError(f"there is, or was, a token named {token.name}; choose another name")
    if len(tokens) >= TOKENS_MAX:
        raise ConfigError(f"the file has {TOKENS_MAX:,} tokens, which is the most; begin a new one")
    return (*tokens, token)


def with_revoked(tokens: Tokens, name: str, now: datetime) -> Tokens:
    """Return the tokens with this one revoked. Raises ``ConfigError`` if there is none of that name."""
    revoked = _named(tokens, name)
    if revoked.revoked_at is not None:
        return tokens
    return tuple(msgspec.structs.replace(token, revoked_at=now) if token is revoked else token for token in tokens)


def _named(tokens: Tokens, name: str) -> Token:
    for token in tokens:
        if token.name == name:
            return token
    what = "a secret is not the name of a token" if SECRET.fullmatch(name) else f"there is no token named {name!r}"
    raise ConfigError(f"{what}; dupwatch tokens list shows the names")


def _token(wanted: NewToken, digest: str, now: datetime) -> Token:
    if not re.match(NAME_PATTERN, wanted.name):
        raise ConfigError(f"{wanted.name!r} cannot name a token; use {NAME_RULE}")
    if not wanted.owner.isprintable() or not 0 < len(wanted.owner) <= OWNER_CHARS_MAX:
        raise ConfigError(f"the owner must be 1 to {OWNER_CHARS_MAX} printable characters")
    if not timedelta(0) < wanted.lifetime <= LIFETIME_MAX:
        raise ConfigError(f"a token is valid for at most {LIFETIME_MAX.days} days; add another one before it expires")
    roles = tuple(role for role in Role if role in wanted.roles)
    if not roles:
        raise ConfigError(f"a token needs a role: {', '.join(Role)}")
    expires = now + wanted.lifetime
    return Token(name=wanted.name, owner=wanted.owner, roles=roles, sha256=digest, created_at=now, expires_at=expires)


def _change(path: Path, change: Callable[[Tokens], Tokens], *, makes_file: bool) -> Tokens:
    """Replace the content of a file, and return it. Nothing is written if nothing has changed."""
    try:
        # The file, not a link to it, is replaced.
        target = path.resolve()
        with locked_folder(target.parent, LOCK_S):
            before = _loaded(target, makes_file=makes_file)
            after = change(before)
            if after != before:
                replace_file(target, target.with_name(f".{target.name}.tmp"), encoded(after), _WRITING)
    except OSError as error:
        raise SinkError(f"the token file {path} cannot be changed: {error.strerror or error}") from error
    return after


def _loaded(path: Path, *, makes_file: bool) -> Tokens:
    try:
        return load(path)[0]
    except FileNotFoundError:
        if makes_file:
            return ()
        raise
