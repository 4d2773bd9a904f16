"""Durations, notices and links that the pages of standing decisions share."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from consumer.console.faults import N_, PageError
from consumer.console.visit import Fields, SignedInVisit
from consumer.reviews.standing.standing_decisions import LASTS_MS_MAX, StandingOutcome, StandingRevocation
from storage.clock import MS_PER_S

DURATION_FIELD: Final = "lasts"
"""The form field with the duration of a standing decision, in seconds."""
_POSSIBLE_DURATIONS_S: Final = (3_600, 86_400, 604_800, 2_592_000, 7_776_000)
DEFAULT_S: Final = 86_400
_DONE: Final = "done"
_TAKEN_BACK: Final = "taken_back"
_KEPT: Final = "kept"
"""Query fields that say what was just done."""
_NOTICES: Final[Mapping[str, str]] = {
    "begun": N_("Further copies of this story are decided right as they arrive."),
    "muted": N_("The pair of sources is muted: its flags are decided wrong as they arrive."),
}


def duration_choices(visit: SignedInVisit, decision: StandingOutcome) -> list[tuple[str, str]]:
    """Return the possible durations of a standing decision as options of a list."""
    return [(str(seconds), visit.language.duration(seconds)) for seconds in _durations_s(decision)]


def duration_ms_in(form: Fields, decision: StandingOutcome) -> int:
    """Return the duration in a form, in milliseconds. Raises ``PageError``."""
    seconds = form.integer(DURATION_FIELD)
    if seconds not in _durations_s(decision):
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Choose from the list how long it lasts. Nothing was changed."))
    return seconds * MS_PER_S


def _durations_s(decision: StandingOutcome) -> list[int]:
    return [seconds for seconds in _POSSIBLE_DURATIONS_S if seconds * MS_PER_S <= LASTS_MS_MAX[decision]]


def done_fields(done: str, ending: StandingRevocation | None = None) -> dict[str, object]:
    """Return the query fields that make a page say what was done."""
    counts = {} if ending is None else {_TAKEN_BACK: len(ending.reopened), _KEPT: ending.kept}
    return {_DONE: done, **counts}


def standing_notice(visit: SignedInVisit) -> str:
    """Return the notice about what was just done, or "" without one."""
    language, done = visit.language, visit.query.text(_DONE)
    if done in _NOTICES:
        return language.gettext(_NOTICES[done])
    if done != "ended":
        return ""
    taken_back, kept = visit.query.integer(_TAKEN_BACK, 0), visit.query.integer(_KEPT, 0)
    back = language.ngettext(
        "%(num)s of its decisions was taken back: the flag is open again.",
        "%(num)s of its decisions were taken back: the flags are open again.",
        taken_back,
    )
    final = language.ngettext("%(num)s was already final and stays.", "%(num)s were already final and stay.", kept)
    counts = [sentence for sentence, number in ((back, taken_back), (final, kept)) if number]
    return " ".join([language.gettext(N_("The standing decision has ended.")), *counts])


def mute_href(source: str | None, original_source: str | None) -> str | None:
    """Return the address of the page that mutes a pair of sources, or None if one is unknown or has no name."""
    if not source or not original_source:
        return None
    return f"/standing/mute?{urlencode({'source': source, 'original_source': original_source})}"
