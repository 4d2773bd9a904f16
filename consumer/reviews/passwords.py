"""Passwords: Argon2 hashes with the parameters of RFC 9106's second recommendation, which the library has."""

import secrets
from functools import cache
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

PASSWORD_CHARS_MIN: Final = 15
"""The least length that NIST SP 800-63B-4, section 3.1.1.2, asks of a password as the only factor. For new ones."""
PASSWORD_CHARS_MAX: Final = 1_000
_GENERATED_BYTES: Final = 15
_HASHER: Final = PasswordHasher()


def generated() -> str:
    """Return a new password, of 20 letters, digits, - and _."""
    return secrets.token_urlsafe(_GENERATED_BYTES)


def hashed(password: str) -> str:
    """Return what is stored of a password."""
    return _HASHER.hash(password)


def matches(password_hash: str | None, password: str) -> bool:
    """Tell whether a password is the one of a hash.

    Where there is no hash it is compared with another one all the same, since the time that takes would tell who has
    an account.
    """
    try:
        is_right = _HASHER.verify(_nobodys() if password_hash is None else password_hash, password)
    except (VerificationError, InvalidHashError):
        return False
    return is_right and password_hash is not None


def is_outdated(password_hash: str) -> bool:
    """Tell whether a hash was made with other parameters than new ones."""
    return _HASHER.check_needs_rehash(password_hash)


@cache
def _nobodys() -> str:
    return hashed(generated())
