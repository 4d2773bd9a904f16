"""Metrics of the certificate that a server shows. One that cannot be loaded is counted among the errors."""

from typing import Final

from consumer.model.hooks import Hooks
from consumer.telemetry.metrics.instruments import Instruments
from consumer.telemetry.metrics.measure import Group, Measure
from consumer.web.certificates import CertificateLoaded

CERTIFICATE_EXPIRY: Final = Measure(
    "dupwatch_certificate_expiry_timestamp_seconds",
    "gauge",
    "When the certificate that is shown expires, or the first one of its chain; 0 without HTTPS.",
    "seconds since 1970",
)
GROUP: Final = Group("Certificates", (CERTIFICATE_EXPIRY,))


class CertificateMetrics:
    """Shows until when the certificate is valid, as any thread reports it."""

    def __init__(self, instruments: Instruments) -> None:
        self._expiry = instruments.gauge(CERTIFICATE_EXPIRY)

    def listen(self, hooks: Hooks) -> None:
        """Follow what is reported from now on."""
        hooks.on(CertificateLoaded, lambda loaded: self._expiry.set(loaded.ends.timestamp()))
