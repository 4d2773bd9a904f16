"""Pages for reports of missed copies: they compare two articles, ask for confirmation, and store the report.

Of a pasted text, only a digest, the source and the figures of the comparison are stored.
"""

import logging
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from consumer.console.context import ArticleView, article_view
from consumer.console.faults import N_, PageError, not_found
from consumer.console.pages.bank_choice import bank_choice
from consumer.console.pages.bank_forms import refusal_text
from consumer.console.pages.look_up.article_page import ID_CHARS_MAX
from consumer.console.pages.look_up.pair_texts import pair_keywords, pair_texts
from consumer.console.pages.look_up.pasted_text import (
    TEXT_CHARS_MAX,
    PastedText,
    article_of,
    check_id,
    count_limit,
    pasted_in,
)
from consumer.console.pages.look_up.text_page import store_is_away
from consumer.console.pages.stored_articles import articles_named
from consumer.console.stored_matches import ComparedPair, NamedVersion
from consumer.console.verdict_words import mismatch_reasons
from consumer.console.visit import Fields, SignedInVisit
from consumer.judge.events import rounded, version_name
from consumer.model.article import Article
from consumer.model.errors import StoreMismatch
from consumer.reviews.database import Connection
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.kinds.rules import RULES
from consumer.reviews.pairs import reports
from consumer.reviews.pairs.reports import NOTE_CHARS_MAX, MissedPair, MissedPairReport
from consumer.store_tools import explanation
from storage.clock import MS_PER_S
from storage.errors import StoreError

log = logging.getLogger("dupwatch")

LATEST_MAX: Final = 20
"""The maximum number of reports that the form lists, newest first."""
_VERSION_CHARS_MAX: Final = 64
_FIELDS: Final = ("one", "one_version", "other", "other_version", *PastedText._fields)


class ReportRefusal(NamedTuple):
    """The reason why a pair cannot be reported, and the address of a page with details, or "" for no page."""

    message: str
    href: str = ""


class _ReportedPair(NamedTuple):
    """The comparison of two articles, and the report made from it."""

    compared: ComparedPair
    missed: MissedPair


def show_form(visit: SignedInVisit) -> Response:
    """Show the form, and fill in the id from the query, if any."""
    return _form(visit, {"one": visit.query.exact("one", ID_CHARS_MAX)})


def compare(visit: SignedInVisit) -> Response:
    """Compare the two articles, and ask for confirmation. Stores nothing."""
    try:
        pair = _pair_in(visit)
    except PageError as error:
        return _form(visit, _form_values(visit.form), refusal=count_limit(visit, error))
    except (StoreError, StoreMismatch) as error:
        log.warning("The store cannot be read: %s", error, extra={"request_id": visit.request_id})
        return _form(visit, _form_values(visit.form), refusal=store_is_away())
    return _pair_page(visit, pair, _refusal(visit, pair))


def report(visit: SignedInVisit) -> Response:
    """Store a report, and show it, or show why the pair cannot be reported."""
    note, pair = visit.form.text("note", NOTE_CHARS_MAX), _pair_in(visit)
    refusal = _refusal(visit, pair)
    if refusal is None:
        now_ms, undo_ms = visit.context.now_ms(), round(visit.context.section.undo_s * MS_PER_S)

        def add_report(connection: Connection) -> int | None:
            report_id = reports.add(connection, pair.missed, visit.person.person_id, note, now_ms, undo_ms)
            if report_id is not None:
                visit.add_audit_entry(
                    connection, "report.add", at_ms=now_ms, subject=_subject(pair.missed, report_id), why=note
                )
            return report_id

        report_id = visit.context.database.write(add_report)
        if report_id is not None:
            if pair.missed.article_id:
                return visit.redirect(f"/reports/{report_id}")
            # A pasted text is not stored, so only this response can offer to add it to a bank.
            return _report_page(visit, report_id, _view(pair.compared.article))
        refusal = _refusal(visit, pair)
    return _pair_page(visit, pair, refusal, status=HTTPStatus.CONFLICT)


