"""Metrics of who is let in by tokens, of the audit log, and of the certificate that a server shows."""

from typing import Final, get_args

from consumer.access.audit_log import ChangesRecorded, ChangesUnrecorded
from consumer.access.known_tokens import SecretRefused, TokensRead, TokensUnreadable
from consumer.access.token import RefusalReason
from consumer.model.hooks import Hooks
from consumer.telemetry.metrics.instruments import Group, Instruments, Label, Measure
from consumer.web.certificates import CertificateLoaded

SECRETS_REFUSED: Final = Measure(
    "dupwatch_secrets_refused_total",
    "counter",
    "Requests whose secret was refused, by reason; unchecked: the token file has been unreadable for too long.",
    "requests",
    (Label("reason", get_args(RefusalReason)),),
)
TOKENS: Final = Measure(
    "dupwatch_tokens", "gauge", "Tokens in the file as it was read last, revoked and expired ones too.", "tokens"
)
TOKEN_FILE_FAILURES: Final = Measure(
    "dupwatch_token_file_failures_total", "counter", "Attempts to read a token file that cannot be used.", "attempts"
)
CHANGES_RECORDED: Final = Measure(
    "dupwatch_changes_recorded_total", "counter", "Lines appended to the audit log.", "lines"
)
CHANGES_UNRECORDED: Final = Measure(
    "dupwatch_changes_unrecorded_total", "counter", "Lines that could not be appended to the audit log.", "lines"
)
GROUP: Final = Group(
    "Tokens and the audit log", (SECRETS_REFUSED, TOKENS, TOKEN_FILE_FAILURES, CHANGES_RECORDED, CHANGES_UNRECORDED)
)
CERTIFICATE_EXPIRY: Final = Measure(
    "dupwatch_certificate_expiry_timestamp_seconds",
    "gauge",
    "When the certificate that is shown expires, or the first one of its chain; 0 without HTTPS.",
    "seconds since 1970",
)
CERTIFICATE_GROUP: Final = Group("Certificates", (CERTIFICATE_EXPIRY,))


class AccessMetrics:
    """Counts refusals and changes, as any thread reports them."""

    def __init__(self, instruments: Instruments) -> None:
        refused = instruments.counter(SECRETS_REFUSED)
        self._refused = {reason: refused.labels(reason) for reason in get_args(RefusalReason)}
        self._tokens = instruments.gauge(TOKENS)
        self._failures = instruments.counter(TOKEN_FILE_FAILURES)
        self._recorded = instruments.counter(CHANGES_RECORDED)
        self._unrecorded = instruments.counter(CHANGES_UNRECORDED)

    def listen(self, hooks: Hooks) -> None:
        """Count what is reported from now on."""
        hooks.on(SecretRefused, lambda refused: self._refused[refused.refusal.reason].inc())
        hooks.on(TokensRead, lambda read: self._tokens.set(read.tokens))
        hooks.on(TokensUnreadable, lambda _: self._failures.inc())
        hooks.on(ChangesRecorded, lambda recorded: self._recorded.inc(recorded.lines))
        hooks.on(ChangesUnrecorded, lambda unrecorded: self._unrecorded.inc(unrecorded.lines))


class CertificateMetrics:
    """Shows until when the certificate is valid, as any thread reports it.

    One that cannot be loaded is counted among the errors.
    """

    def __init__(self, instruments: Instruments) -> None:
        self._expiry = instruments.gauge(CERTIFICATE_EXPIRY)

    def listen(self, hooks: Hooks) -> None:
        """Follow what is reported from now on."""
        hooks.on(CertificateLoaded, lambda loaded: self._expiry.set(loaded.ends.timestamp()))
