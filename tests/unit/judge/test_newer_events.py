"""Events that a later version has written, with members that this one does not know: read, and passed on unchanged."""

import json
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from consumer.judge.detector import Detector
from consumer.model.hooks import Hooks
from consumer.model.verdict import VerdictEvent, decode_verdict
from consumer.pipeline.batches import BatchCommitted
from consumer.store_tools import releases
from consumer.store_tools.compare_stores import compare_stores
from consumer.store_tools.export import export_lines
from consumer.store_tools.inspection import chain, titles, verify
from consumer.store_tools.releases import Attribution
from consumer.telemetry.latest_flags import LatestFlags
from storage.interface import Store
from storage.lmdb import LmdbOptions, LmdbStore
from storage.memory import MemoryStore
from storage.records import StoredVersion, Tombstone, Version, id_hash
from tests.builders import TIME_MS, make_tombstone
from tests.chaos.near_articles import SETTINGS, near_group

FIRST, COPY, LATER = near_group(random.Random("newer"), "article", 3, 0)


def newer(event: bytes) -> bytes:
    """Return the event as a later version might write it: with members of its own at every level."""
    members = json.loads(event)
    for match in members["matches"]:
        match["language"] = "zh"
    return json.dumps({"mood": {"good": [1, None]}, **members, "judged_by": "dupwatch 9"}).encode()


@pytest.fixture(params=["memory", "lmdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Yield an empty store of each kind that needs no server."""
    opened: Store = MemoryStore()
    if request.param == "lmdb":
        opened = LmdbStore.open(tmp_path / "store", LmdbOptions(durability="process"))
    with closing(opened):
        yield opened


@pytest.fixture
def events(store: Store) -> dict[str, bytes]:
    """Judge two articles and a retraction as a later version does; return the stored events by id."""
    judging = MemoryStore()
    judged = Detector(judging, SETTINGS, lambda: TIME_MS).judge([FIRST, COPY])
    stored = {event.verdict.id: newer(event.encoded) for event in judged}
    store.create([FIRST, COPY])
    store.add([FIRST.record])
    store.settle([(version.record.reference, stored[version.record.id]) for version in (FIRST, COPY)])
    tombstone = make_tombstone("gone", event=newer(make_tombstone("gone").event))
    store.retract([tombstone])
    return stored | {"gone": tombstone.event}


def stored_copy(store: Store) -> StoredVersion:
    """Return the flagged version."""
    (stored,) = store.read([COPY.record.reference])
    assert stored is not None
    return stored


def test_a_replay_returns_the_stored_bytes(store: Store, events: dict[str, bytes]) -> None:
    """An older consumer that judges the batch again sends what the newer one has sent."""
    batch: list[Version | Tombstone] = [FIRST, COPY, make_tombstone("gone")]
    answers = Detector(store, SETTINGS, lambda: TIME_MS + 9).judge(batch)
    assert [answer.encoded for answer in answers] == [events[FIRST.record.id], events[COPY.record.id], events["gone"]]
    assert [answer.verdict.outcome for answer in answers] == ["unique", "duplicate", "retracted"]
    assert answers[1].verdict.duplicate_of == FIRST.record.id


def test_later_articles_are_judged_against_them(store: Store, events: dict[str, bytes]) -> None:
    """A newer consumer's kept version is an original like any other, by look-up and from memory."""
    detector = Detector(store, SETTINGS, lambda: TIME_MS)
    detector.judge([COPY])
    (answer,) = detector.judge([LATER])
    assert answer.verdict.duplicate_of == FIRST.record.id
    assert stored_copy(store).verdict == events[COPY.record.id]


def test_store_tools_read_them(store: Store, events: dict[str, bytes]) -> None:
    """Chain, verification, titles and comparison; the export has the events as they are stored."""
    links = chain(store, stored_copy(store))
    assert [link.stored.record.id for link in links] == [COPY.record.id, FIRST.record.id]
    assert links[0].verdict is not None
    assert titles(store, [links[0].verdict]) == [(COPY.record.title, FIRST.record.title)]
    findings = list(verify(store, SETTINGS))[-1]
    assert (findings.kept, findings.duplicates, findings.tombstones, findings.wrong) == (1, 1, 1, [])
    assert compare_stores(store, store, 5).counts == {"same": 2}
    lines = [json.loads(line) for line in export_lines(store, bodies=False)]
    assert {line["id"]: line["verdict"] for line in lines} == {
        name: json.loads(event) for name, event in events.items()
    }


def test_the_pages_show_them(store: Store, events: dict[str, bytes]) -> None:
    """A flag that was replayed is shown with both articles."""
    latest = LatestFlags(3, TIME_MS, lambda: None)
    latest.read_from(store)
    with closing(latest):
        Hooks(latest).report(BatchCommitted([decode_verdict(events[COPY.record.id])], []))
        (flag,) = latest.latest(20).flags
    assert flag.article is not None
    assert flag.original is not None
    assert flag.original.record.id == FIRST.record.id


def test_a_release_of_one_can_be_replayed(store: Store, events: dict[str, bytes]) -> None:
    """The release is an event of this version; members of the flag that it does not know are not in it."""
    flagged = releases.read_flagged(store, COPY.record.reference)
    event = releases.release(store, flagged, Attribution("Kim", None), lambda: TIME_MS + 5).encoded
    released = json.loads(event)
    assert released["released"]["duplicate_of"] == FIRST.record.id
    assert "mood" in json.loads(events[COPY.record.id])
    assert "mood" not in released
    (answer,) = Detector(store, SETTINGS, lambda: TIME_MS + 9).judge([COPY])
    assert answer.encoded == event
    assert store.history(id_hash(COPY.record.id))[0] == stored_copy(store)


def test_a_release_of_a_later_version_is_read() -> None:
    """Its own members may grow too."""
    members = json.loads(newer(make_tombstone().event)) | {
        "outcome": "unique",
        "released": {
            "duplicate_of": "a",
            "duplicate_of_version": "00",
            "flagged_at": "2026-01-31T08:15:30.250Z",
            "by": None,
            "reason": None,
            "from": "192.0.2.1",
        },
    }
    data = json.dumps(members).encode()
    event = VerdictEvent.read(data)
    assert event.encoded == data
    assert event.verdict.released is not None


@pytest.mark.parametrize(
    "change", [{"schema": "dupwatch.verdict/2"}, {"outcome": "perhaps"}, {"matches": [{"id": "a"}]}]
)
def test_a_change_of_meaning_is_refused(change: dict[str, object]) -> None:
    """Another schema, an unknown outcome, or a missing member: this version cannot know what it means."""
    with pytest.raises(ValueError, match="a verdict event cannot be read"):
        decode_verdict(json.dumps(json.loads(make_tombstone().event) | change).encode())
