"""Puts webhooks into words: kinds of events, why an attempt failed, and why a webhook is off."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from consumer.console.faults import N_
from consumer.console.i18n import Language
from consumer.reviews.outbox.events import EventKind
from consumer.reviews.outbox.webhooks import OffReason, Webhook
from consumer.webhooks.courier import ATTEMPT_S, cause_of

KINDS: Final[Mapping[EventKind, str]] = {
    "flag": N_("Flags"),
    "bank_match": N_("Bank matches"),
    "story": N_("Stories"),
    "flood": N_("Floods"),
    "decision": N_("Decisions"),
}
OFF_MESSAGES: Final[Mapping[OffReason, str]] = {
    "day": N_(
        "Turned off by the console: a delivery has failed for a day. Repair the receiver, and send the waiting events."
    ),
    "gone": N_("Turned off by the console: the receiver answered 410, which means that it is gone."),
    "person": N_("Turned off by an admin."),
}
_URL: Final[Mapping[str, str]] = {
    "form": N_(
        "This is not a URL: write it in ASCII, with percent signs for other characters, and without a fragment."
    ),
    "scheme": N_("The URL must begin with https://. The setting console.webhooks.http also allows http://."),
    "person": N_("The URL has a name or a password before the host. Remove it: the signature proves who sends."),
    "host": N_("The host of the URL is not a name in ASCII or an address. Write names as xn--… where needed."),
    "port": N_("The port of the URL must be a number from 1 to 65,535."),
}
_ADDRESSES: Final[Mapping[str, str]] = {
    "private": N_("in a private network"),
    "loopback": N_("this machine itself"),
    "link_local": N_("in the local network segment, where clouds have their metadata"),
    "unspecified": N_("not the address of a machine"),
    "carrier": N_("in the shared network of a provider"),
    "multicast": N_("a multicast address"),
    "documentation": N_("reserved for documentation"),
    "benchmarking": N_("reserved for benchmarks"),
    "translated": N_("an address that stands for another one"),
    "reserved": N_("reserved"),
}
_CAUSES: Final[Mapping[str, str]] = {
    "status": N_("The receiver answered %(status)s."),
    "redirect": N_("The receiver answered %(status)s and redirects to %(detail)s. Redirects are not followed."),
    "name": N_("The host name has no address: %(detail)s. Check the name."),
    "connection": N_("The connection failed: %(detail)s. Check that the receiver runs and can be reached from here."),
    "tls": N_("TLS failed: %(detail)s. Check the certificate of the receiver."),
    "time": N_("There was no answer within %(seconds)s seconds."),
    "answer": N_("There was no valid HTTP answer: %(detail)s."),
}
_ADDRESS: Final = N_(
    "The host resolves to %(address)s, which is %(kind)s. Nothing is sent there. Use a receiver with "
    "a public address, or add the network to console.webhooks.networks."
)


def sentence(language: Language, cause: str, detail: str, status: int | None = None) -> str:
    """Return why an attempt failed or a URL was refused, and what to do about it."""
    if cause == "url":
        label = _URL.get(detail, _URL["form"])
        return language.gettext(label)
    if cause == "address":
        address, _, kind = detail.partition(" ")
        label = _ADDRESSES.get(kind, _ADDRESSES["reserved"])
        return language.gettext(_ADDRESS, address=address, kind=language.gettext(label))
    message = _CAUSES.get(cause, _CAUSES["answer"])
    return language.gettext(message, status=status, detail=detail or "–", seconds=f"{ATTEMPT_S:g}")


def off_text(language: Language, webhook: Webhook) -> str:
    """Return why a webhook is off, or "" if it is on."""
    if webhook.off_ms is None:
        return ""
    label = OFF_MESSAGES[webhook.off_why or "person"]
    return language.gettext(label)


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """The description of an attempt. ``excerpt`` is the beginning of a refusing answer, or "" without one."""

    is_accepted: bool
    text: str
    excerpt: str


def report(language: Language, status: int | None, explanation: str) -> AttemptReport:
    """Return the description of an attempt, given its HTTP status and ``AttemptOutcome.explanation``."""
    if not explanation:
        return AttemptReport(
            is_accepted=True, text=language.gettext(N_("Accepted: %(status)s."), status=status), excerpt=""
        )
    cause, detail = cause_of(explanation)
    text = sentence(language, cause, detail, status)
    return AttemptReport(is_accepted=False, text=text, excerpt=detail if cause == "status" else "")


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """A webhook in the list. ``last`` is None before the first attempt."""

    webhook: Webhook
    kinds: str
    last: str | None


def row_of(language: Language, webhook: Webhook) -> WebhookRow:
    """Return the row of a webhook. Everybody may see it, so it has only the status of the last attempt."""
    last = None
    if webhook.last_ms is not None:
        last = language.gettext(N_("no answer")) if webhook.last_status is None else str(webhook.last_status)
    return WebhookRow(webhook, kinds_text(language, webhook), last)


def kinds_text(language: Language, webhook: Webhook) -> str:
    """Return the kinds of events that a webhook gets."""
    return ", ".join(language.gettext(label) for kind, label in KINDS.items() if kind in webhook.settings.kinds)
