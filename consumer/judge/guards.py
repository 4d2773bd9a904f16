"""The fact guard and the slot guard, which keep apart different stories told in the same words."""

from consumer.fingerprint import FactOverlap, fact_overlap, slot_conflicts
from consumer.judge.settings import FACTS_DIFFERING_MIN, FACTS_MISSING_MIN, JudgeSettings, Thresholds
from storage.records import Record


def compare_facts(a: bytes, b: bytes, thresholds: Thresholds) -> tuple[FactOverlap | None, int | None]:
    """Return the overlap of two texts' facts and the number of conflicting slots; None for a guard that is off."""
    return (
        fact_overlap(a, b) if thresholds.facts_shared_min else None,
        None if thresholds.slot_conflicts_max is None else slot_conflicts(a, b),
    )


def guard_skips(x: Record, y: Record, settings: JudgeSettings) -> bool:
    """Return whether the fact guard skips a pair, because the two texts are equal.

    Schemes that compare letters fold texts before digesting them, so equal digests do not imply equal facts.
    """
    if settings.scheme.definition.compares_letters:
        return x.text_digest == y.text_digest and x.facts == y.facts
    return x.text_digest == y.text_digest


def facts_agree(overlap: FactOverlap, thresholds: Thresholds) -> bool:
    """Return False for two stories in the same words: a correction changes a fact or two, another story most of them.

    In revision 2, also return False for a story and its bare frame, which has too few facts to differ in any.
    """
    share, share_of_more = overlap.share_of_fewer, overlap.share_of_more
    if share is not None and overlap.differing >= FACTS_DIFFERING_MIN and share < thresholds.facts_shared_min:
        return False
    if share_of_more is None or overlap.missing < FACTS_MISSING_MIN:
        return True
    return share_of_more >= thresholds.facts_shared_of_more_min


def slots_agree(conflicts: int, thresholds: Thresholds) -> bool:
    """Return whether two texts differ in few enough slots."""
    return thresholds.slot_conflicts_max is None or conflicts <= thresholds.slot_conflicts_max


def guards_let_pass(a: bytes, b: bytes, thresholds: Thresholds) -> bool:
    """Return whether both guards let a pair of texts with these facts pass."""
    overlap, conflicts = compare_facts(a, b, thresholds)
    return (overlap is None or facts_agree(overlap, thresholds)) and (
        conflicts is None or slots_agree(conflicts, thresholds)
    )
