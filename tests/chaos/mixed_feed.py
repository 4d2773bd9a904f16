"""A feed of everything at once, in order of arrival, and what is kept of it by brute force."""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from consumer.fingerprint import TextKind
from consumer.judge.comparison import compare
from consumer.judge.settings import JudgeSettings
from storage.records import Arrival, Record, StoredVersion, Tombstone, Version
from tests.builders import make_tombstone
from tests.chaos.near_articles import SETTINGS, Text, edited, new_text, version_of

Arrived = Version | Tombstone
RECENT = 60
"""Copies are made of something among so many texts that came last."""
FLOOD = 40


@dataclass(slots=True)
class _Writer:
    chance: random.Random
    feed: list[Arrived] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def append(self, text: Text, name: str | None = None) -> None:
        """A new article, or new content of an id."""
        name = name or f"article {len(self.feed)}"
        self.ids.append(name)
        self.texts.append(text)
        self.feed.append(version_of(name, text, len(self.feed)))

    def recent(self) -> Text:
        """One of the last texts."""
        return self.chance.choice(self.texts[-RECENT:])

    def original(self) -> None:
        """Something that has not been said before."""
        self.append(new_text(self.chance))

    def copy(self) -> None:
        """A recent text, edited a little or so much that it is on the edge; copies of copies make chains."""
        self.append(edited(self.recent(), self.chance, self.chance.uniform(0, 0.35)))

    def new_version(self) -> None:
        """An id with other content: near its own, near another's, or new."""
        self.append(edited(self.recent(), self.chance, self.chance.uniform(0, 1)), self.chance.choice(self.ids))

    def short(self) -> None:
        """A text that is matched by its digest alone; often one that was there."""
        shorts = [text for text in self.texts if text.kind is TextKind.SHORT]
        again = shorts and self.chance.random() < 0.6  # the share that repeats
        self.append(self.chance.choice(shorts) if again else new_text(self.chance, TextKind.SHORT))

    def empty(self) -> None:
        """A text without keywords, all of them alike."""
        self.append(Text(0, 0, (0, 0, 0, 0), bytes(256), TextKind.EMPTY))

    def retraction(self) -> None:
        """A tombstone of an id that is known."""
        self.feed.append(make_tombstone(self.chance.choice(self.ids), sequence=len(self.feed)))

    def replay(self) -> None:
        """A version that was there, word for word, with another arrival."""
        again = self.chance.choice([entry for entry in self.feed if isinstance(entry, Version)])
        self.feed.append(Version(msgspec.structs.replace(again.record, sequence=len(self.feed)), None))

    def flood(self) -> None:
        """Many copies at once of one text."""
        text = self.recent()
        for _ in range(FLOOD):
            self.append(edited(text, self.chance, self.chance.uniform(0, 0.1)))


def mixed_feed(size: int, seed: str, *, ids_repeat: bool = True) -> list[Arrived]:
    """About this many articles, short and empty texts and floods; where ids repeat, new versions, tombstones, replays.

    A repeated id ends a batch, so only a feed without them is judged in batches as large as they are asked for.
    """
    writer = _Writer(random.Random(seed))
    writer.original()
    writer.short()
    shares: Mapping[Callable[[], None], int] = {
        writer.original: 250,
        writer.copy: 450,
        writer.new_version: 90 * ids_repeat,
        writer.short: 60,
        writer.empty: 10,
        writer.retraction: 50 * ids_repeat,
        writer.replay: 60 * ids_repeat,
        writer.flood: 4,
    }
    while len(writer.feed) < size:
        writer.chance.choices(list(shares), list(shares.values()))[0]()
    return writer.feed


def kept_by_brute_force(feed: Sequence[Arrived], by: JudgeSettings = SETTINGS) -> set[bytes]:
    """Take each in turn: it is kept unless a kept one before it is near. No index, no store, no batches."""
    timelines: defaultdict[bytes, list[Arrival]] = defaultdict(list)
    kept: list[Record] = []
    seen: set[bytes] = set()
    codes = np.zeros((2, len(feed)), np.uint64)
    for entry in feed:
        what = entry if isinstance(entry, Tombstone) else entry.record
        if what.reference in seen:
            continue
        seen.add(what.reference)
        timelines[what.id_hash].append(what.arrival)
        if isinstance(what, Tombstone):
            continue
        own = np.array([[int.from_bytes(what.fingerprint)], [int.from_bytes(what.one_bits)]], np.uint64)
        distances = np.bitwise_count(codes[:, : len(kept)] ^ own)
        close = np.flatnonzero((distances[0] <= by.reach) | (distances[1] <= by.one_bits_distance_max))
        # Taken in turn, whatever has been followed by something has ended before this one came.
        in_force = [kept[n] for n in close.tolist() if timelines[kept[n].id_hash][-1] == kept[n].arrival]
        others = [StoredVersion(record, None, None) for record in in_force]
        if not any(comparison.near for comparison in compare(StoredVersion(what, None, None), others, by)):
            codes[:, len(kept)] = own[:, 0]
            kept.append(what)
    return {record.reference for record in kept}
