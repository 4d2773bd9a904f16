"""Puts verdicts and pairs into words: why a pair was flagged or not, and what else a verdict says."""

from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup

from consumer.console.context import ConsoleContext
from consumer.console.faults import N_
from consumer.console.i18n import Language
from consumer.console.rendering import moment
from consumer.judge.comparison import PairComparison
from consumer.model.verdict import EndedBefore, SeenBefore, Verdict
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.kinds.bank_mentions import Mention
from consumer.text.timestamps import parse_moment, since_1970_ms
from consumer.text.visible import one_line

_ID_CHARS_MAX: Final = 80
_MENTIONS_MAX: Final = 20


def reasons(
    context: ConsoleContext,
    language: Language,
    flag: FlagRow,
    verdict: Verdict | None,
    mentions: Sequence[Mention] = (),
) -> list[str]:
    """Return the reasons why an entry is in the queue; ``verdict`` is None if the store no longer has the article."""
    ended = None if verdict is None or flag.kind != "ended_before" else verdict.ended_before
    if mentions:
        sentences = [_mention_sentence(language, mention) for mention in mentions[:_MENTIONS_MAX]]
    elif isinstance(ended, EndedBefore):
        sentences = [ended_before_text(language, ended)]
    else:
        sentences = [*_similarity_sentences(context, language, flag)]
    if verdict is not None:
        sentences += verdict_sentences(language, verdict)
    elif flag.truncated:
        sentences.append(language.gettext(N_("A limit cut the search short, so a nearer article may exist.")))
    return sentences


def _mention_sentence(language: Language, mention: Mention) -> str:
    sentence = {
        "equal": N_("The text is the same as the item %(item)s of the bank %(bank)s."),
        "similar": N_("About %(share)s of the text is in both the article and the item %(item)s of the bank %(bank)s."),
        "part": N_("The article contains about %(share)s of the item %(item)s of the bank %(bank)s."),
    }[mention.form]
    return language.gettext(
        sentence,
        share=percent(language, mention.similarity),
        item=one_line(mention.item, _ID_CHARS_MAX),
        bank=one_line(mention.bank, _ID_CHARS_MAX),
    )


def _similarity_sentences(context: ConsoleContext, language: Language, flag: FlagRow) -> Iterator[str]:
    thresholds = None
    if context.judging is not None:
        thresholds = context.judging.thresholds_for(flag.source or "", flag.original_source or "")
    if flag.similarity is None:
        yield language.gettext(
            N_("The similarity was not measured: both texts are short, or only fingerprints are compared.")
        )
    elif thresholds is None:
        yield language.gettext(
            N_("About %(share)s of the text is in both articles."), share=percent(language, flag.similarity)
        )
    else:
        yield language.gettext(
            N_("About %(share)s of the text is in both articles. Pairs are flagged from %(least)s."),
            share=percent(language, flag.similarity),
            least=percent(language, thresholds.similarity_min),
        )


def verdict_sentences(language: Language, verdict: Verdict) -> Iterator[str]:
    """Yield sentences about a verdict's limits, earlier arrivals and other near articles."""
    if verdict.truncated:
        yield language.gettext(N_("A limit cut the search short, so a nearer article may exist."))
    if isinstance(verdict.seen_before, SeenBefore):
        seen = verdict.seen_before
        sentence = language.ngettext(
            "The same text arrived at least %(num)s time before, first on %(first)s and last on %(last)s.",
            "The same text arrived at least %(num)s times before, first on %(first)s and last on %(last)s.",
            seen.times,
            first=event_moment(language, seen.first),
            last=event_moment(language, seen.last),
        )
        yield Markup(sentence)  # noqa: S704  # from the catalogue, with times
    others = [match for match in verdict.matches if match.id != verdict.duplicate_of]
    if others:
        yield language.gettext(
            N_("Also near: %(ids)s."), ids=", ".join(one_line(match.id, _ID_CHARS_MAX) for match in others)
        )


def part_sentences(language: Language, verdict: Verdict) -> Iterator[str]:
    """Yield a sentence for each article that shares a long stretch with this one."""
    if isinstance(verdict.parts, tuple):
        for part in verdict.parts:
            yield language.gettext(
                N_("%(share)s of this article also appears in %(id)s."),
                share=percent(language, part.share_of_this),
                id=one_line(part.id, _ID_CHARS_MAX),
            )


def percent(language: Language, share: float) -> str:
    """Return a share as a whole percentage."""
    return f"{language.number(round(share * 100))} %"


def event_moment(language: Language, rfc3339: str) -> Markup:
    """Return the time from an event in the form that pages show."""
    return moment(language, since_1970_ms(parse_moment(rfc3339)))


def ended_before_text(language: Language, ended: EndedBefore) -> Markup:
    """Return a sentence on when the earlier article was retracted or replaced, and how similar both texts are."""
    at = event_moment(language, ended.ended_at)
    if ended.similarity is None:
        sentence = language.gettext(N_("That article was retracted or replaced %(time)s."), time=at)
    else:
        sentence = language.gettext(
            N_("That article was retracted or replaced %(time)s; about %(share)s of the text is in both."),
            time=at,
            share=percent(language, ended.similarity),
        )
    return Markup(sentence)  # noqa: S704  # from the catalogue, with a time and a number


def mismatch_reasons(language: Language, comparison: PairComparison) -> Iterator[str]:
    """Yield sentences on why two articles are not copies under the store's settings."""
    conditions = (
        (comparison.same_scheme, N_("Their fingerprints were made by different schemes.")),
        (comparison.in_window, N_("They arrived further apart than the window allows.")),
        (comparison.in_force, N_("The earlier one had been retracted or replaced when the later one arrived.")),
        (comparison.allowed, N_("A rule keeps articles of these sources apart.")),
        (comparison.not_released, N_("Somebody has released this pair: it is not flagged again.")),
        (comparison.verified, _unverified_reason(comparison)),
        (comparison.facts_agree or not comparison.verified, N_("Figures, dates or names differ too much.")),
        (
            comparison.found or not comparison.verified,
            N_("A search for one does not find the other: they share too few keys."),
        ),
        (
            not comparison.near,
            N_("All conditions hold, so a limit cut the search short, or both arrived at about the same time."),
        ),
    )
    for holds, message in conditions:
        if not holds:
            least = percent(language, comparison.similarity_min)
            yield language.gettext(message, least=least, most=language.number(comparison.distance_max))


def _unverified_reason(comparison: PairComparison) -> str:
    if comparison.similarity is not None and comparison.similarity < comparison.similarity_min:
        return N_("They are less similar than the threshold, %(least)s.")
    return N_(
        "Short texts are copies only if they are equal, and fingerprints without a similarity may differ in at most "
        "%(most)s bits."
    )
