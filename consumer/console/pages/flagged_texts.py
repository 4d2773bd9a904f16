"""Adding the text of a flagged article, or of the earlier one, to a bank."""

from http import HTTPStatus

from starlette.responses import Response

from consumer.console.faults import N_, PageError
from consumer.console.pages.bank_choice import choice_fields
from consumer.console.pages.bank_forms import banks_of, checked_text
from consumer.console.pages.bank_items import added
from consumer.console.pages.flag_page import SIDES, the_flag
from consumer.console.pages.queue_filters import wanted_of
from consumer.console.pages.stored_articles import articles_of
from consumer.console.visit import Asked


def add_flagged(asked: Asked) -> Response:
    """Add the text of one of the two articles of a flag to a bank, and show the flag again."""
    banks_of(asked)
    side, wanted = asked.form.text("side"), wanted_of(asked.form)
    if side not in SIDES:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Choose the article or the earlier article."))
    flag = the_flag(asked)
    found = articles_of(asked.desk, [flag], bodies=True)
    if found.is_away:
        raise PageError(HTTPStatus.SERVICE_UNAVAILABLE, N_("The store with the texts does not answer. Try again."))
    view = found.article(flag) if side == "article" else found.original(flag)
    if view is None or view.body is None:
        message = N_("The store no longer has the text of this article, and nothing was added.")
        raise PageError(HTTPStatus.CONFLICT, message)
    values = {"text": checked_text(view.body), "title": view.title, "lang": view.lang, "article": view.id}
    addition = added(asked, asked.form.text("bank"), values, flag.flag_id)
    fields = {**wanted.fields, **choice_fields(addition.item, is_new=addition.is_new)}
    return asked.redirect(f"/flags/{flag.flag_id}", **fields)
