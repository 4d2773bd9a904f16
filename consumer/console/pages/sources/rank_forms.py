"""The ranks on the page of sources: everybody sees them, admins set and remove them."""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from consumer.console.faults import N_, PageError, not_found
from consumer.console.pages.queue_filters import SOURCE_CHARS_MAX
from consumer.console.visit import Fields, SignedInVisit
from consumer.reviews.database import Connection
from consumer.reviews.portable import storable_text
from consumer.reviews.ranking import rank_changes, ranks
from consumer.reviews.ranking.ranks import RANK_MAX, RANK_MIN, SourceRank

RANKS_MAX: Final = 200
"""The maximum number of ranks that the page lists. It lists the highest."""
_RANK: Final = re.compile(r"[+-]?[0-9]{1,5}")
_NOTICES: Final = {
    "set": N_("Rank set."),
    "remove": N_("Rank removed."),
}


class RankLine(NamedTuple):
    """A rank in the list, and the configured rank that it overrides, or None if it overrides none."""

    rank: SourceRank
    overridden_rank: int | None


class RankList(NamedTuple):
    """The ranks that the page lists. ``is_under_way``: some stories do not use the latest ranks yet."""

    lines: tuple[RankLine, ...]
    left_out: int
    is_under_way: bool


def rank_list(visit: SignedInVisit, connection: Connection) -> RankList:
    """Return the ranks for the page of sources."""
    configured = {storable_text(name): rank for name, rank in visit.context.section.authority.items()}
    known = [each for each in ranks.listed_ranks(connection) if not each.is_removed]
    lines = tuple(
        RankLine(each, None if each.person is None else configured.get(each.source)) for each in known[:RANKS_MAX]
    )
    is_under_way = ranks.rank_progress(connection) is not None
    return RankList(lines, len(known) - len(lines), is_under_way)


def rank_notice(visit: SignedInVisit) -> str:
    """Return the notice after a change of a rank, or "" without one."""
    notice = _NOTICES.get(visit.query.text("done"), "")
    return visit.language.gettext(notice) if notice else ""


def set_named(visit: SignedInVisit) -> Response:
    """Set the rank of a source typed by hand, even if no article has it yet."""
    source, rank = visit.form.text("source", SOURCE_CHARS_MAX), _rank_in(visit.form)
    if not source:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Enter the name of a source exactly as its articles have it."))
    return _write_and_show(visit, "set", lambda connection: _set(visit, connection, source, rank))


def change(visit: SignedInVisit) -> Response:
    """Set or remove the rank of a source that has one, depending on the button."""
    action, source_id = visit.form.text("action"), visit.path_parameters["source_id"]
    if action not in _NOTICES:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("A rank can be set or removed."))
    rank = _rank_in(visit.form) if action == "set" else 0

    def change_rank(connection: Connection) -> None:
        known = ranks.rank_of(connection, source_id)
        if known is None or known.is_removed:
            raise not_found()
        if action == "set":
            _set(visit, connection, known.source, rank)
        else:
            _remove(visit, connection, known)

    return _write_and_show(visit, action, change_rank)


def _set(visit: SignedInVisit, connection: Connection, source: str, rank: int) -> None:
    now_ms = visit.context.now_ms()
    rank_changes.set_rank(connection, source, rank, visit.person.person_id, now_ms)
    visit.add_audit_entry(connection, "source.rank", at_ms=now_ms, subject=source, why=f"{rank}")


def _remove(visit: SignedInVisit, connection: Connection, known: SourceRank) -> None:
    if known.person is None:
        message = N_(
            "This rank comes from the configuration. Nothing was changed. Set another one here, or change it there."
        )
        raise PageError(HTTPStatus.CONFLICT, message)
    now_ms = visit.context.now_ms()
    rank_changes.remove_rank(connection, known, visit.context.section.authority, now_ms)
    visit.add_audit_entry(connection, "source.rank", at_ms=now_ms, subject=known.source, why="removed")


def _write_and_show(visit: SignedInVisit, action: str, work: Callable[[Connection], None]) -> Response:
    visit.context.database.write(work)
    return visit.redirect("/sources", done=action)


def _rank_in(form: Fields) -> int:
    """Return the rank in a form. Raises ``PageError``."""
    written = form.text("rank").replace("−", "-")
    if not _RANK.fullmatch(written) or not RANK_MIN <= int(written) <= RANK_MAX:
        message = N_("A rank must be a whole number from %(least)s to %(most)s.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, least=RANK_MIN, most=RANK_MAX)
    return int(written)
