"""Passwords: Argon2 hashes with the library's parameters, which are RFC 9106's second recommendation."""

import secrets
from functools import cache
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

PASSWORD_CHARS_MIN: Final = 15
"""Minimum length of new passwords: NIST SP 800-63B-4, section 3.1.1.2, for a password as the only factor."""
PASSWORD_CHARS_MAX: Final = 1_000
_GENERATED_BYTES: Final = 15
_HASHER: Final = PasswordHasher()


def new_password() -> str:
    """Return a random password of 20 letters, digits, - and _."""
    return secrets.token_urlsafe(_GENERATED_BYTES)


def hash_of(password: str) -> str:
    """Return the hash of a password, as it is stored."""
    return _HASHER.hash(password)


def matches(password_hash: str | None, password: str) -> bool:
    """Return whether a password matches a hash; False without a hash.

    Without a hash, the password is compared with a dummy hash, so that the response time does not reveal who has an
    account.
    """
    try:
        is_right = _HASHER.verify(_dummy_hash() if password_hash is None else password_hash, password)
    except (VerificationError, InvalidHashError):
        return False
    return is_right and password_hash is not None


def is_outdated(password_hash: str) -> bool:
    """Return whether a hash has other parameters than new hashes."""
    return _HASHER.check_needs_rehash(password_hash)


@cache
def _dummy_hash() -> str:
    return hash_of(new_password())
