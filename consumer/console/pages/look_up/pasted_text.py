"""Reads pasted texts from forms, and checks texts and ids as those of a feed's articles are checked."""

import uuid
from http import HTTPStatus
from typing import Final, NamedTuple, cast

from consumer.banks.bank import ITEM_CHARS_MAX
from consumer.console.faults import N_, PageError
from consumer.console.pages.bank_forms import ITEM_FORM_BYTES_MAX
from consumer.console.visit import Fields, SignedInVisit
from consumer.decode.article import FieldMap, decode
from consumer.model.article import Article
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits
from consumer.reviews.portable import ID_BYTES_MAX
from consumer.web.requests import LimitExceeded, LimitName

TEXT_CHARS_MAX: Final = ITEM_CHARS_MAX
"""The maximum number of characters of a pasted text, the same as for a bank item."""
TEXT_FORM_BYTES_MAX: Final = ITEM_FORM_BYTES_MAX
_LIMITS: Final = DecodeLimits()


class PastedText(NamedTuple):
    """The fields of a form with a pasted text, as sent or as shown."""

    text: str = ""
    source: str = ""


def count_limit(visit: SignedInVisit, error: PageError) -> PageError:
    """Report the limit that an error names, if any, and return the error, which a page shows next to its form."""
    if error.limit is not None:
        visit.context.hooks.report(LimitExceeded(error.limit))
    return error


def pasted_in(form: Fields) -> PastedText:
    """Return the pasted text in a form. Raises ``PageError`` if it is too long."""
    text = form.text("text", TEXT_FORM_BYTES_MAX)
    if len(text) > TEXT_CHARS_MAX:
        message = N_("The text has %(num)s characters; at most %(most)s are compared.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, limit="body_chars_max", num=len(text), most=TEXT_CHARS_MAX)
    return PastedText(
        text,
        form.text("source", _LIMITS.source_chars_max),
    )


def article_of(pasted: PastedText) -> Article:
    """Return a text as an article with a unique id. Raises ``PageError`` if it is empty or a feed would refuse it."""
    if not pasted.text:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Paste a text first."))
    fields = {"body": pasted.text, "source": pasted.source}
    try:
        return decode(b"", FieldMap(), _LIMITS, "text", uuid.uuid4().hex, lambda _: fields)
    except BadRecord as error:
        if error.limit == "fold_growth_max":
            message = N_(
                "The text has too many characters that stand for several letters. Write these letters instead."
            )
        else:
            message = N_("The text cannot be compared: %(why)s.")
        limit = cast("LimitName | None", error.limit or None)
        raise PageError(HTTPStatus.BAD_REQUEST, message, limit=limit, why=error.detail) from error


def check_id(article_id: str) -> None:
    """Raise ``PageError`` for an id that is longer than any article's."""
    size = len(article_id.encode())
    if size > ID_BYTES_MAX:
        message = N_("An id can have at most %(most)s bytes in UTF-8. This one has %(num)s, so no article has it.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, limit="id_bytes_max", most=ID_BYTES_MAX, num=size)
