"""The binding of a store: the settings that decide its verdicts, and the secret that keys its sketches.

Both are stored in one cell, which is written once by compare-and-set, so that two consumers that start together agree
on one secret. The cell is the canonical JSON of the settings; a keyed scheme adds the member ``secret``, in hex. Only
this module reads the whole cell. Code that shows or compares settings calls ``settings_in``.
"""

import json
from typing import Any, Final, NamedTuple, Self

from consumer.fingerprint import PUBLISHED_SECRET, Secret
from consumer.judge.settings import JudgeSettings

_SECRET: Final = "secret"  # noqa: S105  # the name of a member
_KEYED: Final = "+"
"""Separates the name of a scheme from the id of the secret."""


class Binding(NamedTuple):
    """The settings of a store and its secret. An unkeyed scheme has the published secret and ignores it."""

    settings: JudgeSettings
    secret: Secret = PUBLISHED_SECRET

    @property
    def scheme(self) -> str:
        """The scheme of stored records, with the id of the secret: records made with two secrets are never compared."""
        scheme = self.settings.scheme
        return f"{scheme.name}{_KEYED}{self.secret.id}" if scheme.definition.compares_letters else scheme.name

    def encode(self) -> bytes:
        """Return the cell of the store."""
        settings = self.settings.encode()
        if not self.settings.scheme.definition.compares_letters:
            return settings
        return _canonical(json.loads(settings) | {_SECRET: self.secret.hex()})

    @classmethod
    def decode(cls, cell: bytes) -> Self:
        """Return the binding of a store. Raises ValueError if this version of dupwatch cannot judge by it."""
        settings = JudgeSettings.decode(settings_in(cell))
        secret = secret_in(cell)
        if settings.scheme.definition.compares_letters != (secret is not None):
            problem = (
                "has a secret that it does not use" if secret is not None else "needs a secret, but the store has none"
            )
            raise ValueError(f"scheme {settings.scheme.name} {problem}")
        return cls(settings) if secret is None else cls(settings, secret)


def is_keyed(scheme: str) -> bool:
    """Return whether a record with this scheme was made with a secret."""
    return _KEYED in scheme


def settings_in(cell: bytes) -> bytes:
    """Return the encoded settings in a store's cell, without its secret. Raises ValueError if it is not JSON."""
    described: Any = json.loads(cell)
    if not isinstance(described, dict) or _SECRET not in described:
        return cell
    return _canonical({name: value for name, value in described.items() if name != _SECRET})


def secret_in(cell: bytes) -> Secret | None:
    """Return the secret in a store's cell, or None if it has none. Raises ValueError if it is not a secret."""
    described: Any = json.loads(cell)
    digits = described.get(_SECRET) if isinstance(described, dict) else None
    return None if digits is None else Secret.from_hex(str(digits))


def _canonical(described: dict[str, Any]) -> bytes:
    return json.dumps(described, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
