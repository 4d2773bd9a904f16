"""What pages of repairs share: the transaction of one, and why it was refused."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, TypeVar

from consumer.console.faults import N_, PageError
from consumer.console.visit import SignedInVisit
from consumer.reviews.database import Connection
from consumer.reviews.repairs.outcome import RepairRefusal, RepairRefused

_Result = TypeVar("_Result")

_MESSAGES: Final[Mapping[RepairRefusal, str]] = {
    "gone": N_("Nothing was changed: it was undone before, or is no longer there."),
    "kind": N_("Only copies can be split off a story. Nothing was changed."),
    "released": N_("This flag was released, so the article is no longer a copy of the story. Nothing was changed."),
    "root": N_("This is another version of the story's original, and cannot be split off. Nothing was changed."),
    "split": N_(
        "This article was split off before. If its story was merged since then, undo that. Nothing was changed."
    ),
    "merged": N_("The two are one story already. Nothing was changed."),
}


def repaired(asked: SignedInVisit, repair: Callable[[Connection], _Result]) -> _Result:
    """Repair a story in a transaction. Raises ``PageError`` where that is refused."""
    try:
        return asked.desk.database.written(repair)
    except RepairRefused as error:
        raise page_error(error.why) from error


def page_error(why: RepairRefusal) -> PageError:
    """Return the error of a repair that was refused."""
    return PageError(HTTPStatus.CONFLICT, _MESSAGES[why])
