"""Strategies for records and settings, from domains so small that any two often have something in common."""

import random
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from hypothesis import strategies as some

from consumer.fingerprint import BlockPlan, Scheme, TextKind
from consumer.fingerprint.facts import pack_facts
from consumer.fingerprint.slots import Slot, pack_slots
from consumer.judge.settings import JudgeSettings, SourceRule
from storage.records import Arrival, StoredVersion, reference_of
from tests.builders import TIME_MS, make_record
from tests.chaos.near_articles import Text, edited, new_text

WINDOW_MS = 10
_BASES = [new_text(random.Random(f"base {number}")) for number in range(2)]
_SOURCES = ("wire", "blog", "paper")


def _text(base: int, seed: int, share: float, kind: TextKind) -> Text:
    text = edited(_BASES[base], random.Random(seed), share)
    return Text(text.fingerprint, text.one_bits, text.bands, text.sketch, kind)


texts = some.builds(
    _text,
    some.integers(0, 1),
    some.integers(0, 20),
    some.sampled_from((0.0, 0.05, 0.2, 0.28, 0.35)),
    some.sampled_from([TextKind.LONG] * 4 + [TextKind.SHINGLED, TextKind.SHORT, TextKind.EMPTY]),
)


_SLOTS = pack_slots(
    [[Slot(str(place), str(value), "") for place in places] for value in range(2) for places in ((0,), (0, 1), (1, 2))]
)
_FACTS = pack_facts([{str(fact) for fact in range(start, start + size)} for start in range(6) for size in (0, 1, 3, 5)])
"""Of sizes whose bytes can be read as slots too."""


def _stored(
    text: Text,
    name: str,
    arrived: tuple[int, int],
    source: str,
    scheme: str,
    end: int | None,
    *,
    facts: bytes,
    digest: bytes | None,
) -> StoredVersion:
    content = b"%d %d" % (text.kind, text.fingerprint) + text.sketch
    record = make_record(
        name,
        reference=reference_of(name, content),
        time_ms=TIME_MS + arrived[0],
        sequence=arrived[1],
        keys=text.keys(),
        scheme=scheme,
        kind=int(text.kind),
        fingerprint=text.fingerprint.to_bytes(8, "big"),
        one_bits=text.one_bits.to_bytes(8, "big"),
        sketch=text.sketch,
        text_digest=digest or text.sketch[:16],
        source=source,
        facts=facts,
    )
    ends_at = None if end is None else Arrival(record.time_ms + end, record.sequence, reference_of(name, b"next"))
    return StoredVersion(record, None, ends_at)


stored_versions = some.builds(
    _stored,
    texts,
    some.sampled_from("abc"),
    some.tuples(some.integers(0, WINDOW_MS + 2), some.integers(0, 3)),
    some.sampled_from(_SOURCES),
    some.sampled_from(["test/1"] * 5 + ["test/2"]),
    some.none() | some.integers(0, WINDOW_MS),
    facts=some.sampled_from(_FACTS + _SLOTS),
    # Where letters are compared, equal texts may have other words and shingles.
    digest=some.sampled_from([None] * 3 + [b"equal in letters"]),
)

_RULES: Final[Mapping[str, some.SearchStrategy[Any]]] = {
    "similarity_min": some.none() | some.sampled_from((0.5, 0.8, 0.95)),
    "max_distance": some.none() | some.integers(0, 3),
    "flag": some.sampled_from(("duplicates", "never")),
    "within_source": some.booleans(),
    "never_with": some.lists(some.sampled_from(_SOURCES), max_size=2).map(tuple),
}

_settings = partial(
    some.builds,
    JudgeSettings,
    plan=some.just(BlockPlan.named("4x16")),
    scheme_digest=some.just("test"),
    max_distance=some.integers(0, 7),
    reach=some.integers(7, 12),
    verify=some.booleans(),
    similarity_min=some.sampled_from((0.0, 0.6, 0.72, 0.9)),
    lane1=some.booleans(),
    window_ms=some.just(WINDOW_MS),
    verifications_max=some.integers(1, 1_000),
)


def _rules(**guards: some.SearchStrategy[Any]) -> some.SearchStrategy[Mapping[str, SourceRule]]:
    return some.dictionaries(some.sampled_from(_SOURCES), some.builds(SourceRule, **_RULES, **guards)).map(
        MappingProxyType
    )


judge_settings = _settings(
    scheme=some.sampled_from([Scheme("jieba-tfidf/2", facts=True), Scheme("jieba-tfidf/3", facts=True)]),
    sources=_rules(facts_shared_min=some.none() | some.sampled_from((0.5, 0.8))),
    facts_shared_min=some.sampled_from((0.0, 0.4, 0.8)),
    facts_revision=some.sampled_from((1, 2)),
) | _settings(
    scheme=some.just(Scheme(slots=True)),
    sources=_rules(slot_conflicts_max=some.none() | some.integers(0, 1)),
    slot_conflicts_max=some.none() | some.integers(0, 2),
)
