"""Signs messages according to Standard Webhooks: https://github.com/standard-webhooks/standard-webhooks."""

import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Final

SECRET_PREFIX: Final = "whsec_"  # noqa: S105  # a prefix, not a secret
SECRET_BYTES: Final = 32
"""The number of random bytes in a secret. The specification asks for 24 to 64."""


def new_secret() -> str:
    """Return a random secret in the form that receivers get."""
    return SECRET_PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signature(secret: str, message_id: str, at_s: int, body: bytes) -> str:
    """Return the signature of a message. ``at_s`` is the time of sending in seconds since 1970."""
    key = b64decode(secret.removeprefix(SECRET_PREFIX))
    digest = hmac.digest(key, f"{message_id}.{at_s}.".encode() + body, "sha256")
    return f"v1,{b64encode(digest).decode()}"


def signed_headers(message_id: str, at_s: int, body: bytes, signing_secrets: Sequence[str]) -> list[tuple[str, str]]:
    """Return the headers of a message, with one signature per secret."""
    return [
        ("webhook-id", message_id),
        ("webhook-timestamp", str(at_s)),
        ("webhook-signature", " ".join(signature(secret, message_id, at_s, body) for secret in signing_secrets)),
    ]
