"""The pages of an item's earlier matches: kept articles of the store, and open flags of their copies to release."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from consumer.banks.bank import Bank, BankItem, Banks, BanksUnreachable
from consumer.banks.known_texts import PART_LETTERS_MIN
from consumer.console.faults import N_, PageError
from consumer.console.pages.bank_forms import banks_of, check_seen, item_path, the_bank, the_item
from consumer.console.pages.deciding import SubmittedDecision, check_number, decide_together, undo_at
from consumer.console.pages.decision_notice import MANY, bulk_decision_notice
from consumer.console.pages.stored_articles import articles_of, story_rows
from consumer.console.stored_matches import COMPARED_MAX, KeptMatches
from consumer.console.visit import SignedInVisit
from consumer.judge.events import storable_reference
from consumer.reviews import queue, stories
from consumer.reviews.database import Connection
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.kinds.rules import RULES
from consumer.reviews.stories import Story
from consumer.store_tools.bank_actions import allowed_reason
from consumer.store_tools.bank_matches import StoredMatch
from storage.clock import MS_PER_S
from storage.records import BankMatch, Record

FORMS: Final = {
    "equal": N_("the same text"),
    "similar": N_("similar"),
    "part": N_("contains the item"),
}


class KeptArticle(NamedTuple):
    """A kept article that repeats the item, how it does, and the story of its copies if it has any."""

    record: Record
    match: BankMatch
    form: str
    story: Story | None


class _Item(NamedTuple):
    """An item and its bank, ``banks`` with nothing else in them, and whether articles are compared with it now."""

    bank: Bank
    item: BankItem
    banks: Banks
    counts: bool


class _OpenFlags(NamedTuple):
    """Open flags that an item allows. ``compared`` is how many were compared; ``limited``: a limit left others out."""

    flags: tuple[FlagRow, ...]
    compared: int
    limited: bool


def show_matches(asked: SignedInVisit) -> Response:
    """Show the kept articles of the window that repeat an item."""
    chosen = _the_item(asked)
    found = _kept(asked, chosen)
    matches = () if found is None else found.matches.found
    with asked.desk.database.reading() as connection:
        said = bulk_decision_notice(asked, connection, None, f"{_path(chosen)}/undo")
        of_roots = _stories_of(connection, matches)
    return asked.page(
        "item_matches.html",
        bank=chosen.bank,
        item=chosen.item,
        path=_path(chosen),
        rows=[_row(asked, chosen, match, of_roots) for match in matches],
        found=None if found is None else found.matches,
        window_s=0 if found is None else found.settings.window_ms / MS_PER_S,
        part_letters_min=PART_LETTERS_MIN,
        may_release=chosen.bank.action == "allow" and asked.person.role == "admin",
        open_flags=sum(story.open_copies for story in of_roots.values()),
        decision=said,
    )


def confirm_release(asked: SignedInVisit) -> Response:
    """Say which open flags an item allows, and ask."""
    chosen = _the_item(asked)
    _check_allows(chosen.bank)
    found = _open_flags(asked, chosen)
    articles = articles_of(asked.desk, found.flags)
    return asked.page(
        "item_release.html",
        bank=chosen.bank,
        item=chosen.item,
        path=_path(chosen),
        rows=story_rows(found.flags, articles),
        compared=found.compared,
        limited=found.limited,
        most=_flags_max(asked),
    )


def release(asked: SignedInVisit) -> Response:
    """Release the flags that the page before has named, because of the item that it has shown."""
    chosen, form = _the_item(asked), asked.form
    _check_allows(chosen.bank)
    check_seen(form, chosen.item)
    wanted = form.integers("flag")
    check_number(wanted, _flags_max(asked))
    with asked.desk.database.reading() as connection:
        flag_ids = [flag.flag_id for flag in queue.flags(connection, wanted) if RULES[flag.kind].releases]
    fields = decide_together(asked, flag_ids, SubmittedDecision("wrong", allowed_reason(*chosen.item.key)))
    return asked.redirect(f"{_path(chosen)}/matches", **fields)


def undo(asked: SignedInVisit) -> Response:
    """Take back what was released because of an item."""
    at_ms = undo_at(asked, None)
    return asked.redirect(f"{item_path(asked.places['bank'], asked.places['item'])}/matches", **{MANY: at_ms})


def _the_item(asked: SignedInVisit) -> _Item:
    """Return the item that the path names, as banks were last read. Raises ``PageError`` where there is none."""
    latest = banks_of(asked).latest
    if latest is None:
        raise BanksUnreachable("they were not read yet")
    bank, item = the_bank(asked, latest), the_item(asked, latest)
    banks = latest.only(*item.key)
    return _Item(bank, item, banks, bool(banks.items_at(asked.desk.now_ms())))


def _path(chosen: _Item) -> str:
    return item_path(*chosen.item.key)


def _kept(asked: SignedInVisit, chosen: _Item) -> KeptMatches | None:
    """Return the kept articles that repeat an item, None where nothing is compared with it now."""
    return asked.desk.matches.kept(chosen.banks) if chosen.counts else None


def _stories_of(connection: Connection, matches: Iterable[StoredMatch]) -> dict[str, Story]:
    """Return the stories of kept articles that have copies, by the ids of the articles."""
    return stories.stories_of_roots(connection, {match.stored.record.id for match in matches})


def _row(asked: SignedInVisit, chosen: _Item, match: StoredMatch, of_roots: Mapping[str, Story]) -> KeptArticle:
    of_item = next(each for each in match.matches if (each.bank, each.item) == chosen.item.key)
    record = match.stored.record
    return KeptArticle(record, of_item, asked.language.gettext(FORMS[of_item.form]), of_roots.get(record.id))


def _check_allows(bank: Bank) -> None:
    if bank.action != "allow":
        message = N_("Flags are released only because of a bank that allows. Decide about the flags themselves.")
        raise PageError(HTTPStatus.CONFLICT, message)


def _flags_max(asked: SignedInVisit) -> int:
    """Return how many flags are compared and released at once."""
    return min(COMPARED_MAX, asked.desk.section.reviewed_at_once_max)


def _open_flags(asked: SignedInVisit, chosen: _Item) -> _OpenFlags:
    """Return the open flags whose articles repeat an item, in the stories of the kept articles that do, too."""
    found, most = _kept(asked, chosen), _flags_max(asked)
    if found is None:
        return _OpenFlags((), 0, limited=False)
    with asked.desk.database.reading() as connection:
        ids = [story.story_id for story in _stories_of(connection, found.matches.found).values()]
        flags = stories.open_flags(connection, ids, most + 1)
    versions = {flag.flag_id: storable_reference(flag.article_id, flag.version) for flag in flags[:most]}
    references = [reference for reference in versions.values() if reference is not None]
    repeating = asked.desk.matches.repeating(chosen.banks, references)
    allowed = tuple(flag for flag in flags[:most] if versions[flag.flag_id] in repeating)
    return _OpenFlags(allowed, len(references), limited=len(flags) > most or found.matches.truncated)
