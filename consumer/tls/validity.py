"""The validity of certificates, read from their PEM files.

Python's ssl shows the dates of authorities only, and a certificate parser is a large dependency for two dates. So this
module reads the few DER elements before them (ITU-T X.690) of a Certificate (RFC 5280, section 4.1).
"""

import re
import ssl
from datetime import UTC, datetime
from typing import Final, NamedTuple

_PEM: Final = re.compile(
    rb"-----BEGIN (?:TRUSTED )?CERTIFICATE-----.+?-----END (?:TRUSTED )?CERTIFICATE-----", re.DOTALL
)
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_LONG_LENGTH: Final = 0x80
_FIELDS_BEFORE_VALIDITY: Final = 3
"""Serial number, signature algorithm, issuer; an optional version comes before them."""


class Validity(NamedTuple):
    """The period in which a certificate is valid."""

    begins: datetime
    ends: datetime


def validities(pem: bytes) -> list[Validity]:
    """Return the validity of each certificate in a PEM file. Raises ``ValueError`` if one cannot be read."""
    return [_validity(ssl.PEM_cert_to_DER_cert(found.decode("ascii"))) for found in _PEM.findall(pem)]


def _validity(der: bytes) -> Validity:
    try:
        _, certificate, _ = _element(der)
        _, signed, _ = _element(certificate)
        tag, _, rest = _element(signed)
        if tag != _VERSION:
            rest = signed
        for _ in range(_FIELDS_BEFORE_VALIDITY):
            _, _, rest = _element(rest)
        _, dates, _ = _element(rest)
        begin_tag, begins, rest = _element(dates)
        end_tag, ends, _ = _element(rest)
    except IndexError as error:
        raise ValueError("the certificate is truncated") from error
    return Validity(_time(begin_tag, begins), _time(end_tag, ends))


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    """Return the tag and the content of the first element, and the bytes after it."""
    length, begin = data[1], 2
    if length >= _LONG_LENGTH:
        begin += length - _LONG_LENGTH
        length = int.from_bytes(data[2:begin], "big")
    return data[0], data[begin : begin + length], data[begin + length :]


def _time(tag: int, digits: bytes) -> datetime:
    """Return a point in time. For the two-digit years of UTCTime strptime is right from 1969 on."""
    pattern = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(digits.decode("ascii"), pattern).replace(tzinfo=UTC)
