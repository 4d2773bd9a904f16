"""Where a delivery of content belongs that its id had before: a stored stretch, or a new one."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from consumer.judge import stretches
from consumer.judge.detector import Detector
from consumer.judge.stretches import (
    DeliveryPlacement,
    NewStretch,
    Replay,
    Stretches,
    in_stretch,
    placement_of,
    placements_in,
)
from consumer.judge.tally import Tally
from consumer.model.verdict import Verdict, VerdictEvent
from storage.errors import StoreError
from storage.memory import MemoryStore
from storage.records import (
    REFERENCE_BYTES,
    StoredVersion,
    Tombstone,
    Version,
    encode_record,
    id_hash,
    stretch_reference,
)
from tests.builders import TIME_MS, make_record
from tests.protocol.articles import FAR, RETURNING_OFTEN, make_article
from tests.protocol.returns import message, retraction
from tests.protocol.texts import MODES

RETURNS = MODES[RETURNING_OFTEN]
A0, B1, A2, B3, A4, B5, A6 = (message(place, "AB"[place % 2], (0, FAR)[place % 2]) for place in range(7))


def judging(stretches_max: int = RETURNS.stretches_max) -> Detector:
    """Return a judge over an empty store."""
    return Detector(MemoryStore(), replace(RETURNS, stretches_max=stretches_max), lambda: TIME_MS)


def verdicts(detector: Detector, *arrived: Version | Tombstone) -> list[Verdict]:
    """Judge these one by one."""
    return [detector.judge([each])[0].verdict for each in arrived]


def placed(delivered: Version, *feed: Version | Tombstone) -> DeliveryPlacement:
    """Return where a delivery belongs after this feed."""
    detector = judging()
    verdicts(detector, *feed)
    return placements_in(detector.store, [delivered], RETURNS.stretches_max)[delivered.reference]


def test_the_first_stretch_has_the_reference_of_its_content() -> None:
    """Later ones have others, each its own, under the same id."""
    references = [stretch_reference(A0.reference, stretch) for stretch in range(1_000)]
    assert references[0] == A0.reference
    assert len(set(references)) == 1_000
    assert {len(reference) for reference in references} == {REFERENCE_BYTES}
    assert {reference[:16] for reference in references} == {A0.record.id_hash}
    # Stored, and so never to be changed.
    assert stretch_reference(bytes(32), 1).hex() == bytes(16).hex() + "7348113caeffd12ecb134fee42006567"


def test_stored_records_of_before_keep_their_bytes() -> None:
    """The fields of an origin cost nothing where there is none, and less than 25 bytes for a usual topic."""
    plain = make_record()
    sent = msgspec.structs.replace(plain, feed="articles:12")
    assert len(encode_record(sent)) - len(encode_record(plain)) <= 24
    assert encode_record(msgspec.structs.replace(sent, feed=None)) == encode_record(plain)


@pytest.mark.parametrize(
    ("history", "delivered", "placement"),
    [
        ((A0, B1), A2, 1),
        ((A0, B1), A0, A0),
        ((A0, B1, A2), A2, in_stretch(A2.record, 1)),
        ((A0, B1, A2), A0, A0),
        ((A0, B1, A2), A4, in_stretch(A2.record, 1)),
        ((A0, B1, A2, B3), A4, 2),
        ((A0, B1, A2, B3), A2, in_stretch(A2.record, 1)),
        ((A0, message(2, "B", FAR)), message(1, "A"), A0),
        ((A0, message(2, "B", FAR)), message(1, "A", arrives=9), A0),
        ((A0, message(2, "B", FAR), A4), message(1, "A", arrives=9), A0),
        ((A0, B1), make_article(9, article_id="changing", content=b"A"), A0),
        ((A0, B1, A2, B3), make_article(9, article_id="changing", content=b"A"), in_stretch(A2.record, 1)),
        ((A0, retraction(1)), A2, 1),
        ((A0, retraction(1, key="gone")), A2, 1),
        ((A0, retraction(3)), A2, A0),
        ((message(0, "A", key="k"), B1), message(2, "A", key="k"), A0),
        ((message(0, "A", key="k"), B1), message(2, "A", key="l"), 1),
        # Requests are numbered anew by each process.
        ((message(5, "A", key="k"), message(6, "B", FAR, key="l")), message(0, "A", arrives=9, key="m"), 1),
    ],
)
def test_where_a_delivery_belongs(
    history: tuple[Version | Tombstone, ...], delivered: Version, placement: int | Version
) -> None:
    """A number is that of a new stretch; otherwise the stored one is named."""
    found = placed(delivered, *history)
    if isinstance(placement, int):
        assert found == NewStretch(placement)
    else:
        assert isinstance(found, Replay)
        assert found.stored.record.reference == (getattr(placement, "reference", None))
        assert not found.is_limited


def test_content_that_was_swept_begins_again() -> None:
    """Nothing is left of it by the time that its history is read."""
    assert placed(A0, B1) == NewStretch(0)


def test_a_limit_of_stretches_is_counted_and_said() -> None:
    """Beyond it content gets its last verdict, marked as reached under a limit; other ids are not concerned."""
    detector = judging(stretches_max=1)
    said = verdicts(detector, A0, B1, A2, B3, A4, B5, A6)
    assert [verdict.truncated for verdict in said] == [False, False, False, False, True, False, True]
    assert {verdict.version for verdict in said[4::2]} == {said[2].version}
    assert said[5].version == said[3].version
    assert len(detector.store.history(A0.record.id_hash)) == 4
    assert (detector.tally.returned, detector.tally.stretches_limited) == (2, 2)
    (event,) = detector.judge([A4])
    assert event.verdict == said[4]
    assert VerdictEvent.read(event.encoded) == event
    other = [
        Version(
            msgspec.structs.replace(each.record, id="other", reference=id_hash("other") + each.reference[16:]), None
        )
        for each in (A0, B1, A2)
    ]
    assert not any(verdict.truncated for verdict in verdicts(detector, *other))


def test_without_stretches_old_content_is_a_replay() -> None:
    """That is the rule of stores from before there were any: the verdict is the same, and nothing is stored."""
    detector = judging(stretches_max=0)
    said = verdicts(detector, A0, B1, A2)
    assert said[2] == said[0]
    assert len(detector.store.history(A0.record.id_hash)) == 2
    assert detector.tally.returned == 0


class LosingStore(MemoryStore):
    """A store in which another process is always faster."""

    def create(self, versions: Sequence[Version]) -> list[StoredVersion]:
        """Create each later stretch for another delivery first, which ended at once."""
        for version in versions:
            if version.record.stretch:
                other = msgspec.structs.replace(
                    version.record, feed="other:0", time_ms=TIME_MS, sequence=version.record.stretch
                )
                super().create([Version(other, None)])
        return super().create(versions)


def test_who_loses_to_another_process_decides_again() -> None:
    """The stretches of the other one are read, and in the end there are as many as there may be."""
    store, tally = LosingStore(), Tally()
    verdicts(Detector(store, RETURNS, lambda: TIME_MS), A0, B1)
    created = Stretches(store, 3, tally).create([A2])
    assert [stored.record.stretch for stored in created.stored] == [3]
    assert created.limited_references == {created.stored[0].record.reference}
    assert (tally.returned, tally.stretches_limited) == (0, 1)


def test_a_stretch_that_can_never_be_written_ends_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge does not go on for ever."""
    detector = judging(stretches_max=3)
    verdicts(detector, A0, B1)
    monkeypatch.setattr(stretches, "in_stretch", lambda first, _: first)
    with pytest.raises(StoreError, match="lost a compare-and-set for every stretch"):
        detector.judge([A2])


