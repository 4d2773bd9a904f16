"""Metrics of tokens, of the audit log, and of the server's certificate."""

from typing import Final, get_args

from consumer.telemetry.metrics.instruments import Label, Measure, MetricGroup, reaction
from consumer.web.audit_log import ChangesRecorded, ChangesUnrecorded
from consumer.web.certificates import CertificateLoaded
from consumer.web.known_tokens import SecretRefused, TokensLoaded, TokensUnreadable
from consumer.web.token import RefusalReason

SECRETS_REFUSED: Final = Measure(
    "dupwatch_secrets_refused_total",
    "counter",
    "Requests whose secret was refused, by reason; unchecked: the token file has been unreadable for too long.",
    "requests",
    (Label("reason", get_args(RefusalReason)),),
)
TOKENS: Final = Measure(
    "dupwatch_tokens", "gauge", "Tokens in the token file, including revoked and expired ones.", "tokens"
)
TOKEN_FILE_FAILURES: Final = Measure(
    "dupwatch_token_file_failures_total", "counter", "Failed attempts to read the token file.", "attempts"
)
CHANGES_RECORDED: Final = Measure(
    "dupwatch_changes_recorded_total", "counter", "Lines appended to the audit log.", "lines"
)
CHANGES_UNRECORDED: Final = Measure(
    "dupwatch_changes_unrecorded_total", "counter", "Lines that could not be appended to the audit log.", "lines"
)
GROUP: Final = MetricGroup(
    "Tokens and the audit log", (SECRETS_REFUSED, TOKENS, TOKEN_FILE_FAILURES, CHANGES_RECORDED, CHANGES_UNRECORDED)
)
CERTIFICATE_EXPIRY: Final = Measure(
    "dupwatch_certificate_expiry_timestamp_seconds",
    "gauge",
    "When the server's certificate, or the first one of its chain, expires; 0 without HTTPS.",
    "seconds since 1970",
)
CERTIFICATE_GROUP: Final = MetricGroup("Certificates", (CERTIFICATE_EXPIRY,))

REACTIONS: Final = (
    reaction(SECRETS_REFUSED, SecretRefused, labels=lambda refused: (refused.refusal.reason,)),
    reaction(TOKENS, TokensLoaded, lambda read: read.tokens),
    reaction(TOKEN_FILE_FAILURES, TokensUnreadable),
    reaction(CHANGES_RECORDED, ChangesRecorded, lambda recorded: recorded.lines),
    reaction(CHANGES_UNRECORDED, ChangesUnrecorded, lambda unrecorded: unrecorded.lines),
)
CERTIFICATE_REACTIONS: Final = (
    reaction(CERTIFICATE_EXPIRY, CertificateLoaded, lambda loaded: loaded.ends.timestamp()),
)
"""A certificate that cannot be loaded again is counted among the errors, in ``outages``."""
