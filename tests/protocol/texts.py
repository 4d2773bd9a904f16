"""Texts of every kind: short ones, which only equal ones repeat, and such as are compared by their shingles.

Their fingerprints, 0, 0x7 and 0x3F, share three blocks, so that all meet in lane 0 where they have its keys; all but
the empty one share their bands. On the path from the first text of shingles to the long one, and from there
to the other one of shingles, a fifth of the sketch changes each time: only neighbours are similar enough.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
import numpy as np

from consumer.fingerprint import BlockPlan, Fingerprints, TextKind
from consumer.judge.settings import STRETCHES_MAX, JudgeSettings
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model.article import Article
from storage.postings import lane_of
from storage.records import Version
from tests.builders import TIME_MS
from tests.protocol.articles import PLAIN, RETURNING, RETURNING_OFTEN, SETTINGS

MODES: Final[Mapping[str, JudgeSettings]] = MappingProxyType(
    {
        PLAIN: SETTINGS,
        RETURNING: replace(SETTINGS, stretches_max=2),
        RETURNING_OFTEN: replace(SETTINGS, stretches_max=STRETCHES_MAX),
    }
    | {
        f"{plan}, {'verified' if verify else 'plain'}, {'two lanes' if lane1 else 'one lane'}": JudgeSettings(
            plan=BlockPlan.named(plan), scheme_digest="protocol", verify=verify, lane1=lane1, stretches_max=0
        )
        for plan in ("4x16", "16x28")
        for verify in (True, False)
        for lane1 in (True, False)
    }
)
"""Settings by name: those of most cases, and both plans with both lanes or one, with verification and without."""


class Text(NamedTuple):
    """What the engine tells of a text; ``changed`` are the bytes of its sketch in which it differs from the first."""

    kind: TextKind
    fingerprint: int
    digest: bytes
    changed: int = 0


def _digest(fingerprint: int, rest: bytes) -> bytes:
    """The digest of a text without keywords, whose fingerprint is its beginning."""
    return fingerprint.to_bytes(8, "big") + rest


SHORT: Final = Text(TextKind.SHORT, 0x0, _digest(0x0, b"one post"))
CLOSE: Final = Text(TextKind.SHORT, 0x7, _digest(0x7, b"one post"))
"""Another short text, whose digest happens to begin nearly the same."""
TWIN: Final = Text(TextKind.SHORT, 0x0, _digest(0x0, b"another."))
"""Another one, whose digest happens to begin the same."""
EMPTY: Final = Text(TextKind.EMPTY, 0x0, _digest(0x0, b"no text."))
FIRST: Final = Text(TextKind.SHINGLED, 0x0, _digest(0x0, b"shingles"))
MIDDLE: Final = Text(TextKind.LONG, 0x7, _digest(0x7, b"long one"), 50)
SPACED: Final = MIDDLE._replace(kind=TextKind.SHORT, fingerprint=0xFFFF_FFFF_FFFF_FFFF)
"""The long one with a space after each letter: equal where letters are compared, and found by its bands alone."""
LAST: Final = Text(TextKind.SHINGLED, 0x3F, _digest(0x3F, b"shingled"), 100)


def make_text(number: int, text: Text, mode: str, *, keys_a_lane: int = 1) -> Version:
    """Return the article with this text that arrives as the ``number``-th, found by some of its keys in each lane."""
    settings = MODES[mode]
    # No bin is empty, which is 0 where letters are compared.
    sketch = np.ones((1, 256), np.uint8)
    sketch[0, : text.changed] = 2
    fingerprints = Fingerprints(
        codes=np.array([[text.fingerprint]], np.uint64),
        sketches=sketch if settings.sketched else sketch[:, :0],
        one_bits=np.zeros(1, np.uint64),
        bands=np.full((1, 4), 0xABCD << 48, np.uint64),
        keywords=((),),
        kinds=np.array([text.kind], np.uint8),
        text_digests=np.frombuffer(text.digest, np.uint8)[None],
        keyword_counts=np.zeros(1, np.int64),
        is_marked=settings.scheme.definition.compares_letters,
    )
    builder = VersionBuilder("protocol/1", settings.plan, settings.lane1)
    article = Article(id=f"article {number}", body="", source="wire")
    (version,) = builder.versions([article], [ArrivalTime(TIME_MS + number, number)], fingerprints)
    keys = [key for key in version.record.keys if _place(key, version.record.keys) < keys_a_lane]
    return Version(msgspec.structs.replace(version.record, keys=tuple(keys)), None)


def _place(key: bytes, keys: tuple[bytes, ...]) -> int:
    """Return the place of a key among those of its lane."""
    return [other for other in keys if lane_of(other) == lane_of(key)].index(key)
