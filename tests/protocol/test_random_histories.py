"""Random feeds in which texts change, end and return, against a model that knows everything.

The model reads each message once, in order. The judge gets them in batches of any size, crashes between any two calls
of the store, and reads again from any place at or before the commit.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import NamedTuple

import msgspec
import pytest

from consumer.judge.detector import Detector
from consumer.model.verdict import decode_verdict
from consumer.pipeline.loop import parts_with_distinct_ids
from storage.memory import MemoryStore
from storage.records import StoredVersion, Tombstone, Version, id_hash, stretch_reference
from tests.builders import TIME_MS, make_tombstone
from tests.examples import drawn
from tests.protocol.articles import RETURNING_OFTEN, make_article
from tests.protocol.cases import Case
from tests.protocol.contents import memory_store, stands_still
from tests.protocol.crashing import Crashed, crashing
from tests.protocol.explorer import Process
from tests.protocol.returns import FEED, Arrived
from tests.protocol.texts import MODES

IDS = 10
CONTENTS = (0x0, 0xFFF, 0xFFF000, 0xFFF000000, 0xFFF000000000)
"""The fingerprints of five contents, of which no two are near."""
LOTS = range(200)
HISTORIES_A_LOT = 100
SETTINGS = MODES[RETURNING_OFTEN]


class Beginning(NamedTuple):
    """A stretch of an id: its content, how often that had come before, where it came from, and what it repeats."""

    article_id: str
    content: int
    stretch: int
    place: int
    repeats: "tuple[str, int] | None"
    """The id that it repeats, and the place of that one's stretch."""


@dataclass(slots=True)
class Model:
    """What is in force, and all stretches that ever began."""

    in_force: dict[str, Beginning] = field(default_factory=dict)
    begun: list[Beginning] = field(default_factory=list)
    times: defaultdict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))

    def read(self, arrived: Arrived, content: int | None, place: int) -> None:
        """Read one message; content None retracts."""
        article_id = arrived.id if isinstance(arrived, Tombstone) else arrived.record.id
        current = self.in_force.get(article_id)
        if content is None:
            self.in_force.pop(article_id, None)
        elif current is None or current.content != content:
            kept = [
                other
                for other in self.in_force.values()
                if other.article_id != article_id and other.content == content and other.repeats is None
            ]
            repeats = min(((other.article_id, other.place) for other in kept), key=lambda named: named[1], default=None)
            begun = Beginning(article_id, content, self.times[article_id, content], place, repeats)
            self.times[article_id, content] += 1
            self.in_force[article_id] = begun
            self.begun.append(begun)


class Message(NamedTuple):
    """One message, and the number of its content, None for a retraction."""

    arrived: Arrived
    content: int | None


def a_feed(random: Random, steps_ms: Sequence[int] = (0, 1, 5)) -> list[Message]:
    """Draw the messages of a feed; each comes one of these steps after the one before."""
    messages = []
    time_ms = TIME_MS - steps_ms[0]
    for place in range(random.randint(3, 40)):
        article_id = f"id {random.randrange(random.choice((2, IDS)))}"
        time_ms += random.choice(steps_ms)
        if random.random() < 0.15:
            gone = make_tombstone(article_id, time_ms, place, place=f"{FEED}:{place}".encode())
            messages.append(Message(msgspec.structs.replace(gone, feed=FEED), None))
            continue
        content = random.randrange(random.choice((2, len(CONTENTS))))
        version = make_article(place, CONTENTS[content], article_id=article_id, content=b"%d" % content)
        record = msgspec.structs.replace(version.record, time_ms=time_ms, feed=FEED)
        messages.append(Message(Version(record, None), content))
    return messages


def delivered_again(message: Message, random: Random) -> Arrived:
    """Return a later delivery of a message that was judged: without a time of its own it arrives at another one."""
    arrived = message.arrived
    if isinstance(arrived, Tombstone) or random.random() < 0.5:
        return arrived
    later = msgspec.structs.replace(arrived.record, time_ms=arrived.record.time_ms + random.randrange(1_000))
    return Version(later, None, has_fixed_arrival=False)