def show_report(visit: SignedInVisit) -> Response:
    """Show a report."""
    return _report_page(visit, visit.path_parameters["report_id"])


def undo(visit: SignedInVisit) -> Response:
    """Undo one of this person's own reports, and show it. Raises ``PageError`` if it cannot be undone."""
    report_id, now_ms = visit.path_parameters["report_id"], visit.context.now_ms()
    found = read_report(visit, report_id)

    def undo_report(connection: Connection) -> bool:
        is_undone = reports.undo(connection, report_id, visit.person.person_id, now_ms)
        if is_undone:
            visit.add_audit_entry(connection, "report.undo", at_ms=now_ms, subject=_subject(found, report_id))
        return is_undone

    if not visit.context.database.write(undo_report):
        message = N_("This report can no longer be undone: it is final, was already undone, or is somebody else's.")
        raise PageError(HTTPStatus.CONFLICT, message)
    return visit.redirect(f"/reports/{report_id}")


def read_report(visit: SignedInVisit, report_id: int) -> MissedPairReport:
    """Return a report. Raises ``PageError`` if it does not exist."""
    with visit.context.database.read_connection() as connection:
        found = reports.report(connection, report_id)
    if found is None:
        raise not_found()
    return found


def _subject(pair: MissedPair, report_id: int) -> str:
    return f"{pair.article_id or pair.original_id} ({report_id})"


def _form_values(form: Fields) -> dict[str, str]:
    return {name: form.exact(name, TEXT_CHARS_MAX) for name in _FIELDS}


def _pair_in(visit: SignedInVisit) -> _ReportedPair:
    """Return the comparison of the two articles in a form. Raises ``PageError`` and the store's errors."""
    form = visit.form
    one = _version_in(form, "one")
    text, other = pasted_in(form), form.exact("other", ID_CHARS_MAX)
    if one is None:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Enter the id of an article."))
    if bool(text.text) == bool(other.strip()):
        message = N_("Enter the id of the other article or paste its text, but not both.")
        raise PageError(HTTPStatus.BAD_REQUEST, message)
    second: NamedVersion | Article | None = article_of(text) if text.text else _version_in(form, "other")
    assert second is not None  # noqa: S101  # checked above
    compared = visit.context.matches.pair(one, second)
    return _ReportedPair(compared, _missed_pair(compared, is_text=bool(text.text)))


def _version_in(form: Fields, field: str) -> NamedVersion | None:
    article_id = form.exact(field, ID_CHARS_MAX)
    if not article_id.strip():
        return None
    check_id(article_id)
    return NamedVersion(article_id, form.text(f"{field}_version", _VERSION_CHARS_MAX) or None)


def _missed_pair(compared: ComparedPair, *, is_text: bool) -> MissedPair:
    later, earlier = compared.article.stored.record, compared.original.stored.record
    return MissedPair(
        article_id="" if is_text else later.id,
        version=version_name(later.reference),
        original_id=earlier.id,
        original_version=version_name(earlier.reference),
        source=later.source,
        original_source=earlier.source,
        similarity=rounded(compared.comparison.similarity),
        distance=compared.comparison.distance,
        arrived_ms=later.time_ms,
    )


def _refusal(visit: SignedInVisit, pair: _ReportedPair) -> ReportRefusal | None:
    """Return why a pair cannot be reported, or None if it can."""
    comparison = pair.compared.comparison
    if not comparison.other_ids:
        return ReportRefusal(N_("Both are versions of one article. Versions are never compared with each other."))
    if pair.compared.is_one_story:
        return ReportRefusal(
            N_("Nothing was missed: one is flagged as a copy of the other, or both as copies of a third.")
        )
    if not pair.missed.article_id and comparison.near:
        return ReportRefusal(N_("Nothing was missed: this text would be flagged as a copy of the article."))
    with visit.context.database.read_connection() as connection:
        flag = reports.flag_of_pair(connection, pair.missed)
        known = reports.report_of(connection, pair.missed)
    if flag is not None:
        return ReportRefusal(_known_pair_message(flag), f"/flags/{flag.flag_id}")
    if known is not None:
        return ReportRefusal(N_("Somebody has reported this pair already."), f"/reports/{known.report_id}")
    return None


