"""Why a repair was refused, as pages say it."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from consumer.console.faults import N_, PageError
from consumer.reviews.repairs.outcome import Why

_MESSAGES: Final[Mapping[Why, str]] = {
    "gone": N_("Nothing was changed: it was undone before, or is no longer there."),
    "kind": N_("Only copies can be split off a story. Nothing was changed."),
    "released": N_("This flag was released, so the article is no longer a copy of the story. Nothing was changed."),
    "root": N_("This is another version of the story's original, and cannot be split off. Nothing was changed."),
    "split": N_(
        "This article was split off before. If its story was merged since then, undo that. Nothing was changed."
    ),
    "merged": N_("The two are one story already. Nothing was changed."),
}


def page_error(why: Why) -> PageError:
    """Return the error of a repair that was refused."""
    return PageError(HTTPStatus.CONFLICT, _MESSAGES[why])
