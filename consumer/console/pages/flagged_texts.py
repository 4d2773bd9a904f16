"""Adding the text of a flagged or reported article, or of the earlier one, to a bank; or that of a story's original."""

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

from starlette.responses import Response

from consumer.console.context import ArticleView
from consumer.console.faults import N_, PageError
from consumer.console.pages.bank_choice import choice_fields
from consumer.console.pages.bank_forms import ITEM_FORM_BYTES_MAX, banks_of, checked_text
from consumer.console.pages.bank_items import add_to_bank
from consumer.console.pages.flag_page import SIDES, the_flag
from consumer.console.pages.look_up.report_page import the_report
from consumer.console.pages.queue_filters import wanted_of
from consumer.console.pages.stored_articles import ArticleLookUp, articles_named, articles_of
from consumer.console.pages.story_pages import the_story
from consumer.console.visit import SignedInVisit
from consumer.reviews.stories import root_versions


def add_flagged(asked: SignedInVisit) -> Response:
    """Add the text of one of the two articles of a flag to a bank, and show the flag again."""
    side, wanted, flag = _side(asked), wanted_of(asked.form, asked.desk.cutter), the_flag(asked)
    found = articles_of(asked.desk, [flag], bodies=True)
    fields = _added(asked, found, found.article(flag) if side == "article" else found.original(flag), flag.flag_id)
    return asked.redirect(f"/flags/{flag.flag_id}", **wanted.fields, **fields)


def add_reported(asked: SignedInVisit) -> Response:
    """Add the text of one of the two articles of a report to a bank, or the text that was reported, and show it again.

    The form has the text that was reported, since it is stored nowhere.
    """
    side, report = _side(asked), the_report(asked, asked.places["report_id"])
    path = f"/reports/{report.report_id}"
    if side == "article" and not report.article_id:
        values = {"text": checked_text(asked.form.text("text", ITEM_FORM_BYTES_MAX))}
        addition = add_to_bank(asked, asked.form.text("bank"), values)
        return asked.redirect(path, **choice_fields(addition.item, is_new=addition.is_new))
    original = (report.original_id, report.original_version)
    named = (report.article_id, report.version) if side == "article" else original
    found = articles_named(asked.desk, [named], bodies=True)
    return asked.redirect(path, **_added(asked, found, found.articles.get(named)))


def add_original(asked: SignedInVisit) -> Response:
    """Add the text of the original of a story to a bank that allows, and show the story again."""
    banks_of(asked)
    with asked.desk.database.reading() as connection:
        story = the_story(asked, connection)
        versions = root_versions(connection, [story.root_id])
    found = articles_named(asked.desk, versions.items(), bodies=True)
    note = asked.language.gettext(N_("Copies of story %(number)s are never flagged."), number=story.story_id)
    view = next(iter(found.articles.values()), None)
    fields = _added(asked, found, view, more={"note": note}, must_allow=True)
    # So that the page of the story has it at once.
    banks_of(asked).read()
    return asked.redirect(f"/stories/{story.story_id}", **fields)


def _side(asked: SignedInVisit) -> str:
    """Return which of the two articles a form names. Raises ``PageError``, also where there are no banks."""
    banks_of(asked)
    side = asked.form.text("side")
    if side not in SIDES:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Choose the article or the earlier article."))
    return side


def _added(
    asked: SignedInVisit,
    found: ArticleLookUp,
    view: ArticleView | None,
    flag_id: int | None = None,
    *,
    more: Mapping[str, object] = MappingProxyType({}),
    must_allow: bool = False,
) -> dict[str, str]:
    """Add the text of an article to the bank that the form names; return the query that makes a page say so.

    ``more`` are further members of the item.
    """
    if found.is_away:
        raise PageError(HTTPStatus.SERVICE_UNAVAILABLE, N_("The store with the texts does not answer. Try again."))
    if view is None or view.body is None:
        message = N_("The store no longer has the text of this article, and nothing was added.")
        raise PageError(HTTPStatus.CONFLICT, message)
    values = {"text": checked_text(view.body), "title": view.title, "lang": view.lang, "article": view.id}
    addition = add_to_bank(asked, asked.form.text("bank"), {**values, **more}, flag_id, must_allow=must_allow)
    return choice_fields(addition.item, is_new=addition.is_new)
