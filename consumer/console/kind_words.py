"""The words that pages use for each kind of queue entry."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from consumer.console.faults import N_
from consumer.reviews.decisions import Decision
from consumer.reviews.kinds.rules import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class KindWords:
    """The words for one kind. All are messages to be translated.

    ``tag`` marks a row, "" for flags. ``repeats`` precedes the title of the earlier article or bank item in a list,
    and ``role`` is the heading of this article or item on the page of an entry. On that page, ``reasons_heading``
    stands above the reasons why the entry is in the queue, and ``reason_label`` before the choice of a reason. Buttons
    and the history show ``decisions``, rows show ``states``, and the notice after a decision shows ``decided``.
    ``effect`` says what an answer changes, or is "" if that depends on settings.
    """

    name: str
    plural: str
    tag: str
    repeats: str
    role: str
    reasons_heading: str
    effect: str
    reason_label: str
    decisions: Mapping[Decision, str]
    decided: Mapping[Decision, str]
    states: Mapping[str, str]


def _decision_names(right: str, wrong: str, skip: str) -> Mapping[Decision, str]:
    return MappingProxyType({"right": right, "wrong": wrong, "skip": skip})


def _state_names(right: str, wrong: str) -> Mapping[str, str]:
    return MappingProxyType(
        {"open": "", "skipped": N_("skipped"), "right": right, "wrong": wrong, "released": N_("released elsewhere")}
    )


_RIGHT: Final = _decision_names(N_("Right"), N_("Wrong"), N_("Skipped"))
_DECIDED_RIGHT: Final = _decision_names(N_("Decided: right."), N_("Decided: wrong."), N_("Skipped."))
_IS_RIGHT: Final = _state_names(N_("right"), N_("wrong"))
_SAME: Final = _decision_names(N_("Same article"), N_("Different articles"), N_("Skipped"))
_DECIDED_SAME: Final = _decision_names(
    N_("Decided: the same article."), N_("Decided: different articles."), N_("Skipped.")
)
_IS_SAME: Final = _state_names(N_("same article"), N_("different articles"))

WORDS: Final[Mapping[Kind, KindWords]] = MappingProxyType(
    {
        "flag": KindWords(
            name=N_("Flag"),
            plural=N_("Flags"),
            tag="",
            repeats=N_("repeats"),
            role=N_("repeats this earlier article"),
            reasons_heading=N_("Why it was flagged"),
            effect="",
            reason_label=N_("Reason, if wrong"),
            decisions=_RIGHT,
            decided=_DECIDED_RIGHT,
            states=_IS_RIGHT,
        ),
        "near_miss": KindWords(
            name=N_("Near miss"),
            plural=N_("Near misses"),
            tag=N_("near miss"),
            repeats=N_("resembles"),
            role=N_("resembles this earlier article"),
            reasons_heading=N_("Why it was not flagged"),
            effect=N_(
                "This pair was not flagged. Your answer does not affect the two articles; it shows how good the "
                "threshold is."
            ),
            reason_label=N_("Reason, if different"),
            decisions=_SAME,
            decided=_DECIDED_SAME,
            states=_IS_SAME,
        ),
        "ended_before": KindWords(
            name=N_("Repeat of a retracted article"),
            plural=N_("Repeats of retracted articles"),
            tag=N_("repeats a retracted article"),
            repeats=N_("repeats this retracted or replaced article:"),
            role=N_("repeats this article, which had been retracted or replaced"),
            reasons_heading=N_("Why it was not flagged"),
            effect=N_(
                "The article counts as unique, because the earlier one had already been retracted or replaced. "
                "Your answer does not affect the two articles; it says whether somebody posted the same text "
                "again."
            ),
            reason_label=N_("Reason, if different"),
            decisions=_SAME,
            decided=_DECIDED_SAME,
            states=_IS_SAME,
        ),
        "bank_match": KindWords(
            name=N_("Bank match"),
            plural=N_("Bank matches"),
            tag=N_("bank match"),
            repeats=N_("matches"),
            role=N_("matches this item"),
            reasons_heading=N_("Why it is here"),
            effect=N_(
                "Right: the article repeats this text. Wrong: it does not. Your answer does not affect the "
                "article. If the item matches too much, raise its similarity or disable it on its page."
            ),
            reason_label=N_("Reason, if wrong"),
            decisions=_RIGHT,
            decided=_DECIDED_RIGHT,
            states=_IS_RIGHT,
        ),
    }
)
