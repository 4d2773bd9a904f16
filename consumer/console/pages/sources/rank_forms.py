"""The ranks of sources on the page of sources: everybody sees them, and admins set and remove them."""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from consumer.console.faults import N_, PageError, not_found
from consumer.console.pages.queue_filters import SOURCE_CHARS_MAX
from consumer.console.visit import Fields, SignedInVisit
from consumer.reviews.database import Connection
from consumer.reviews.portable import storable
from consumer.reviews.ranking import rank_changes, ranks
from consumer.reviews.ranking.ranks import RANK_MAX, RANK_MIN, SourceRank

RANKS_MAX: Final = 200
"""Ranks that the page lists, the highest."""
_RANK: Final = re.compile(r"[+-]?[0-9]{1,5}")
_SAID: Final = {
    "set": N_("The rank is set."),
    "remove": N_("The rank is removed."),
}


class RankLine(NamedTuple):
    """A rank in the list, and the one in the configuration that it takes the place of; None where there is none."""

    rank: SourceRank
    replaced: int | None


class RankList(NamedTuple):
    """The ranks that the page lists. ``is_under_way``: some stories do not have the latest ranks yet."""

    lines: tuple[RankLine, ...]
    left_out: int
    is_under_way: bool


def rank_list(asked: SignedInVisit, connection: Connection) -> RankList:
    """Return the ranks for the page of sources."""
    configured = {storable(name): rank for name, rank in asked.desk.section.authority.items()}
    known = [each for each in ranks.listed_ranks(connection) if not each.is_removed]
    lines = tuple(
        RankLine(each, None if each.person is None else configured.get(each.source)) for each in known[:RANKS_MAX]
    )
    is_under_way = ranks.least_applied(connection) is not None
    return RankList(lines, len(known) - len(lines), is_under_way)


def said_of_rank(asked: SignedInVisit) -> str:
    """Return what a change of a rank has done, where the query says that there was one."""
    said = _SAID.get(asked.query.text("done"), "")
    return asked.language.gettext(said) if said else ""


def set_named(asked: SignedInVisit) -> Response:
    """Set the rank of a source that is named by hand, also of one that no article has named yet."""
    source, rank = asked.form.text("source", SOURCE_CHARS_MAX), _rank_in(asked.form)
    if not source:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Give the name of a source, as its articles have it."))
    return _done(asked, "set", lambda connection: _set(asked, connection, source, rank))


def change(asked: SignedInVisit) -> Response:
    """Set or remove the rank of a source that has one, as the button says."""
    action, source_id = asked.form.text("action"), asked.places["source_id"]
    if action not in _SAID:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("A rank can be set or removed."))
    rank = _rank_in(asked.form) if action == "set" else 0

    def changed(connection: Connection) -> None:
        known = ranks.rank_of(connection, source_id)
        if known is None or known.is_removed:
            raise not_found()
        if action == "set":
            _set(asked, connection, known.source, rank)
        else:
            _remove(asked, connection, known)

    return _done(asked, action, changed)


def _set(asked: SignedInVisit, connection: Connection, source: str, rank: int) -> None:
    now_ms = asked.desk.now_ms()
    rank_changes.set_rank(connection, source, rank, asked.person.person_id, now_ms)
    asked.note(connection, "source.rank", at_ms=now_ms, subject=source, why=f"{rank}")


def _remove(asked: SignedInVisit, connection: Connection, known: SourceRank) -> None:
    if known.person is None:
        message = N_(
            "This rank comes from the configuration, and nothing was changed. Set another one here, or change it there."
        )
        raise PageError(HTTPStatus.CONFLICT, message)
    now_ms = asked.desk.now_ms()
    rank_changes.remove_rank(connection, known, asked.desk.section.authority, now_ms)
    asked.note(connection, "source.rank", at_ms=now_ms, subject=known.source, why="removed")


def _done(asked: SignedInVisit, action: str, work: Callable[[Connection], None]) -> Response:
    asked.desk.database.written(work)
    return asked.redirect("/sources", done=action)


def _rank_in(form: Fields) -> int:
    """Return the rank that a form has. Raises ``PageError``."""
    written = form.text("rank").replace("−", "-")
    if not _RANK.fullmatch(written) or not RANK_MIN <= int(written) <= RANK_MAX:
        message = N_("A rank is a whole number from %(least)s to %(most)s.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, least=RANK_MIN, most=RANK_MAX)
    return int(written)
