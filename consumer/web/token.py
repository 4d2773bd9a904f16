"""Tokens: their owners, roles and validity.

A secret is ``dupwatch_`` and 256 random bits in hexadecimal. The prefix lets scanners find a secret that was published
by mistake. Only its SHA-256 is stored. Slow hashes (bcrypt, Argon2) protect passwords, which can be guessed. Nobody can
try 2**256 secrets, and a slow hash would delay every request.
"""

import re
import secrets
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from consumer.text.redaction import TOKEN_PREFIX

OWNER_CHARS_MAX: Final = 100
NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z"
NAME_RULE: Final = "1 to 64 letters, digits, dots, hyphens or underscores, beginning with a letter or a digit"
SECRET: Final = re.compile(rf"{TOKEN_PREFIX}[0-9a-f]{{64}}")
_SECRET_BYTES: Final = 32


class Role(StrEnum):
    """A permission of a token. No role includes another, so a token for two purposes has two roles."""

    READER = "reader"
    """Check texts, and read articles, banks, statistics and metrics."""
    WRITER = "writer"
    """Judge and store articles, and retract them."""
    REVIEWER = "reviewer"
    """Release flagged articles, and change the items of deny banks."""
    ADMIN = "admin"
    """Manage tokens, read the audit log, and change banks and the items of allow banks."""


class Caller(NamedTuple):
    """An authenticated caller: the name of the token, which is not secret, its owner, and its roles."""

    name: str
    owner: str
    roles: frozenset[Role]


RefusalReason = Literal["unknown", "expired", "revoked", "unchecked"]


class TokenRefusal(NamedTuple):
    """Why a secret is refused, and the name of its token if it is known.

    ``unchecked``: the token file has been unreadable for so long that the known tokens are no longer trusted.
    """

    reason: RefusalReason
    name: str | None = None


class Token(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token as it is stored, without its secret. It is valid until just before ``expires_at``, unless revoked.

    Raises ``ValueError`` for an owner with unprintable characters, a repeated role, or an end that is not after the
    creation.
    """

    name: Annotated[str, Meta(pattern=NAME_PATTERN)]
    owner: Annotated[str, Meta(min_length=1, max_length=OWNER_CHARS_MAX)]
    roles: Annotated[tuple[Role, ...], Meta(min_length=1)]
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    created_at: Annotated[datetime, Meta(tz=True)]
    expires_at: Annotated[datetime, Meta(tz=True)]
    revoked_at: Annotated[datetime, Meta(tz=True)] | None = None

    def __post_init__(self) -> None:
        if not self.owner.isprintable():
            raise ValueError("owner has an unprintable character")
        if len(set(self.roles)) != len(self.roles):
            raise ValueError("roles names a role twice")
        if self.expires_at <= self.created_at:
            raise ValueError("expires_at is not after created_at")

    @property
    def caller(self) -> Caller:
        """The caller with this token."""
        return Caller(self.name, self.owner, frozenset(self.roles))

    def state(self, now: datetime) -> Literal["valid", "expired", "revoked"]:
        """Return whether the token is valid, expired or revoked. A revoked token stays revoked after it expires."""
        if self.revoked_at is not None:
            return "revoked"
        return "valid" if now < self.expires_at else "expired"


def new_secret() -> str:
    """Return a new random secret."""
    return TOKEN_PREFIX + secrets.token_hex(_SECRET_BYTES)


def digest_of(secret: str) -> str:
    """Return the SHA-256 of a secret in hexadecimal, which is stored in place of the secret."""
    return sha256(secret.encode()).hexdigest()


def current_time() -> datetime:
    """Return the current time in UTC and whole seconds, as in tokens."""
    return datetime.now(UTC).replace(microsecond=0)
