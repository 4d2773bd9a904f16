"""Articles with chosen fingerprints, so that the judge's own comparison gives the graph of nearness that a case needs.

With plain SimHash and 3 bits, the fingerprints 0, 0x7 and 0x3F are on a path: each is 3 bits from the next, and 6 from
the one after that. All share their first three blocks, so every pair meets in the look-up whether it is near or not.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from consumer.fingerprint import BlockPlan, TextKind
from consumer.judge.settings import JudgeSettings, SourceRule
from storage.records import Version, reference_of
from tests.builders import TIME_MS, make_key, make_record

NEVER = "unflagged"
"""A source whose articles are never flagged."""

PLAIN = "plain"
"""The name of these settings among those that cases are judged by."""

RETURNING = "returning"
"""The same, for stores in which content that ended comes back into force a few times: each is a read to explore."""

RETURNING_OFTEN = "returning often"
"""The same, as often as by default."""

SETTINGS = JudgeSettings(
    plan=BlockPlan.named("4x16"),
    scheme_digest="protocol",
    verify=False,
    lane1=False,
    stretches_max=0,
    sources=MappingProxyType({NEVER: SourceRule(flag="never")}),
)

LEFT, MIDDLE, RIGHT = 0x0, 0x7, 0x3F
"""Fingerprints on a path: the middle one is near both others, which are not near each other."""

FAR = 0xFFF
"""A fingerprint that is near none of these."""

Shape = Mapping[int, int]
"""The fingerprint of each article; they are numbered in order of arrival."""

TRIANGLE: Shape = MappingProxyType({0: LEFT, 1: LEFT, 2: LEFT})
PATH_0_1_2: Shape = MappingProxyType({0: LEFT, 1: MIDDLE, 2: RIGHT})
PATH_1_0_2: Shape = MappingProxyType({0: MIDDLE, 1: LEFT, 2: RIGHT})
PATH_0_2_1: Shape = MappingProxyType({0: LEFT, 1: RIGHT, 2: MIDDLE})


def make_article(
    number: int,
    fingerprint: int = LEFT,
    *,
    article_id: str | None = None,
    content: bytes = b"first",
    source: str = "wire",
    blocks: int = 1,
    part: bool = False,
) -> Version:
    """Return the article that arrives as the ``number``-th; ``blocks`` of its fingerprint are indexed.

    All articles with the ``part`` share it.
    """
    name = article_id or f"article {number}"
    bits = fingerprint.to_bytes(8, "big")
    keys = tuple(make_key(int.from_bytes(bits[2 * n : 2 * n + 2], "big"), number=n) for n in range(blocks))
    record = make_record(
        name,
        reference=reference_of(name, content),
        time_ms=TIME_MS + number,
        sequence=number,
        kind=int(TextKind.LONG),
        fingerprint=bits,
        keys=keys,
        sketch=bytes(16),
        keywords=(),
        source=source,
        anchors=b"anchored" if part else None,
        sample=np.arange(100, dtype=">u4").tobytes() if part else None,
    )
    return Version(record, None)