def judge_with_crashes(messages: Sequence[Message], random: Random) -> MemoryStore:
    """Judge a feed in batches, with crashes, and return the store."""
    store = memory_store()
    committed, judged, crashes = 0, 0, 5
    while committed < len(messages):
        batch = [
            delivered_again(message, random) if place < judged else message.arrived
            for place, message in enumerate(messages[committed : committed + random.randint(1, 8)], committed)
        ]
        crash_at = random.randint(1, 40) if crashes else 0
        detector = Detector(crashing(store, crash_at), SETTINGS, stands_still)
        try:
            for part in parts_with_distinct_ids(batch):
                detector.judge(part)
        except Crashed:
            crashes -= 1
            committed = random.choice((committed, random.randint(0, committed)))
        else:
            committed += len(batch)
            judged = max(judged, committed)
            if random.random() < 0.1:
                committed = random.randint(0, committed)
    return store


def begun_in(store: MemoryStore, messages: Sequence[Message]) -> set[Beginning]:
    """Return the stretches that a store has, with their verdicts."""
    found = set()
    places = {
        stored.record.reference: stored.record.sequence for stored in store.scan() if isinstance(stored, StoredVersion)
    }
    for stored in store.scan():
        if isinstance(stored, Tombstone):
            continue
        record = stored.record
        content = messages[record.sequence].content
        assert content is not None
        first = messages[record.sequence].arrived.reference
        assert record.reference == stretch_reference(first, record.stretch or 0)
        assert stored.verdict is not None
        verdict = decode_verdict(stored.verdict)
        repeats = None
        if verdict.outcome == "duplicate":
            assert verdict.duplicate_of is not None
            assert verdict.duplicate_of_version is not None
            named = id_hash(verdict.duplicate_of) + bytes.fromhex(verdict.duplicate_of_version)
            repeats = (verdict.duplicate_of, places[named])
        found.add(Beginning(record.id, content, record.stretch or 0, record.sequence, repeats))
    return found


@pytest.mark.parametrize("lot", drawn(LOTS, 100))
def test_a_store_ends_as_the_model_says(lot: int) -> None:
    """It has the model's stretches, each from the message that began it, with the model's verdicts."""
    returned = 0
    for number in range(HISTORIES_A_LOT):
        random = Random(f"{lot} {number}")
        messages = a_feed(random)
        model = model_of(messages)
        store = judge_with_crashes(messages, random)
        assert begun_in(store, messages) == set(model.begun), f"history {number} of lot {lot}"
        returned += sum(begun.stretch > 0 for begun in model.begun)
    assert returned > HISTORIES_A_LOT


def some_processes(messages: Sequence[Message], begun: int, random: Random) -> list[Process]:
    """Return three processes: each gets some of the next messages, and some that were judged before ``begun``."""
    processes = []
    for _ in range(3):
        next_ones = messages[begun : begun + random.choice((1, 1, 3))]
        old = random.sample(messages[:begun], min(begun, 2))
        drawn = [delivered_again(message, random) for message in old]
        drawn += random.sample([message.arrived for message in next_ones], min(len(next_ones), random.randint(1, 2)))
        by_id = {(each.id if isinstance(each, Tombstone) else each.record.id): each for each in drawn}
        processes.append(Process(tuple(by_id.values()), backwards=random.random() < 0.3))
    return processes


@pytest.mark.parametrize("lot", drawn(LOTS, 100))
def test_judges_at_once_keep_the_promises(lot: int) -> None:
    """Where the messages of an id came in order, its stretches are the model's."""
    for number in range(10):
        random = Random(f"at once {lot} {number}")
        messages = a_feed(random, steps_ms=[1])
        begun = random.randint(1, len(messages) - 1)
        before = tuple(message.arrived for message in messages[:begun])
        case = Case("random", tuple(some_processes(messages, begun, random)), before=before, mode=RETURNING_OFTEN)
        world = case.world()
        for _ in range(6):
            state = world.start(2)
            while moves := world.moves(state):
                steps = [move for move in moves if move.step is not None] if random.random() < 0.95 else moves
                state = random.choice(steps).state
            assert case.wrong_in(world.content_in(state), world.results_in(state)) == [], f"world {number} of lot {lot}"


def test_the_model_notices_a_return_that_is_lost() -> None:
    """A judge that replays whatever it has seen does not end as the model says."""
    random = Random("returns")
    messages = a_feed(random)
    while not any(begun.stretch for begun in model_of(messages).begun):
        messages = a_feed(random)
    store = memory_store()
    detector = Detector(store, replace(SETTINGS, stretches_max=0), stands_still)
    for message in messages:
        detector.judge([message.arrived])
    assert begun_in(store, messages) != set(model_of(messages).begun)


def model_of(messages: Sequence[Message]) -> Model:
    """Return the model after these messages."""
    model = Model()
    for place, message in enumerate(messages):
        model.read(message.arrived, message.content, place)
    return model
