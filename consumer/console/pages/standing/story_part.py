"""The part of a story's page about further copies: the standing decision, and allow items made from the original."""

from typing import NamedTuple

from consumer.banks.bank import Bank, BankItem
from consumer.console.pages.bank_choice import BankChoice, bank_choice
from consumer.console.pages.bank_forms import moment_ms
from consumer.console.pages.standing.standing_words import duration_choices, standing_notice
from consumer.console.visit import SignedInVisit
from consumer.reviews.database import Connection
from consumer.reviews.standing.standing_decisions import StandingDecision, in_force
from consumer.reviews.stories import Story


class AllowItem(NamedTuple):
    """An item of an allow bank, made from the text of the original."""

    item: BankItem
    changed_ms: int | None


class StoryPart(NamedTuple):
    """The settings for further copies of a story. ``standing`` is the decision in force, or None without one.

    ``choice`` has the notice about a text just added to a bank; None if the console has no banks. ``banks`` are the
    allow banks that the person may add to, or None if the banks have not been read yet.
    """

    standing: StandingDecision | None
    durations: list[tuple[str, str]]
    notice: str
    choice: BankChoice | None
    banks: tuple[Bank, ...] | None
    items: tuple[AllowItem, ...]


def story_part(visit: SignedInVisit, connection: Connection, story: Story) -> StoryPart:
    """Return the settings for further copies of a story."""
    standing = [each for each in in_force(connection, visit.context.now_ms()) if each.story_id == story.story_id]
    choice = bank_choice(visit)
    banks = None
    if choice is not None and choice.banks is not None:
        banks = tuple(bank for bank in choice.banks if bank.action == "allow")
    return StoryPart(
        standing[-1] if standing else None,
        duration_choices(visit, "right"),
        standing_notice(visit),
        choice,
        banks,
        _allow_items(visit, story.root_id),
    )


def _allow_items(visit: SignedInVisit, article_id: str) -> tuple[AllowItem, ...]:
    """Return the items of allow banks that were made from an article, as last read."""
    latest = None if visit.context.banks is None else visit.context.banks.latest
    if latest is None:
        return ()
    return tuple(
        AllowItem(item, moment_ms(item.at))
        for item in latest.items.values()
        if item.article == article_id and latest.banks[item.bank].action == "allow"
    )
