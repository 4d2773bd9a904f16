"""Adds the text of an article to a bank, for the pages of flags, reports and stories."""

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

from starlette.responses import Response

from consumer.console.context import ArticleView
from consumer.console.faults import N_, PageError
from consumer.console.pages.bank_choice import choice_fields
from consumer.console.pages.bank_forms import ITEM_FORM_BYTES_MAX, banks_of, checked_text
from consumer.console.pages.bank_items import add_to_bank
from consumer.console.pages.flag_page import SIDES, requested_flag
from consumer.console.pages.look_up.report_page import read_report
from consumer.console.pages.queue_filters import selection_of
from consumer.console.pages.stored_articles import ArticleLookUp, articles_named, articles_of
from consumer.console.pages.story_pages import requested_story
from consumer.console.visit import SignedInVisit
from consumer.reviews.stories import root_versions


def add_flagged(visit: SignedInVisit) -> Response:
    """Add the text of one of the two articles of a flag to a bank, and show the flag again."""
    side, selection, flag = _chosen_side(visit), selection_of(visit.form, visit.context.cutter), requested_flag(visit)
    found = articles_of(visit.context, [flag], bodies=True)
    fields = _add_text(visit, found, found.article(flag) if side == "article" else found.original(flag), flag.flag_id)
    return visit.redirect(f"/flags/{flag.flag_id}", **selection.fields, **fields)


def add_reported(visit: SignedInVisit) -> Response:
    """Add the text of one of the two articles of a report to a bank, and show the report again.

    A pasted text comes with the form, since it is not stored.
    """
    side, report = _chosen_side(visit), read_report(visit, visit.path_parameters["report_id"])
    path = f"/reports/{report.report_id}"
    if side == "article" and not report.article_id:
        values = {"text": checked_text(visit.form.text("text", ITEM_FORM_BYTES_MAX))}
        addition = add_to_bank(visit, visit.form.text("bank"), values)
        return visit.redirect(path, **choice_fields(addition.item, is_new=addition.is_new))
    original = (report.original_id, report.original_version)
    named = (report.article_id, report.version) if side == "article" else original
    found = articles_named(visit.context, [named], bodies=True)
    return visit.redirect(path, **_add_text(visit, found, found.articles.get(named)))


def add_original(visit: SignedInVisit) -> Response:
    """Add the text of a story's original to an allow bank, and show the story again."""
    banks_of(visit)
    with visit.context.database.read_connection() as connection:
        story = requested_story(visit, connection)
        versions = root_versions(connection, [story.root_id])
    found = articles_named(visit.context, versions.items(), bodies=True)
    note = visit.language.gettext(N_("Copies of story %(number)s are never flagged."), number=story.story_id)
    view = next(iter(found.articles.values()), None)
    fields = _add_text(visit, found, view, more={"note": note}, must_allow=True)
    # Read the banks again, so that the page of the story already shows the item.
    banks_of(visit).read()
    return visit.redirect(f"/stories/{story.story_id}", **fields)


def _chosen_side(visit: SignedInVisit) -> str:
    """Return the article that a form chooses, one of ``SIDES``.

    Raises ``PageError`` if the form chooses neither, or if the console has no banks.
    """
    banks_of(visit)
    side = visit.form.text("side")
    if side not in SIDES:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Choose the article or the earlier article."))
    return side


def _add_text(
    visit: SignedInVisit,
    found: ArticleLookUp,
    view: ArticleView | None,
    flag_id: int | None = None,
    *,
    more: Mapping[str, object] = MappingProxyType({}),
    must_allow: bool = False,
) -> dict[str, str]:
    """Add the text of an article to the bank in the form; return the query fields of the notice.

    ``more`` are further fields of the item. Raises ``PageError`` and ``BankError``.
    """
    if found.is_away:
        raise PageError(HTTPStatus.SERVICE_UNAVAILABLE, N_("The store does not answer. Try again."))
    if view is None or view.body is None:
        message = N_("The store no longer has the text of this article. Nothing was added.")
        raise PageError(HTTPStatus.CONFLICT, message)
    values = {"text": checked_text(view.body), "title": view.title, "lang": view.lang, "article": view.id}
    addition = add_to_bank(visit, visit.form.text("bank"), {**values, **more}, flag_id, must_allow=must_allow)
    return choice_fields(addition.item, is_new=addition.is_new)
