"""Articles made without texts: how alike two of them are is chosen, and no fingerprint has to be computed.

What stands for a text is what the engine would tell of it. An edit changes a share of it everywhere at once: bits of
the fingerprint, one-bit minima, bands and the sketch. Around the threshold of similarity, being near is not transitive.
"""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from consumer.fingerprint import BlockPlan, TextKind
from consumer.judge.comparison import compare
from consumer.judge.settings import JudgeSettings
from storage.records import StoredVersion, Version
from tests.builders import TIME_MS, make_key, make_record

SETTINGS = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="made")
BAND_MINIMA = 3
FINGERPRINT_BITS_A_SHARE = 30
"""How many bits of a fingerprint an edit of everything would flip; 64 independent ones would be 32 on average."""
_FILLED_BIN = range(1, 256)
"""What a byte of the sketch can be; the text is long enough that no bin is empty, which is 0 where bins are marked."""


@dataclass(frozen=True, slots=True)
class Text:
    """What the engine tells of a text."""

    fingerprint: int
    one_bits: int
    bands: tuple[int, ...]
    sketch: bytes
    kind: TextKind = TextKind.LONG

    def keys(self) -> tuple[bytes, ...]:
        """The posting keys of the text."""
        if self.kind is TextKind.EMPTY:
            return ()
        blocks = tuple(make_key(self.fingerprint >> 48 - 16 * n & 0xFFFF, number=n) for n in range(4))
        if self.kind is TextKind.SHORT:
            return blocks
        bands = tuple(make_key(band, lane=1, number=n) for n, band in enumerate(self.bands))
        return bands if self.kind is TextKind.SHINGLED else blocks + bands


def new_text(chance: random.Random, kind: TextKind = TextKind.LONG) -> Text:
    """A text that is like no other."""
    return Text(
        fingerprint=chance.getrandbits(64),
        one_bits=chance.getrandbits(64),
        bands=tuple(chance.getrandbits(16) for _ in range(4)),
        sketch=bytes(chance.choices(_FILLED_BIN, k=256)),
        kind=kind,
    )


def edited(text: Text, chance: random.Random, share: float) -> Text:
    """The text with about this share of its shingles changed: the similarity falls by as much."""
    sketch = bytes(chance.choice(_FILLED_BIN) if chance.random() < share else byte for byte in text.sketch)
    band_stays = (1 - share) ** BAND_MINIMA
    return replace(
        text,
        fingerprint=text.fingerprint ^ flips(chance, round(share * FINGERPRINT_BITS_A_SHARE)),
        one_bits=text.one_bits ^ flips(chance, round(share * 32)),
        bands=tuple(band if chance.random() < band_stays else chance.getrandbits(16) for band in text.bands),
        sketch=sketch,
    )


def flips(chance: random.Random, bits: int) -> int:
    """A mask with this many of 64 bits set."""
    return sum(1 << bit for bit in chance.sample(range(64), bits))


def version_of(name: str, text: Text, sequence: int, time_ms: int = TIME_MS, source: str = "wire") -> Version:
    """The article of that name with this text, the ``sequence``-th of its feed."""
    content = b"%d %d %d " % (text.kind, text.fingerprint, text.one_bits) + text.sketch
    record = make_record(
        name,
        content,
        time_ms,
        sequence,
        text.keys(),
        kind=int(text.kind),
        fingerprint=text.fingerprint.to_bytes(8, "big"),
        one_bits=text.one_bits.to_bytes(8, "big"),
        sketch=text.sketch,
        text_digest=hashlib.blake2b(text.sketch, digest_size=16).digest(),
        source=source,
    )
    return Version(record, None)


def are_near(a: Version, b: Version, settings: JudgeSettings = SETTINGS) -> bool:
    """Whether the judge would call the two near while neither was followed by anything."""
    return compare(StoredVersion(a.record, None, None), [StoredVersion(b.record, None, None)], settings)[0].near


def near_group(chance: random.Random, name: str, size: int, first_sequence: int, share: float = 0.08) -> list[Version]:
    """This many articles, all near each other."""
    base = new_text(chance)
    group: list[Version] = []
    while len(group) < size:
        version = version_of(f"{name}.{len(group)}", edited(base, chance, share), first_sequence + len(group))
        if all(are_near(version, other) for other in group):
            group.append(version)
    return group


def near_chain(chance: random.Random, name: str, size: int, first_sequence: int) -> list[Version]:
    """This many articles, each near the one before it, the first and the last not near each other."""
    while True:
        text = new_text(chance)
        texts: list[Text] = []
        for _ in range(size):
            text = edited(text, chance, 0.22)
            texts.append(text)
        chain = [version_of(f"{name}.{number}", text, first_sequence + number) for number, text in enumerate(texts)]
        linked = all(are_near(a, b) for a, b in pairwise(chain))
        if linked and not are_near(chain[0], chain[-1]):
            return chain


def shuffled(versions: Sequence[Version], chance: random.Random) -> list[Version]:
    """The same in another order; their arrivals stay."""
    return chance.sample(versions, len(versions))