class CountingStore(MemoryStore):
    """A store that counts what it is asked to read, and refuses to read a whole history."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def read(self, references: Sequence[bytes]) -> list[StoredVersion | None]:
        """Read, and count."""
        self.reads += len(references)
        return super().read(references)

    def history(self, id_hash: bytes) -> list[StoredVersion | Tombstone]:
        """Refuse: senders choose how long it is."""
        raise AssertionError(id_hash)


@pytest.mark.parametrize("versions", [3, 300])
def test_placing_a_delivery_takes_as_long_whatever_its_id_has_said(versions: int) -> None:
    """The reads do not grow with the number of versions of the id."""
    store = CountingStore()
    feed = [message(place, f"{place}", place << 20) for place in range(versions)]
    verdicts(Detector(store, RETURNS, lambda: TIME_MS), *feed)
    store.reads = 0
    Stretches(store, RETURNS.stretches_max, Tally()).create([message(999, "0")])
    assert store.reads == RETURNS.stretches_max + 1


def test_a_number_whose_stretch_was_swept_is_free_again() -> None:
    """So the numbers that are looked at are all that there can be."""
    detector = judging(stretches_max=2)
    verdicts(detector, A0, B1, A2, B3, A4, B5)
    stored = detector.store.read([stretch_reference(A0.reference, stretch) for stretch in range(3)])
    left = [each for each in stored if each is not None and each.record.stretch != 1]
    (latest,) = detector.store.latest([A0.record.id_hash])
    assert placement_of(A6, latest, left, 2) == NewStretch(1)
    assert placement_of(A6, latest, [each for each in stored if each is not None], 2).is_limited  # type: ignore[union-attr]
