"""Why a pair was flagged, or was not: the figures of its verdict beside what they were measured by, as sentences."""

from collections.abc import Iterator

from consumer.console.context import Desk
from consumer.console.faults import N_
from consumer.console.i18n import Language
from consumer.model.verdict import SeenBefore, Verdict
from consumer.reviews.flag_row import FlagRow
from consumer.text.visible import one_line

_ID_CHARS_MAX = 80
_SECOND_CHARS = 19


def reasons(desk: Desk, language: Language, flag: FlagRow, verdict: Verdict | None) -> list[str]:
    """Return them; ``verdict`` is None where the store no longer has it."""
    said = [*_measured(desk, language, flag)]
    if verdict is not None:
        said += _of_verdict(language, verdict)
    elif flag.truncated:
        said.append(language.gettext(N_("A limit cut the search short, so a nearer article may exist.")))
    return said


def _measured(desk: Desk, language: Language, flag: FlagRow) -> Iterator[str]:
    thresholds = None
    if desk.judging is not None:
        thresholds = desk.judging.thresholds_for(flag.source or "", flag.original_source or "")
    if flag.similarity is None:
        yield language.gettext(
            N_("The similarity was not measured: both texts are short, or only fingerprints decide.")
        )
    elif thresholds is None:
        yield language.gettext(
            N_("About %(share)s of the text is in both articles."), share=_percent(language, flag.similarity)
        )
    else:
        yield language.gettext(
            N_("About %(share)s of the text is in both articles; from %(least)s on a pair is flagged."),
            share=_percent(language, flag.similarity),
            least=_percent(language, thresholds.similarity_min),
        )
    if flag.distance is not None:
        yield language.ngettext(
            "The fingerprints differ in %(num)s bit.", "The fingerprints differ in %(num)s bits.", flag.distance
        )


def _of_verdict(language: Language, verdict: Verdict) -> Iterator[str]:
    if verdict.truncated:
        yield language.gettext(N_("A limit cut the search short, so a nearer article may exist."))
    if isinstance(verdict.seen_before, SeenBefore):
        seen = verdict.seen_before
        yield language.ngettext(
            "The same text came at least %(num)s time before, first on %(first)s and last on %(last)s.",
            "The same text came at least %(num)s times before, first on %(first)s and last on %(last)s.",
            seen.times,
            first=_utc(seen.first),
            last=_utc(seen.last),
        )
    if isinstance(verdict.parts, tuple):
        for part in verdict.parts:
            yield language.gettext(
                N_("%(share)s of this article also stands in %(id)s."),
                share=_percent(language, part.share_of_this),
                id=one_line(part.id, _ID_CHARS_MAX),
            )
    others = [match for match in verdict.matches if match.id != verdict.duplicate_of]
    if others:
        yield language.gettext(
            N_("Also near: %(ids)s."), ids=", ".join(one_line(match.id, _ID_CHARS_MAX) for match in others)
        )


def _percent(language: Language, share: float) -> str:
    return f"{language.number(round(share * 100))} %"


def _utc(rfc3339: str) -> str:
    return f"{rfc3339[:_SECOND_CHARS].replace('T', ' ')} UTC"
