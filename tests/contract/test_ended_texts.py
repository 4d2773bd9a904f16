"""Texts that are retracted or replaced and sent again under another id: nothing flags them, so verdicts say it."""

import random
from dataclasses import replace
from itertools import count

import msgspec

from consumer.fingerprint import TextKind
from consumer.judge.detector import Detector
from consumer.judge.events import version_name
from consumer.model.verdict import EndedBefore, Verdict
from consumer.text.timestamps import rfc3339
from storage.interface import Store
from storage.records import Tombstone, Version
from tests.builders import TIME_MS, make_tombstone
from tests.chaos.near_articles import SETTINGS, Text, new_text, version_of

KINDS = (TextKind.LONG, TextKind.SHINGLED, TextKind.SHORT)
COPIES = 50
CHANCE = random.Random("washed")


def unlike(text: Text) -> Text:
    """Another text with almost the same fingerprint and minima: what was replaced by it is a candidate no longer."""
    return replace(text, fingerprint=text.fingerprint ^ 1, sketch=CHANCE.randbytes(256))


def ending(number: int, name: str, text: Text, sequence: int) -> Version | Tombstone:
    """What ends the article of that name, which has this text: in turn one of three ways."""
    if number % 3 == 0:
        return make_tombstone(name, TIME_MS + sequence, sequence)
    other = unlike(text) if number % 3 == 1 else new_text(CHANCE, text.kind)
    return version_of(name, other, sequence, TIME_MS + sequence)


def test_every_washed_copy_says_what_it_repeats(store: Store) -> None:
    """Each under another id, each earlier one ended before; of texts of every kind, and of the one that ended last."""
    detector = Detector(store, SETTINGS, lambda: TIME_MS)
    texts = [new_text(CHANCE, kind) for kind in KINDS]
    sequences = count()
    before: list[EndedBefore | None] = [None] * len(KINDS)
    for number in range(COPIES):
        copies = []
        for text in texts:
            sequence = next(sequences)
            copies.append(version_of(f"{text.kind.name} {number}", text, sequence, TIME_MS + sequence))
        verdicts = [event.verdict for event in detector.judge(copies)]
        assert [verdict.outcome for verdict in verdicts] == ["unique"] * len(KINDS)
        assert [said(verdict) for verdict in verdicts] == before
        sequence = next(sequences)
        detector.judge(
            [ending(number, copy.record.id, text, sequence) for copy, text in zip(copies, texts, strict=True)]
        )
        ended_at = rfc3339(TIME_MS + sequence)
        before = [
            EndedBefore(
                id=copy.record.id, version=version_name(copy.record.reference), ended_at=ended_at, similarity=1.0
            )
            for copy in copies
        ]
    assert detector.tally.ended_before == (COPIES - 1) * len(KINDS)
    assert detector.tally.duplicates == 0


def said(verdict: Verdict) -> EndedBefore | None:
    """What a verdict says of texts that ended."""
    return None if verdict.ended_before is msgspec.UNSET else verdict.ended_before
