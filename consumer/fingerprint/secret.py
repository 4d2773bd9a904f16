"""The secret of a store, which keys the hashes of its shingles.

Without it nobody can compute which letters of a text decide its sketch. Sketches with different secrets are never
compared.
"""

import hashlib
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from typing_extensions import override

SECRET_BYTES: Final = 32
_ID_BYTES: Final = 4
_KEY_BYTES: Final = 8


class HashKey(NamedTuple):
    """The key of shingle hashes: three numbers of 64 bits.

    ``base``, which is odd, is the base of the polynomial of a shingle's characters. ``first`` and ``second`` are the
    key of SipHash, which hashes the polynomial.
    """

    base: int
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret of 32 bytes, which ``repr`` and ``str`` do not show. Raises ``ValueError`` for other lengths."""

    content: bytes

    def __post_init__(self) -> None:
        """Check the length."""
        if len(self.content) != SECRET_BYTES:
            raise ValueError(f"a secret has {SECRET_BYTES} bytes, not {len(self.content)}")

    @override
    def __repr__(self) -> str:
        return f"Secret(id={self.id!r})"

    @classmethod
    def from_hex(cls, digits: str) -> Self:
        """Return the secret with these 64 hexadecimal digits. Raises ``ValueError``, whose message omits them."""
        try:
            return cls(bytes.fromhex(digits))
        except ValueError:
            raise ValueError(f"a secret is written as {2 * SECRET_BYTES} hexadecimal digits") from None

    def hex(self) -> str:
        """Return the 64 hexadecimal digits, for files that nobody else may read."""
        return self.content.hex()

    @property
    def id(self) -> str:
        """The 8 hexadecimal digits that name this secret without revealing it."""
        return self._derived(b"secret-id", _ID_BYTES).hex()

    @property
    def hash_key(self) -> HashKey:
        """The key of shingle hashes."""
        base = int.from_bytes(self._derived(b"shingle-base", _KEY_BYTES), "little")
        sip = self._derived(b"shingle-siphash", 2 * _KEY_BYTES)
        return HashKey(base | 1, int.from_bytes(sip[:_KEY_BYTES], "little"), int.from_bytes(sip[_KEY_BYTES:], "little"))

    @property
    def seal_key(self) -> bytes:
        """The key of seals, which prove that the writer of a file knew the secret."""
        return self._derived(b"seal", SECRET_BYTES)

    def _derived(self, purpose: bytes, size: int) -> bytes:
        return hashlib.blake2b(digest_size=size, key=self.content, person=purpose).digest()


PUBLISHED_SECRET: Final = Secret(b"dupwatch: everybody knows this. ")
"""The secret for texts that are compared without a lasting store. It protects nothing."""
