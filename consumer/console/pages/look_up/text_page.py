"""The page to try a text: finds the articles and bank items that it would repeat if it arrived now. Stores nothing."""

import logging
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from consumer.banks.known_texts import PART_LETTERS_MIN
from consumer.console.bank_texts import BANK_ITEMS_MAX
from consumer.console.faults import N_, PageError
from consumer.console.pages.bank_forms import refusal_text
from consumer.console.pages.look_up.article_page import quoted_parts
from consumer.console.pages.look_up.pasted_text import TEXT_CHARS_MAX, PastedText, article_of, count_limit, pasted_in
from consumer.console.stored_matches import LOOK_UP_S, WAIT_S, TextMatches
from consumer.console.verdict_words import ended_before_text, event_moment
from consumer.console.visit import SignedInVisit
from consumer.judge.decision import Neighbour
from consumer.judge.events import rounded, shared_keywords, version_name
from consumer.model.errors import StoreMismatch
from consumer.model.verdict import MATCHES_MAX
from consumer.text.shown_keywords import shown_keywords
from storage.errors import StoreError
from storage.records import ALLOW, Record

log = logging.getLogger("dupwatch")

SHOWN_KEYWORDS_MAX: Final = 20
"""The maximum number of shared keywords of a candidate that the page shows. It shows the heaviest."""


class ArticleMatch(NamedTuple):
    """A stored article that the text repeats. ``similarity`` is None if only fingerprints decide."""

    record: Record
    version: str
    similarity: float | None
    distance: int
    shared_keywords: tuple[str, ...]


def show_form(visit: SignedInVisit) -> Response:
    """Show the form."""
    return _page(visit, PastedText())


def try_text(visit: SignedInVisit) -> Response:
    """Compare a text with the store and the banks. A refused form is shown again."""
    pasted = PastedText(*(visit.form.exact(name, TEXT_CHARS_MAX) for name in PastedText._fields))
    try:
        pasted = pasted_in(visit.form)
        matches = visit.context.matches.query(article_of(pasted), visit.context.banks)
    except PageError as error:
        return _page(visit, pasted, refusal=count_limit(visit, error))
    except (StoreError, StoreMismatch) as error:
        log.warning("The store cannot be read: %s", error, extra={"request_id": visit.request_id})
        return _page(visit, pasted, refusal=store_is_away())
    return _page(visit, pasted, matches=matches)


def store_is_away() -> PageError:
    """Return the error for a comparison while the store does not answer."""
    message = N_("The store does not answer, so nothing was compared. Try again in a few seconds.")
    return PageError(HTTPStatus.SERVICE_UNAVAILABLE, message, retry_s=round(WAIT_S))


def _page(
    visit: SignedInVisit, pasted: PastedText, *, matches: TextMatches | None = None, refusal: PageError | None = None
) -> Response:
    found = None if matches is None else matches.queried.found
    ended = None if found is None else found.ended_before
    seen = None if found is None else found.seen_before
    response = visit.page(
        "look_up_text.html",
        status=HTTPStatus.OK if refusal is None else refusal.status,
        given=pasted,
        found=found,
        candidates=[] if matches is None else _candidates(matches),
        candidates_left_out=0 if found is None else max(len(found.matches) - MATCHES_MAX, 0),
        is_exempt=matches is not None and _is_exempt(matches),
        similarity_min=0 if matches is None else _similarity_min(matches, pasted),
        verifies=matches is not None and matches.settings.verify,
        banks_compared="" if matches is None else matches.banks,
        bank_items_max=BANK_ITEMS_MAX,
        part_letters_min=PART_LETTERS_MIN,
        quoted=[] if matches is None else list(quoted_parts(matches.queried.passages)),
        ended_before_text="" if ended is None else ended_before_text(visit.language, ended),
        seen_first="" if seen is None else event_moment(visit.language, seen.first),
        seen_last="" if seen is None else event_moment(visit.language, seen.last),
        text_chars_max=TEXT_CHARS_MAX,
        wait_s=WAIT_S,
        look_up_s=LOOK_UP_S,
        conflict=refusal_text(visit, refusal),
    )
    response.headers.update({} if refusal is None else refusal.headers)
    return response


def _similarity_min(matches: TextMatches, pasted: PastedText) -> float:
    """Return the similarity threshold for articles of this source."""
    return matches.settings.thresholds_for(pasted.source).similarity_min


def _is_exempt(matches: TextMatches) -> bool:
    """Return whether the text is never flagged, whatever it repeats."""
    allowed = any(mention.action == ALLOW for mention in matches.queried.found.banks)
    return allowed or matches.settings.never_flags(matches.queried.record)


def _candidates(matches: TextMatches) -> list[ArticleMatch]:
    return [_candidate(matches.queried.record, match) for match in matches.queried.found.matches[:MATCHES_MAX]]


def _candidate(record: Record, match: Neighbour) -> ArticleMatch:
    other = match.record
    return ArticleMatch(
        other,
        version_name(other.reference),
        rounded(match.similarity),
        match.distance,
        shown_keywords(shared_keywords(record, other))[:SHOWN_KEYWORDS_MAX],
    )
