"""Actions on stored articles that repeat bank items added after the articles arrived.

A flagged article that repeats an allowed item can be released. An article that repeats a denied item can be reported,
unless its verdict names the item. Both actions may be repeated with the same result: a release is written once, and a
report depends only on the stored verdict and the item.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from consumer.judge.events import mentions_of
from consumer.model.bank_match import retroactive_match
from consumer.model.verdict import BankMention, Released, VerdictEvent, decode_verdict
from consumer.store_tools.bank_matches import StoredMatch
from consumer.store_tools.releases import Attribution
from storage.records import ALLOW, DENY, StoredVersion


class AllowedFlag(NamedTuple):
    """A version that was flagged and repeats an allowed text, who releases the version, and why.

    ``is_released`` says that the same person has released it before for the same reason. The event of that release may
    be unsent.
    """

    stored: StoredVersion
    attribution: Attribution
    is_released: bool


class DeniedArticle(NamedTuple):
    """A version that repeats a denied item which its verdict does not name.

    ``event`` is the verdict, ``match`` the encoded bank match to send.
    """

    stored: StoredVersion
    event: VerdictEvent
    mention: BankMention
    match: bytes


def allowed_flags(found: Iterable[StoredMatch], by: str, reason: str | None) -> Iterator[AllowedFlag]:
    """Yield the versions in force that repeat an allowed text and are flagged, or that ``by`` has already released.

    Released versions are included only if the reason is the same. The default reason names the item.
    """
    for stored, matches in found:
        allowing = next((match for match in matches if match.action == ALLOW), None)
        if allowing is None or stored.verdict is None or stored.ends_at is not None:
            continue
        verdict = decode_verdict(stored.verdict)
        attribution = Attribution(by, reason or allowed_reason(allowing.bank, allowing.item))
        if verdict.outcome == "duplicate":
            yield AllowedFlag(stored, attribution, is_released=False)
        elif isinstance(verdict.released, Released) and _is_by(verdict.released, attribution):
            yield AllowedFlag(stored, attribution, is_released=True)


def denied_articles(found: Iterable[StoredMatch]) -> Iterator[DeniedArticle]:
    """Yield each version in force with each denied item that the version repeats but its verdict does not name.

    Pending versions are left out, because they have no verdict yet.
    """
    for stored, matches in found:
        if stored.verdict is None or stored.ends_at is not None:
            continue
        event = VerdictEvent.read(stored.verdict)
        for mention in mentions_of([match for match in matches if match.action == DENY]):
            match = retroactive_match(event.verdict, mention)
            if match is not None:
                yield DeniedArticle(stored, event, mention, match)


def allowed_reason(bank: str, item: str) -> str:
    """Return the default reason for the release of an article that repeats an allowed item."""
    return f"It repeats {item} of the bank {bank}, which allows it."


def _is_by(released: Released, attribution: Attribution) -> bool:
    return (released.by, released.reason) == (attribution.by, attribution.reason)
