"""The certificate of a server, reloaded when its files change, and the validity of certificates.

Loading into a context that is in use would race with handshakes, and would leave a certificate without its key if the
new files do not match. So each pair of files gets a context of its own. The server keeps its first context, whose
callback hands each connection to the newest one. OpenSSL calls this callback in every handshake, with or without a
server name.

Python's ssl shows the dates of authorities only, and a certificate parser is a large dependency for two dates. So this
module reads the few DER elements (ITU-T X.690) that precede them in a Certificate (RFC 5280, section 4.1).
"""

import logging
import os
import re
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from consumer.lifecycle.background import PeriodicCheck
from consumer.model.errors import ConfigError
from consumer.web.token_file import Signature, signature_of

log = logging.getLogger("dupwatch")

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


class CertificateFiles(NamedTuple):
    """The PEM files of a certificate with its chain, and of its key. Without ``key``, both are in one file.

    They are ``tls_certificate`` and ``tls_key`` in ``section`` of the configuration.
    """

    section: str
    certificate: str
    key: str | None


class CertificateLoaded(NamedTuple):
    """The server now uses a new certificate. ``ends`` is the earliest expiry in its chain."""

    ends: datetime


class CertificateReloadFailed(NamedTuple):
    """The files cannot be used, so the server keeps its old certificate. Reported at every attempt."""

    error: str


class _LoadedCertificate(NamedTuple):
    """A context with a certificate, the earliest expiry in its chain, and the signatures of the files read."""

    context: ssl.SSLContext
    ends: datetime
    signature: tuple[Signature, ...]


class ServedCertificate:
    """The certificate of a server. Any number of threads may serve with ``context``.

    One thread has to ``look`` at the files about every second, so that handshakes never wait for the file system. While
    the files cannot be used, for example because only one of them is new, the server keeps its old certificate.
    ``report`` gets the occurrences of this module. Raises ``ConfigError`` if the files cannot be used at the start.
    """

    def __init__(self, files: CertificateFiles, report: Callable[[object], None]) -> None:
        self._files = files
        self._report = report
        self._fault: str | None = None
        self._loaded = _load(files)
        self.context = self._loaded.context
        self.context.sni_callback = self._hand_over
        self._report(CertificateLoaded(self._loaded.ends))

    def periodic_check(self) -> PeriodicCheck:
        """Return a context manager that calls ``look`` in a thread of its own."""
        return PeriodicCheck("certificate", self.look)

    def _hand_over(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._loaded.context

    def look(self) -> None:
        """Check the files, and load them if they have changed, or could not be used the last time."""
        try:
            if self._fault is None and self._loaded.signature == _signature(self._files):
                return
            self._loaded = _load(self._files)
        except OSError as error:
            self._keep_old(str(_unusable(self._files, error)))
        except ConfigError as error:
            self._keep_old(str(error))
        else:
            self._fault = None
            self._report(CertificateLoaded(self._loaded.ends))
            log.info(
                "Loaded the certificate %s, valid until %s", self._files.certificate, self._loaded.ends.isoformat()
            )

    def _keep_old(self, why: str) -> None:
        self._report(CertificateReloadFailed(why))
        if why != self._fault:
            log.warning("%s. The server keeps its old certificate, valid until %s", why, self._loaded.ends)
        self._fault = why


def configured_certificate(
    section: str, certificate: str | None, key: str | None, report: Callable[[object], None]
) -> ServedCertificate | None:
    """Return the certificate that a section of the configuration names, or None.

    Raises ``ConfigError`` if the files cannot be used.
    """
    return None if certificate is None else ServedCertificate(CertificateFiles(section, certificate, key), report)


def validities(pem: bytes) -> list[Validity]:
    """Return the validity of each certificate in the content of a PEM file. Raises ``ValueError`` if one is invalid."""
    # A trusted certificate is a certificate followed by its uses.
    found = (block.decode("ascii").replace("TRUSTED ", "") for block in _PEM.findall(pem))
    return [_validity(ssl.PEM_cert_to_DER_cert(block)) for block in found]


def _load(files: CertificateFiles) -> _LoadedCertificate:
    """Load a certificate and its key. Raises ``ConfigError`` if they cannot be used."""
    try:
        # Before reading, so that a change during reading leads to another load.
        signature = _signature(files)
        context = _context(files)
        ends = min(validity.ends for validity in validities(Path(files.certificate).read_bytes()))
    except (OSError, ValueError) as error:
        raise _unusable(files, error) from error
    return _LoadedCertificate(context, ends, signature)


def _context(files: CertificateFiles) -> ssl.SSLContext:
    def no_passphrase() -> str:
        raise ConfigError(
            f"{files.section}.tls_key: the key has a passphrase, which a service cannot enter; use a key without one"
        )

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(files.certificate, files.key, no_passphrase)
    except OSError as error:
        raise _unusable(files, error) from error
    return context


def _signature(files: CertificateFiles) -> tuple[Signature, ...]:
    """Return the signatures of the files, following links."""
    paths = [path for path in (files.certificate, files.key) if path is not None]
    return tuple(signature_of(os.stat(path)) for path in paths)  # noqa: PTH116  # as given


def _unusable(files: CertificateFiles, error: Exception) -> ConfigError:
    pair = f"{files.certificate} with {files.key}" if files.key else files.certificate
    why = error.strerror or error if isinstance(error, OSError) else error
    return ConfigError(f"{files.section}.tls_certificate: {pair} cannot be used: {why}")


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
    """Return a point in time. ``strptime`` takes the two-digit years of UTCTime as 1969 to 2068."""
    pattern = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(digits.decode("ascii"), pattern).replace(tzinfo=UTC)
