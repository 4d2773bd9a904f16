"""Who may use the HTTP service, and the certificate that it shows, as the configuration says."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from consumer.config.sections.service import ServiceSection
from consumer.lifecycle.following import Following
from consumer.service.access import Entrance
from consumer.tls.served_certificate import CertificateFiles, ServedCertificate
from consumer.tokens.known_tokens import KnownTokens


class ServiceAccess:
    """Tokens and certificate of a service. Raises ``ConfigError`` where a named file cannot be used."""

    def __init__(self, section: ServiceSection, report: Callable[[object], None]) -> None:
        self._tokens = None if section.tokens is None else KnownTokens(Path(section.tokens), report)
        self._certificate = None
        if section.tls_certificate is not None:
            files = CertificateFiles("service", section.tls_certificate, section.tls_key)
            self._certificate = ServedCertificate(files, report)
        self.entrance = Entrance(None if self._tokens is None else self._tokens.caller)

    @property
    def tls(self) -> ssl.SSLContext | None:
        """The context to serve with; None without HTTPS."""
        return None if self._certificate is None else self._certificate.context

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow changes of the files while the context is open."""
        with ExitStack() as following:
            if self._tokens is not None:
                following.enter_context(Following("tokens", self._tokens.look))
            if self._certificate is not None:
                following.enter_context(Following("certificate", self._certificate.look))
            yield
