"""Reporting a copy that was missed: two articles are compared, somebody confirms, and the report is stored.

Of a pasted text only its digest and the figures are stored.
"""

import logging
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from consumer.console.context import ArticleView, article_view
from consumer.console.faults import N_, PageError, not_found
from consumer.console.pages.bank_choice import bank_choice
from consumer.console.pages.bank_forms import said_of
from consumer.console.pages.look_up.article_page import ID_CHARS_MAX
from consumer.console.pages.look_up.pair_texts import pair_keywords, pair_texts
from consumer.console.pages.look_up.pasted_text import (
    TEXT_CHARS_MAX,
    PastedText,
    article_of,
    check_id,
    counted,
    pasted_in,
)
from consumer.console.pages.look_up.text_page import store_is_away
from consumer.console.pages.stored_articles import articles_named
from consumer.console.stored_matches import ComparedPair, NamedVersion
from consumer.console.verdict_words import kept_apart
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
"""Reports that the form lists, the latest."""
_VERSION_CHARS_MAX: Final = 64
_FIELDS: Final = ("one", "one_version", "other", "other_version", *PastedText._fields)


class ReportRefusal(NamedTuple):
    """Why a pair cannot be reported, and the page that has more about it, "" for none."""

    message: str
    href: str = ""


class _ReportedPair(NamedTuple):
    """Two articles, and what was found out about them."""

    compared: ComparedPair
    missed: MissedPair


def show_form(asked: SignedInVisit) -> Response:
    """Show the form, with an id in it if the address names one."""
    return _form(asked, {"one": asked.query.exact("one", ID_CHARS_MAX)})


def compare(asked: SignedInVisit) -> Response:
    """Compare the two, and ask whether they are to be reported. Stores nothing."""
    try:
        pair = _pair_in(asked)
    except PageError as error:
        return _form(asked, _given(asked.form), refusal=counted(asked, error))
    except (StoreError, StoreMismatch) as error:
        log.warning("The store does not answer: %s", error, extra={"request_id": asked.request_id})
        return _form(asked, _given(asked.form), refusal=store_is_away())
    return _pair_page(asked, pair, _refused(asked, pair))


def report(asked: SignedInVisit) -> Response:
    """Store a report, and show it."""
    note, pair = asked.form.text("note", NOTE_CHARS_MAX), _pair_in(asked)
    refusal = _refused(asked, pair)
    if refusal is None:
        now_ms, undo_ms = asked.desk.now_ms(), round(asked.desk.section.undo_s * MS_PER_S)

        def added(connection: Connection) -> int | None:
            report_id = reports.add(connection, pair.missed, asked.person.person_id, note, now_ms, undo_ms)
            if report_id is not None:
                asked.note(connection, "report.add", at_ms=now_ms, subject=_subject(pair.missed, report_id), why=note)
            return report_id

        report_id = asked.desk.database.written(added)
        if report_id is not None:
            if pair.missed.article_id:
                return asked.redirect(f"/reports/{report_id}")
            # A text is kept nowhere, so it can be added to a bank from this answer only.
            return _report_page(asked, report_id, _view(pair.compared.article))
        refusal = _refused(asked, pair)
    return _pair_page(asked, pair, refusal, status=HTTPStatus.CONFLICT)


def show_report(asked: SignedInVisit) -> Response:
    """Show a report."""
    return _report_page(asked, asked.places["report_id"])


def undo(asked: SignedInVisit) -> Response:
    """Take a report of one's own back, and show it."""
    report_id, now_ms = asked.places["report_id"], asked.desk.now_ms()
    found = the_report(asked, report_id)

    def undone(connection: Connection) -> bool:
        is_undone = reports.undo(connection, report_id, asked.person.person_id, now_ms)
        if is_undone:
            asked.note(connection, "report.undo", at_ms=now_ms, subject=_subject(found, report_id))
        return is_undone

    if not asked.desk.database.written(undone):
        message = N_("This report can no longer be undone: it is final, was undone before, or is somebody else's.")
        raise PageError(HTTPStatus.CONFLICT, message)
    return asked.redirect(f"/reports/{report_id}")


def the_report(asked: SignedInVisit, report_id: int) -> MissedPairReport:
    """Return a report. Raises ``PageError`` where there is none of this number."""
    with asked.desk.database.reading() as connection:
        found = reports.report(connection, report_id)
    if found is None:
        raise not_found()
    return found


def _subject(pair: MissedPair, report_id: int) -> str:
    return f"{pair.article_id or pair.original_id} ({report_id})"


def _given(form: Fields) -> dict[str, str]:
    return {name: form.exact(name, TEXT_CHARS_MAX) for name in _FIELDS}


def _pair_in(asked: SignedInVisit) -> _ReportedPair:
    """Compare what a form names. Raises ``PageError``, and the store's errors."""
    form = asked.form
    one = _named(form, "one")
    text, other = pasted_in(form), form.exact("other", ID_CHARS_MAX)
    if one is None:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Name an article by its id."))
    if bool(text.text) == bool(other.strip()):
        message = N_("Name the other article by its id, or paste its text: one of the two.")
        raise PageError(HTTPStatus.BAD_REQUEST, message)
    second: NamedVersion | Article | None = article_of(text) if text.text else _named(form, "other")
    assert second is not None  # noqa: S101  # as above
    compared = asked.desk.matches.pair(one, second)
    return _ReportedPair(compared, _missed(compared, is_text=bool(text.text)))


