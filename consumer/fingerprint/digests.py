"""Leading bits of MD5 and SHA-1 as hashes of words.

Source: RFC 1321 and FIPS 180-4. They are used for their even spread only, not for security.
"""

import hashlib


def md5_64(word: str) -> int:
    """Take the leading 64 bits of the MD5 of a word's UTF-8."""
    return md5_128(word) >> 64


def md5_128(word: str) -> int:
    """Take the MD5 of a word's UTF-8."""
    return int.from_bytes(hashlib.md5(word.encode(), usedforsecurity=False).digest())


def sha1_64(word: str) -> int:
    """Take the leading 64 bits of the SHA-1 of a word's UTF-8."""
    return sha1_128(word) >> 64


def sha1_128(word: str) -> int:
    """Take the leading 128 of the 160 bits of the SHA-1 of a word's UTF-8."""
    return int.from_bytes(hashlib.sha1(word.encode(), usedforsecurity=False).digest()[:16])
