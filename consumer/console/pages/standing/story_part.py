"""What the page of a story says of copies that still come: its standing decision, and allow items of its text."""

from typing import NamedTuple

from consumer.banks.bank import Bank, BankItem
from consumer.console.pages.bank_choice import BankChoice, bank_choice
from consumer.console.pages.bank_forms import moment_ms
from consumer.console.pages.standing.standing_words import lasts_choices, said_of_standing
from consumer.console.visit import SignedInVisit
from consumer.reviews.database import Connection
from consumer.reviews.standing.standing_decisions import StandingDecision, in_force
from consumer.reviews.stories import Story


class AllowItem(NamedTuple):
    """An item of a bank that allows, made from the text of the original."""

    item: BankItem
    changed_ms: int | None


class StoryPart(NamedTuple):
    """What still comes of a story. ``standing`` is the decision in force, None where there is none.

    ``choice`` says what was just added to which bank, and is None where the console has no banks. ``banks`` are those
    that allow and that the person may add to, None where the banks were not read yet.
    """

    standing: StandingDecision | None
    lasts: list[tuple[str, str]]
    said: str
    choice: BankChoice | None
    banks: tuple[Bank, ...] | None
    items: tuple[AllowItem, ...]


def story_part(asked: SignedInVisit, connection: Connection, story: Story) -> StoryPart:
    """Return what the page of a story says of copies that still come."""
    standing = [each for each in in_force(connection, asked.desk.now_ms()) if each.story_id == story.story_id]
    choice = bank_choice(asked)
    banks = None
    if choice is not None and choice.banks is not None:
        banks = tuple(bank for bank in choice.banks if bank.action == "allow")
    return StoryPart(
        standing[-1] if standing else None,
        lasts_choices(asked, "right"),
        said_of_standing(asked),
        choice,
        banks,
        _allow_items(asked, story.root_id),
    )


def _allow_items(asked: SignedInVisit, article_id: str) -> tuple[AllowItem, ...]:
    """Return the items of banks that allow, as the banks were last read, whose text is that of an article."""
    latest = None if asked.desk.banks is None else asked.desk.banks.latest
    if latest is None:
        return ()
    return tuple(
        AllowItem(item, moment_ms(item.at))
        for item in latest.items.values()
        if item.article == article_id and latest.banks[item.bank].action == "allow"
    )
