"""Content that ended and comes back, on every store, with a crash before each call of the judge."""

from dataclasses import dataclass
from itertools import pairwise

import msgspec
import pytest

from consumer.judge.detector import Detector
from consumer.model.verdict import Verdict
from storage.interface import Store
from storage.records import StoredVersion, Tombstone, Version, id_hash
from tests.builders import TIME_MS, make_tombstone
from tests.examples import drawn
from tests.protocol.articles import RETURNING_OFTEN, make_article
from tests.protocol.crashing import Crashed, crashing
from tests.protocol.returns import FEED
from tests.protocol.texts import MODES

CALLS_MAX = 60
"""More calls than any of these histories takes."""


@dataclass(frozen=True, slots=True)
class History:
    """What arrives, as ``id=CONTENT`` or ``id`` for a retraction, and the outcome of each."""

    name: str
    arrives: str
    outcomes: str


HISTORIES = [
    History("changed back", "g=A g=B g=A c=A d=B", "unique unique unique g unique"),
    History("published again", "g=A g g=A c=A", "unique retracted unique g"),
    History("published again after a copy", "g=A g c=A g=A", "unique retracted unique c"),
    History("changed back twice", "g=A g=B g=A g=B g=A c=A", "unique unique unique unique unique g"),
    History("sent again unchanged", "g=A g=A g=B g=B g=A g=A c=A", "unique unique unique unique unique unique g"),
    History("a copy stays flagged", "g=A c=A g=B g=A c=A", "unique g unique unique g"),
]


def messages_of(history: History, run: str) -> list[Version | Tombstone]:
    """Return the messages, whose ids and contents no other run has."""
    messages: list[Version | Tombstone] = []
    for place, each in enumerate(history.arrives.split()):
        name, _, content = each.partition("=")
        article_id = f"{run} {name}"
        if not content:
            gone = make_tombstone(article_id, TIME_MS + place, place, place=f"{run} {place}".encode())
            messages.append(msgspec.structs.replace(gone, feed=FEED))
            continue
        bits = int.from_bytes(id_hash(f"{run} {content}")[:8], "big")
        version = make_article(place, bits, article_id=article_id, content=f"{run} {content}".encode())
        messages.append(Version(msgspec.structs.replace(version.record, feed=FEED), None))
    return messages


def judged(store: Store, messages: list[Version | Tombstone], crash_at: int) -> list[Verdict]:
    """Judge one by one; after a crash before this call, begin again from the first."""
    crashed = crashing(store, crash_at)

    def attempt() -> list[Verdict]:
        detector = Detector(crashed, MODES[RETURNING_OFTEN], lambda: TIME_MS)
        return [detector.judge([arrived])[0].verdict for arrived in messages]

    try:
        return attempt()
    except Crashed:
        return attempt()


@pytest.mark.parametrize("history", HISTORIES, ids=[history.name for history in HISTORIES])
def test_what_comes_back_is_in_force_again(store: Store, history: History) -> None:
    """It is judged again, copies are matched against it, and read again everything gets the same verdicts."""
    of_g = [each for each in history.arrives.split() if each.startswith("g")]
    begun = sum("=" in now and now != before for before, now in pairwise(["", *of_g]))
    for crash_at in drawn(range(CALLS_MAX), 20):
        run = f"{history.name} {crash_at}"
        messages = messages_of(history, run)
        verdicts = judged(store, messages, crash_at)
        said = [
            verdict.outcome if verdict.duplicate_of is None else verdict.duplicate_of.removeprefix(f"{run} ")
            for verdict in verdicts
        ]
        assert said == history.outcomes.split(), f"after a crash at call {crash_at}"
        assert judged(store, messages, 0) == verdicts, f"after a crash at call {crash_at}"
        stretches = [each for each in store.history(id_hash(f"{run} g")) if isinstance(each, StoredVersion)]
        assert len(stretches) == begun, f"after a crash at call {crash_at}"
