"""The pages of stored articles that repeat an item, and of open flags to release because of the item."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from consumer.banks.bank import Bank, BankItem, Banks, BanksUnreachable
from consumer.banks.known_texts import PART_LETTERS_MIN
from consumer.console.faults import N_, PageError
from consumer.console.pages.bank_forms import banks_of, check_seen, item_path, requested_bank, requested_item
from consumer.console.pages.deciding import SubmittedDecision, check_flag_count, decide_together, undo_at
from consumer.console.pages.decision_notice import DECIDED_AT_FIELD, bulk_decision_notice
from consumer.console.pages.stored_articles import articles_of, story_rows
from consumer.console.stored_matches import COMPARED_MAX, ItemMatches
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
    """A kept article that repeats the item, the form of the match, and the article's story if it has copies."""

    record: Record
    match: BankMatch
    form: str
    story: Story | None


class _RequestedItem(NamedTuple):
    """An item and its bank. ``banks`` contains only these. ``is_active``: articles are compared with the item now."""

    bank: Bank
    item: BankItem
    banks: Banks
    is_active: bool


class _OpenFlags(NamedTuple):
    """Open flags whose articles repeat an item, out of ``compared_count`` flags.

    ``is_limited``: a limit may have excluded other flags.
    """

    flags: tuple[FlagRow, ...]
    compared_count: int
    is_limited: bool


def show_matches(visit: SignedInVisit) -> Response:
    """Show the kept articles of the window that repeat an item."""
    chosen = _requested_item(visit)
    found = _item_matches(visit, chosen)
    matches = () if found is None else found.matches.found
    with visit.context.database.read_connection() as connection:
        notice = bulk_decision_notice(visit, connection, None, f"{_path(chosen)}/undo")
        of_roots = _stories_by_root(connection, matches)
    return visit.page(
        "item_matches.html",
        bank=chosen.bank,
        item=chosen.item,
        path=_path(chosen),
        rows=[_row(visit, chosen, match, of_roots) for match in matches],
        found=None if found is None else found.matches,
        window_s=0 if found is None else found.settings.window_ms / MS_PER_S,
        part_letters_min=PART_LETTERS_MIN,
        may_release=chosen.bank.action == "allow" and visit.person.role == "admin",
        open_flags=sum(story.open_copies for story in of_roots.values()),
        decision=notice,
    )


def confirm_release(visit: SignedInVisit) -> Response:
    """Show the open flags whose articles repeat an item, and ask for confirmation."""
    chosen = _requested_item(visit)
    _check_allows(chosen.bank)
    found = _open_flags(visit, chosen)
    articles = articles_of(visit.context, found.flags)
    return visit.page(
        "item_release.html",
        bank=chosen.bank,
        item=chosen.item,
        path=_path(chosen),
        rows=story_rows(found.flags, articles),
        compared=found.compared_count,
        limited=found.is_limited,
        most=_flags_max(visit),
    )


def release(visit: SignedInVisit) -> Response:
    """Release the flags that the confirmation page showed, with the item as the reason."""
    chosen, form = _requested_item(visit), visit.form
    _check_allows(chosen.bank)
    check_seen(form, chosen.item)
    chosen_ids = form.integers("flag")
    check_flag_count(chosen_ids, _flags_max(visit))
    with visit.context.database.read_connection() as connection:
        flag_ids = [flag.flag_id for flag in queue.flags(connection, chosen_ids) if RULES[flag.kind].releases]
    fields = decide_together(visit, flag_ids, SubmittedDecision("wrong", allowed_reason(*chosen.item.key)))
    return visit.redirect(f"{_path(chosen)}/matches", **fields)


def undo(visit: SignedInVisit) -> Response:
    """Undo a release whose reason was an item."""
    at_ms = undo_at(visit, None)
    path = item_path(visit.path_parameters["bank"], visit.path_parameters["item"])
    return visit.redirect(f"{path}/matches", **{DECIDED_AT_FIELD: at_ms})


def _requested_item(visit: SignedInVisit) -> _RequestedItem:
    """Return the item in the path, from the banks as last read. Raises ``PageError`` and ``BanksUnreachable``."""
    latest = banks_of(visit).latest
    if latest is None:
        raise BanksUnreachable("they have not been read yet")
    bank, item = requested_bank(visit, latest), requested_item(visit, latest)
    banks = latest.only(*item.key)
    return _RequestedItem(bank, item, banks, bool(banks.items_at(visit.context.now_ms())))


def _path(chosen: _RequestedItem) -> str:
    return item_path(*chosen.item.key)


def _item_matches(visit: SignedInVisit, chosen: _RequestedItem) -> ItemMatches | None:
    """Return the kept articles that repeat an item, or None if articles are not compared with it now."""
    return visit.context.matches.find_kept(chosen.banks) if chosen.is_active else None


def _stories_by_root(connection: Connection, matches: Iterable[StoredMatch]) -> dict[str, Story]:
    """Return the stories of matching articles that have copies, by article id."""
    return stories.stories_of_roots(connection, {match.stored.record.id for match in matches})


def _row(
    visit: SignedInVisit, chosen: _RequestedItem, match: StoredMatch, of_roots: Mapping[str, Story]
) -> KeptArticle:
    of_item = next(each for each in match.matches if (each.bank, each.item) == chosen.item.key)
    record = match.stored.record
    return KeptArticle(record, of_item, visit.language.gettext(FORMS[of_item.form]), of_roots.get(record.id))


def _check_allows(bank: Bank) -> None:
    if bank.action != "allow":
        message = N_("Only an allow bank can release flags. Decide about the flags themselves.")
        raise PageError(HTTPStatus.CONFLICT, message)


def _flags_max(visit: SignedInVisit) -> int:
    """Return the maximum number of flags that are compared and released at once."""
    return min(COMPARED_MAX, visit.context.section.reviewed_at_once_max)


def _open_flags(visit: SignedInVisit, chosen: _RequestedItem) -> _OpenFlags:
    """Return the open flags whose articles repeat an item, in stories whose originals repeat it too."""
    found, most = _item_matches(visit, chosen), _flags_max(visit)
    if found is None:
        return _OpenFlags((), 0, is_limited=False)
    with visit.context.database.read_connection() as connection:
        ids = [story.story_id for story in _stories_by_root(connection, found.matches.found).values()]
        flags = stories.open_flags(connection, ids, most + 1)
    versions = {flag.flag_id: storable_reference(flag.article_id, flag.version) for flag in flags[:most]}
    references = [reference for reference in versions.values() if reference is not None]
    repeating = visit.context.matches.references_repeating(chosen.banks, references)
    allowed = tuple(flag for flag in flags[:most] if versions[flag.flag_id] in repeating)
    return _OpenFlags(allowed, len(references), is_limited=len(flags) > most or found.matches.truncated)
