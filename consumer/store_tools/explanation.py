"""Explains why two articles are near-duplicates or not: every condition with its figures, and the difference."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from consumer.fingerprint import Fingerprinter, Lexicon, facts_count, values_by_slot
from consumer.judge.comparison import PairComparison, compare
from consumer.judge.events import reference_in, shared_keywords, version_name
from consumer.judge.settings import JudgeSettings
from consumer.model.verdict import Part, Verdict
from consumer.store_tools.inspection import History, stored_article
from consumer.text.diff import Stretch, difference
from consumer.text.moves import with_moves
from consumer.text.passages import Passage, passages
from consumer.text.timestamps import rfc3339
from storage.interface import Store
from storage.records import StoredVersion


class ComparedArticle(NamedTuple):
    """One article of a pair. ``body`` is None if the store keeps no text. An article from a file has no history."""

    stored: StoredVersion
    body: str | None
    history: History


class Facts(NamedTuple):
    """The facts that only one of the two articles has, and the common ones."""

    only_a: list[str]
    only_b: list[str]
    both: list[str]


class SlotConflict(NamedTuple):
    """A slot, and the different values that the two articles have in it."""

    slot: str
    a: str
    b: str


class Explanation(NamedTuple):
    """Everything to show about a pair. ``other_settings`` are requested settings that differ from the store's.

    ``facts``, ``slot_conflicts`` and ``difference`` are None if they are not compared, or if a text is missing.
    """

    a: ComparedArticle
    b: ComparedArticle
    comparison: PairComparison
    settings: JudgeSettings
    other_settings: list[str]
    facts: Facts | None
    slot_conflicts: list[SlotConflict] | None
    difference: list[Stretch] | None


def compared_article(store: Store, url: str, article_id: str, version: str | None = None) -> ComparedArticle:
    """Return the named version of a stored article, or the latest. Raises ``ConfigError`` if there is none."""
    stored, history = stored_article(store, url, article_id, version)
    return ComparedArticle(stored, store.bodies([stored.record.reference])[0], history)


def explain_pair(
    a: ComparedArticle,
    b: ComparedArticle,
    settings: JudgeSettings,
    lexicon: Lexicon,
    other_settings: Sequence[str] = (),
) -> Explanation:
    """Return the explanation of a pair.

    Facts and slots are included if a guard compares them. Facts, slots and the difference need both texts.
    """
    comparison = compare(a.stored, [b.stored], settings)[0]
    facts = _facts(a, b, settings, lexicon) if comparison.facts_shared_min else None
    conflicts = None if comparison.slot_conflicts is None else _slot_conflicts(a, b, settings, lexicon)
    differing = None if a.body is None or b.body is None else with_moves(difference(a.body, b.body))
    return Explanation(a, b, comparison, settings, list(other_settings), facts, conflicts, differing)


def plain_values(explanation: Explanation) -> dict[str, object]:
    """Return the explanation as plain values, for JSON."""
    a, b, comparison = explanation.a, explanation.b, explanation.comparison
    stretches = explanation.difference
    return {
        "near": comparison.near,
        **msgspec.to_builtins(comparison),
        "shared_keywords": shared_keywords(a.stored.record, b.stored.record),
        **_plain_facts(explanation),
        "apart_ms": gap_ms(a.stored, b.stored),
        "window_ms": explanation.settings.window_ms,
        "other_settings": explanation.other_settings,
        "a": _plain_article(a),
        "b": _plain_article(b),
        "difference": None if stretches is None else _plain_changes(stretches),
    }


def gap_ms(a: StoredVersion, b: StoredVersion) -> int:
    """Return the time between two arrivals, in milliseconds."""
    return abs(a.record.time_ms - b.record.time_ms)


def _plain_article(article: ComparedArticle) -> dict[str, object]:
    ends_at = article.stored.ends_at
    return {
        "id": article.stored.record.id,
        "version": version_name(article.stored.record.reference),
        "arrived_at": rfc3339(article.stored.record.time_ms),
        "ends_at": None if ends_at is None else rfc3339(ends_at.time_ms),
    }


def _plain_changes(stretches: Sequence[Stretch]) -> list[dict[str, object]]:
    """Return every change in full: its positions and the text of each article."""
    return [
        {
            "at_a": stretch.at_a,
            "a": stretch.a,
            "at_b": stretch.at_b,
            "b": stretch.b,
            "compared": stretch.kind != "not compared",
            "moved": stretch.kind == "moved",
        }
        for stretch in stretches
        if stretch.kind != "equal"
    ]


def _plain_facts(explanation: Explanation) -> dict[str, object]:
    """Return the facts of both articles and their numbers, or the slots with different values, as plain values."""
    if explanation.comparison.slot_conflicts is not None:
        conflicts = explanation.slot_conflicts
        return {"conflicting_slots": None if conflicts is None else [each._asdict() for each in conflicts]}
    facts = explanation.facts
    return {
        "facts_a": facts_count(explanation.a.stored.record.facts),
        "facts_b": facts_count(explanation.b.stored.record.facts),
        "facts": None if facts is None else facts._asdict(),
    }


def _slot_conflicts(
    a: ComparedArticle, b: ComparedArticle, settings: JudgeSettings, lexicon: Lexicon
) -> list[SlotConflict] | None:
    """Return the slots with different values; None if a text is missing, since records hold only hashes."""
    if a.body is None or b.body is None:
        return None
    fingerprinter = Fingerprinter(settings.scheme, lexicon)
    values = values_by_slot(fingerprinter.slots(b.body))
    return [
        SlotConflict(slot, value, values[slot])
        for slot, value in values_by_slot(fingerprinter.slots(a.body)).items()
        if values.get(slot, value) != value
    ]


def _facts(a: ComparedArticle, b: ComparedArticle, settings: JudgeSettings, lexicon: Lexicon) -> Facts | None:
    """Return the facts of both articles; None if a text is missing, since records hold only hashes of facts."""
    if a.body is None or b.body is None:
        return None
    fingerprinter = Fingerprinter(settings.scheme, lexicon)
    facts_a, facts_b = fingerprinter.facts(a.body), fingerprinter.facts(b.body)
    return Facts(sorted(facts_a - facts_b), sorted(facts_b - facts_a), sorted(facts_a & facts_b))


class SharedPart(NamedTuple):
    """A part, and the passages that a text shares with the part's article, or None if either text is missing."""

    part: Part
    passages: list[Passage] | None


def shared_passages(store: Store, body: str | None, parts: Sequence[Part]) -> list[SharedPart]:
    """Return the passages that a text shares with the article of each part. Raises the store's errors."""
    if body is None:
        return [SharedPart(part, None) for part in parts]
    others = store.bodies([reference_in(part.id, part.version) for part in parts])
    return [
        SharedPart(part, None if other is None else passages(body, other))
        for part, other in zip(parts, others, strict=True)
    ]


def passages_of(store: Store, stored: StoredVersion, verdict: Verdict | None) -> list[SharedPart]:
    """Return the shared passages for the parts that a stored verdict names; [] if it names none."""
    if verdict is None or not isinstance(verdict.parts, tuple):
        return []
    return shared_passages(store, store.bodies([stored.record.reference])[0], verdict.parts)