def _named(form: Fields, field: str) -> NamedVersion | None:
    article_id = form.exact(field, ID_CHARS_MAX)
    if not article_id.strip():
        return None
    check_id(article_id)
    return NamedVersion(article_id, form.text(f"{field}_version", _VERSION_CHARS_MAX) or None)


def _missed(compared: ComparedPair, *, is_text: bool) -> MissedPair:
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


def _refused(asked: SignedInVisit, pair: _ReportedPair) -> ReportRefusal | None:
    """Return why a pair cannot be reported, None where it can."""
    comparison = pair.compared.comparison
    if not comparison.other_ids:
        return ReportRefusal(N_("Both are versions of one article, which are never compared with each other."))
    if pair.compared.is_one_story:
        return ReportRefusal(
            N_("Nothing was missed: one is flagged as a copy of the other, or both as copies of a third.")
        )
    if not pair.missed.article_id and comparison.near:
        return ReportRefusal(N_("Nothing was missed: this text would be flagged as a copy of the article."))
    with asked.desk.database.reading() as connection:
        flag = reports.flag_of_pair(connection, pair.missed)
        known = reports.report_of(connection, pair.missed)
    if flag is not None:
        return ReportRefusal(_known(flag), f"/flags/{flag.flag_id}")
    if known is not None:
        return ReportRefusal(N_("Somebody has reported this pair already."), f"/reports/{known.report_id}")
    return None


def _known(flag: FlagRow) -> str:
    rule = RULES[flag.kind]
    if rule.is_copy:
        return N_("This pair was flagged. Decide about the flag, or look at the decision.")
    if rule.is_measured:
        return N_("This pair is a near miss that was drawn at random. Decide about it there: then it counts.")
    return N_("This pair is in the queue: the earlier article had been retracted or replaced. Decide about it there.")


def _view(side: explanation.ComparedArticle) -> ArticleView:
    return article_view(side.stored, side.body)


def _form(asked: SignedInVisit, given: dict[str, str], refusal: PageError | None = None) -> Response:
    with asked.desk.database.reading() as connection:
        latest = reports.latest(connection, LATEST_MAX)
    response = asked.page(
        "report_form.html",
        status=HTTPStatus.OK if refusal is None else refusal.status,
        given={name: given.get(name, "") for name in _FIELDS},
        latest=latest,
        text_chars_max=TEXT_CHARS_MAX,
        conflict=said_of(asked, refusal),
    )
    response.headers.update({} if refusal is None else refusal.headers)
    return response


def _pair_page(
    asked: SignedInVisit, pair: _ReportedPair, refusal: ReportRefusal | None, status: HTTPStatus = HTTPStatus.OK
) -> Response:
    """Answer with the page that asks; of both articles it names the versions that were compared."""
    missed, given = pair.missed, _given(asked.form)
    if not given["text"]:
        given |= {"one": missed.article_id, "one_version": missed.version}
        given |= {"other": missed.original_id, "other_version": missed.original_version}
    else:
        given |= {"one": missed.original_id, "one_version": missed.original_version}
    return _shown(
        asked,
        missed,
        (_view(pair.compared.article), _view(pair.compared.original)),
        asked.form.integer("part", 1),
        status=status,
        report=None,
        given=given,
        reasons=list(kept_apart(asked.language, pair.compared.comparison)),
        refusal=None if refusal is None else asked.language.gettext(refusal.message),
        refusal_href="" if refusal is None else refusal.href,
    )


def _report_page(asked: SignedInVisit, report_id: int, pasted: ArticleView | None = None) -> Response:
    found, now_ms = the_report(asked, report_id), asked.desk.now_ms()
    named = [(found.article_id, found.version), (found.original_id, found.original_version)]
    read = articles_named(asked.desk, [pair for pair in named if pair[0]], bodies=True)
    views = [read.articles.get(pair) for pair in named]
    return _shown(
        asked,
        found,
        (pasted or views[0], views[1]),
        asked.query.integer("part", 1),
        report=found,
        pasted="" if pasted is None else pasted.body,
        left_ms=max(found.final_ms - now_ms, 0) if found.can_be_undone(asked.person.person_id, now_ms) else 0,
        store_is_away=read.is_away,
        banks=bank_choice(asked),
    )


def _shown(
    asked: SignedInVisit,
    missed: MissedPair,
    views: tuple[ArticleView | None, ArticleView | None],
    number: int,
    status: HTTPStatus = HTTPStatus.OK,
    **values: object,
) -> Response:
    """Answer with the page of a pair."""
    texts = pair_texts((missed.article_id, missed.original_id), views, number)
    defaults: dict[str, object] = {"store_is_away": False, "banks": None, "pasted": "", "left_ms": 0}
    return asked.page(
        "report.html",
        status=status,
        pair=missed,
        texts=texts,
        article=texts.article,
        original=texts.original,
        keywords=pair_keywords(*views),
        **{**defaults, **values},
    )
