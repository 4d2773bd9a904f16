"""Runs a repair of a story in a transaction, and explains refusals."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, TypeVar

from consumer.console.faults import N_, PageError
from consumer.console.visit import SignedInVisit
from consumer.reviews.database import Connection
from consumer.reviews.repairs.outcome import RepairRefusal, RepairRefused

_Result = TypeVar("_Result")

_MESSAGES: Final[Mapping[RepairRefusal, str]] = {
    "gone": N_("Nothing was changed: the flag or the story no longer exists, or this was already undone."),
    "kind": N_("Only copies can be split off a story. Nothing was changed."),
    "released": N_("This flag was released, so the article is no longer a copy of the story. Nothing was changed."),
    "root": N_("This is another version of the story's original, and cannot be split off. Nothing was changed."),
    "split": N_(
        "This article was already split off. Nothing was changed. If its story was merged afterwards, undo the merge."
    ),
    "merged": N_("The two are already one story. Nothing was changed."),
}


def run_repair(visit: SignedInVisit, repair: Callable[[Connection], _Result]) -> _Result:
    """Run a repair in a transaction. Raises ``PageError`` if it is refused."""
    try:
        return visit.context.database.write(repair)
    except RepairRefused as error:
        raise repair_error(error.refusal) from error


def repair_error(refusal: RepairRefusal) -> PageError:
    """Return the error for a refused repair."""
    return PageError(HTTPStatus.CONFLICT, _MESSAGES[refusal])
