"""What people did with a flag, as its page tells it."""

from typing import Final, NamedTuple

from consumer.console.faults import N_
from consumer.console.i18n import Language
from consumer.reviews.discussion import Said
from consumer.reviews.flag_row import Kind

_DECISIONS: Final = {
    ("flag", "right"): N_("Right"),
    ("flag", "wrong"): N_("Wrong"),
    ("flag", "skip"): N_("Skipped"),
    ("near_miss", "right"): N_("Same article"),
    ("near_miss", "wrong"): N_("Different articles"),
    ("near_miss", "skip"): N_("Skipped"),
}


class Told(NamedTuple):
    """One thing that somebody did. ``after`` says what became of it, "" where there is nothing to say."""

    said: str
    after: str
    person: str
    at_ms: int
    text: str
    is_undone: bool


def told(language: Language, kind: Kind, history: list[Said], now_ms: int) -> list[Told]:
    """Return what people did, in order."""
    return [_told(language, kind, said, now_ms) for said in history]


def _told(language: Language, kind: Kind, said: Said, now_ms: int) -> Told:
    if said.decision is None:
        return Told(language.gettext(N_("Note")), "", said.person, said.at_ms, said.text, is_undone=False)
    name = language.gettext(_DECISIONS[kind, said.decision])
    after = _after(language, kind, said, now_ms)
    return Told(name, after, said.person, said.at_ms, said.text, is_undone=said.undone_ms is not None)


def _after(language: Language, kind: Kind, said: Said, now_ms: int) -> str:
    if said.undone_ms is not None:
        return language.gettext(N_("undone %(time)s"), time=language.moment(said.undone_ms))
    if said.decision != "wrong" or kind != "flag":
        return ""
    if said.sent_ms is not None:
        return language.gettext(N_("released %(time)s"), time=language.moment(said.sent_ms))
    if said.refused is not None:
        return language.gettext(N_("could not be released: %(why)s"), why=said.refused)
    if said.final_ms is not None and now_ms < said.final_ms:
        return language.gettext(N_("is released %(time)s"), time=language.moment(said.final_ms))
    return language.gettext(N_("final; the release is on its way"))