def _known_pair_message(flag: FlagRow) -> str:
    rule = RULES[flag.kind]
    if rule.is_copy:
        return N_("This pair is already flagged. Decide about the flag, or look at its decision.")
    if rule.is_measured:
        return N_(
            "This pair is in the queue as a near miss that was drawn at random. Decide about it there, so "
            "that it counts."
        )
    return N_("This pair is in the queue: the earlier article had been retracted or replaced. Decide about it there.")


def _view(side: explanation.ComparedArticle) -> ArticleView:
    return article_view(side.stored, side.body)


def _form(visit: SignedInVisit, given: dict[str, str], refusal: PageError | None = None) -> Response:
    with visit.context.database.read_connection() as connection:
        latest = reports.latest_reports(connection, LATEST_MAX)
    response = visit.page(
        "report_form.html",
        status=HTTPStatus.OK if refusal is None else refusal.status,
        given={name: given.get(name, "") for name in _FIELDS},
        latest=latest,
        text_chars_max=TEXT_CHARS_MAX,
        conflict=refusal_text(visit, refusal),
    )
    response.headers.update({} if refusal is None else refusal.headers)
    return response


def _pair_page(
    visit: SignedInVisit, pair: _ReportedPair, refusal: ReportRefusal | None, status: HTTPStatus = HTTPStatus.OK
) -> Response:
    """Return the confirmation page, whose form names the compared versions."""
    missed, given = pair.missed, _form_values(visit.form)
    if not given["text"]:
        given |= {"one": missed.article_id, "one_version": missed.version}
        given |= {"other": missed.original_id, "other_version": missed.original_version}
    else:
        given |= {"one": missed.original_id, "one_version": missed.original_version}
    return _pair_response(
        visit,
        missed,
        (_view(pair.compared.article), _view(pair.compared.original)),
        visit.form.integer("part", 1),
        status=status,
        report=None,
        given=given,
        reasons=list(mismatch_reasons(visit.language, pair.compared.comparison)),
        refusal=None if refusal is None else visit.language.gettext(refusal.message),
        refusal_href="" if refusal is None else refusal.href,
    )


def _report_page(visit: SignedInVisit, report_id: int, pasted: ArticleView | None = None) -> Response:
    found, now_ms = read_report(visit, report_id), visit.context.now_ms()
    named = [(found.article_id, found.version), (found.original_id, found.original_version)]
    read = articles_named(visit.context, [pair for pair in named if pair[0]], bodies=True)
    views = [read.articles.get(pair) for pair in named]
    return _pair_response(
        visit,
        found,
        (pasted or views[0], views[1]),
        visit.query.integer("part", 1),
        report=found,
        pasted="" if pasted is None else pasted.body,
        left_ms=max(found.final_ms - now_ms, 0) if found.can_be_undone(visit.person.person_id, now_ms) else 0,
        store_is_away=read.is_away,
        banks=bank_choice(visit),
    )


def _pair_response(
    visit: SignedInVisit,
    missed: MissedPair,
    views: tuple[ArticleView | None, ArticleView | None],
    number: int,
    status: HTTPStatus = HTTPStatus.OK,
    **values: object,
) -> Response:
    """Return the page of a pair."""
    texts = pair_texts((missed.article_id, missed.original_id), views, number)
    defaults: dict[str, object] = {"store_is_away": False, "banks": None, "pasted": "", "left_ms": 0}
    return visit.page(
        "report.html",
        status=status,
        pair=missed,
        texts=texts,
        article=texts.article,
        original=texts.original,
        keywords=pair_keywords(*views),
        **{**defaults, **values},
    )
