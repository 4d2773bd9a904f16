"""Releases, together with judges that run at the same time."""

import random
from collections.abc import Callable, Sequence

import msgspec
import pytest

from consumer.judge.detector import Detector
from consumer.judge.events import kept_event
from consumer.model.errors import ConfigError
from consumer.model.verdict import Released, Verdict, decode_verdict
from consumer.store_tools import releases
from consumer.store_tools.inspection import chain, dangling_flags, verify
from consumer.store_tools.releases import Attribution, read_flagged, releasable_version
from storage.errors import StoreError, StoreUnavailable
from storage.interface import Store
from storage.memory import MemoryStore
from storage.postings import PostingRow
from storage.records import Record, Release, StoredVersion, Version, reference_of
from tests.builders import TIME_MS, make_tombstone
from tests.chaos.near_articles import SETTINGS, near_chain, near_group, new_text, version_of

GROUP = near_group(random.Random("releases"), "article", 4, 0)
ORIGINAL, COPY, THIRD, FOURTH = GROUP
ATTRIBUTION = Attribution("Kim", "another ferry")
LATER_MS = TIME_MS + 10


def release(store: Store, version: Version, attribution: Attribution = ATTRIBUTION) -> bytes:
    """Release a version, a little later than everything is judged."""
    flagged = read_flagged(store, version.record.reference)
    return releases.release(store, flagged, attribution, lambda: LATER_MS).encoded


def judge(store: Store, *batch: Version, at_ms: int = TIME_MS) -> list[Verdict]:
    """Return the verdicts of a process that remembers nothing."""
    return [event.verdict for event in Detector(store, SETTINGS, lambda: at_ms).judge(batch)]


def released_store() -> MemoryStore:
    """Return a store in which the copy was flagged against the original and then released."""
    store = MemoryStore()
    judge(store, ORIGINAL, COPY)
    release(store, COPY)
    return store


def copy_of(version: Version, name: str) -> Version:
    """Return another article with the same text that arrived later."""
    reference = reference_of(name, b"copy")
    return Version(msgspec.structs.replace(version.record, reference=reference, id=name, sequence=9), None)


def wrong(store: Store) -> list[str]:
    """Return what a check of the whole store finds wrong."""
    return list(verify(store, SETTINGS))[-1].wrong


def can_be_found(store: Store, version: Version) -> bool:
    """Return whether a version has all its postings."""
    reference = version.record.reference
    return all(reference in _references(row) for row in store.look_up(version.record.keys))


def _references(row: PostingRow) -> list[bytes]:
    return [posting["reference"].tobytes() for posting in row.postings]


def test_a_released_version_is_unique_and_says_what_it_was() -> None:
    """The event has the former original, who released it and why; it is stored, and its chain ends at itself."""
    store = MemoryStore()
    flag = judge(store, ORIGINAL, COPY)[1]
    event = release(store, COPY)
    verdict = decode_verdict(event)
    assert (verdict.id, verdict.version, verdict.outcome, verdict.duplicate_of) == (
        "article.1",
        flag.version,
        "unique",
        None,
    )
    assert verdict.released == Released(
        duplicate_of="article.0",
        duplicate_of_version=ORIGINAL.record.reference[16:].hex(),
        flagged_at=flag.decided_at,
        by="Kim",
        reason="another ferry",
    )
    assert verdict.decided_at > flag.decided_at
    (stored,) = store.read([COPY.record.reference])
    assert stored == StoredVersion(COPY.record, event, None, ORIGINAL.record.reference)
    assert stored is not None
    assert len(chain(store, stored)) == 1
    assert can_be_found(store, COPY)
    assert (wrong(store), list(dangling_flags(store, 1 << 60))) == ([], [])


def test_a_replay_of_a_released_version_is_answered_with_the_release() -> None:
    """A process that remembers the original and a new one both return the release, and the postings stay."""
    store = MemoryStore()
    knowing = Detector(store, SETTINGS, lambda: TIME_MS)
    knowing.judge([ORIGINAL])
    knowing.judge([COPY])
    event = release(store, COPY)
    for judging in (knowing, Detector(store, SETTINGS, lambda: LATER_MS + 9)):
        assert [answer.encoded for answer in judging.judge([COPY])] == [event]
    assert can_be_found(store, COPY)


def test_copies_of_a_released_version_are_flagged() -> None:
    """Also a copy that is near nothing else, and can only be found by the restored postings."""
    chance = random.Random("copies")
    store = MemoryStore()
    first, middle, last = near_chain(chance, "link", 3, 0)
    assert judge(store, first, middle)[1].duplicate_of == "link.0"
    release(store, middle)
    assert [verdict.duplicate_of for verdict in judge(store, last, at_ms=LATER_MS + 1)] == ["link.1"]
    assert wrong(store) == []


def test_a_process_that_remembers_the_original_flags_copies_of_both() -> None:
    """The release changes nothing for the original."""
    store = MemoryStore()
    knowing = Detector(store, SETTINGS, lambda: TIME_MS)
    for version in (ORIGINAL, COPY, THIRD):
        knowing.judge([version])
    release(store, COPY)
    assert knowing.judge([FOURTH])[0].verdict.outcome == "duplicate"
    assert judge(store, FOURTH)[0].outcome == "duplicate"


def pending_original(store: MemoryStore) -> None:
    """Flag the copy against the original, which another process has stored and not judged yet."""
    store.create([ORIGINAL])
    store.add([ORIGINAL.record])
    assert judge(store, COPY)[0].duplicate_of == "article.0"


def test_an_original_that_is_judged_after_the_release_is_kept_beside_it() -> None:
    """The pair is no longer near; a third article that is near both is flagged."""
    store = MemoryStore()
    pending_original(store)
    release(store, COPY)
    assert judge(store, ORIGINAL)[0].outcome == "unique"
    assert judge(store, THIRD, at_ms=LATER_MS + 1)[0].outcome == "duplicate"
    assert wrong(store) == []


def test_an_original_is_kept_by_a_process_that_remembers_the_released_one() -> None:
    """Copies made the released version a known original, but its former original is not a copy of it."""
    store = MemoryStore()
    pending_original(store)
    release(store, COPY)
    knowing = Detector(store, SETTINGS, lambda: LATER_MS + 1)
    for name in ("twin", "triplet"):
        knowing.judge([copy_of(COPY, name)])
    assert COPY.record.reference in knowing.known.recall(ORIGINAL.record, 10)
    assert knowing.judge([ORIGINAL])[0].verdict.outcome == "unique"


class Interrupting(MemoryStore):
    """A store that does something else once, right before one of its calls."""

    def __init__(self, verb: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.verb = verb
        self.meanwhile = meanwhile

    def __getattribute__(self, name: str) -> object:
        if name == object.__getattribute__(self, "__dict__").get("verb"):
            self.verb = ""
            self.meanwhile()
        return super().__getattribute__(name)


@pytest.mark.parametrize("verb", ["create", "add", "look_up", "settle", "remove"])
def test_a_release_at_any_moment_of_judging_the_original_keeps_both(verb: str) -> None:
    """At any point of judging, both versions of the pair are kept."""
    store = Interrupting("")
    pending_original(store)
    store.meanwhile = lambda: release(store, COPY)
    store.verb = verb
    assert judge(store, ORIGINAL)[0].outcome == "unique"
    assert store.verb == ""
    assert decode_verdict(release(store, COPY)).outcome == "unique"
    assert can_be_found(store, COPY)
    assert wrong(store) == []


@pytest.mark.parametrize("verb", ["add", "release"])
def test_the_original_judged_at_any_moment_of_a_release_is_kept(verb: str) -> None:
    """Postings that are written before the release do not flag the original."""
    store = Interrupting("")
    pending_original(store)
    outcomes: list[str] = []
    store.meanwhile = lambda: outcomes.append(judge(store, ORIGINAL)[0].outcome)
    store.verb = verb
    release(store, COPY)
    assert outcomes == ["unique"]
    assert wrong(store) == []


class Breaking(MemoryStore):
    """A store that fails at its first release, before or after writing it."""

    def __init__(self, *, done: bool) -> None:
        super().__init__()
        self.done = done
        self.is_broken = False

    def release(self, some: Sequence[Release]) -> list[bytes | None]:
        """Fail once."""
        events = super().release(some) if self.is_broken or self.done else []
        if not self.is_broken:
            self.is_broken = True
            raise StoreUnavailable("out of reach")
        return events


@pytest.mark.parametrize("done", [False, True])
def test_postings_are_there_before_anybody_can_read_the_release(done: bool) -> None:  # noqa: FBT001
    """After a crash at that moment a copy is flagged, and a repeated release returns what is stored."""
    store = Breaking(done=done)
    judge(store, ORIGINAL, COPY)
    with pytest.raises(StoreUnavailable):
        release(store, COPY)
    assert can_be_found(store, COPY)
    assert judge(store, ORIGINAL, COPY)[1].outcome == ("unique" if done else "duplicate")
    assert judge(store, THIRD)[0].outcome == "duplicate"
    event = release(store, COPY)
    assert decode_verdict(event).outcome == "unique"
    assert (judge(store, COPY), can_be_found(store, COPY)) == ([decode_verdict(event)], True)


def test_a_judge_that_removes_postings_meanwhile_does_not_hide_the_released_one() -> None:
    """A judge that has just flagged the version removes its postings after the release restored them."""
    store = Interrupting("")
    judge(store, ORIGINAL, COPY)
    store.meanwhile = lambda: store.remove([COPY.record])
    store.verb = "release"
    release(store, COPY)
    assert can_be_found(store, COPY)


def test_the_flag_of_a_judge_that_was_late_is_answered_with_the_release() -> None:
    """A judge that settles again after a lost reply returns the release, and removes no postings."""

    class HangingThread(MemoryStore):
        def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
            super().settle(verdicts, removing)
            if any(reference == COPY.record.reference for reference, _ in verdicts):
                release(self, COPY)
            return super().settle(verdicts, removing)

    store = HangingThread()
    assert [verdict.outcome for verdict in judge(store, ORIGINAL, COPY)] == ["unique", "unique"]
    assert can_be_found(store, COPY)


def test_a_release_made_again_changes_nothing_and_brings_the_postings_back() -> None:
    """Different words change nothing; lost postings are restored."""
    store = released_store()
    (event,) = [stored.verdict for stored in store.scan() if isinstance(stored, StoredVersion) and stored.released_from]
    store.remove([COPY.record])
    assert wrong(store) != []
    assert release(store, COPY, Attribution("Lee")) == event
    assert (can_be_found(store, COPY), wrong(store)) == (True, [])


def test_what_was_not_flagged_is_not_released() -> None:
    """For a pending, unique, expired or unknown version the error says which, and nothing is written."""
    store = MemoryStore()
    pending_original(store)
    judge(store, version_of("alone", new_text(random.Random("alone")), 0))
    before = list(store.scan()), store.stats()
    refusals = {
        ("article.0", None): "is pending",
        ("alone", None): "is unique",
        ("nobody", None): "'nobody' is not in the store",
        ("article.1", "00" * 16): "the version 0{32} of 'article.1' is not in the store",
        ("article.1", "zz"): "is not a version",
        ("article.1", "00"): "is not a version",
    }
    for (name, version), sentence in refusals.items():
        with pytest.raises(ConfigError, match=sentence):
            releasable_version(store, name, version)
    for reference, sentence in ((ORIGINAL.record.reference, "is pending"), (b"\1" * 32, "window has ended")):
        with pytest.raises(ConfigError, match=sentence):
            read_flagged(store, reference)
    assert (list(store.scan()), store.stats()) == before


def test_a_version_that_is_swept_while_it_is_released_is_an_error() -> None:
    """It is not reported as unique."""
    store = Interrupting("")
    judge(store, ORIGINAL, COPY)
    store.meanwhile = lambda: store.sweep(1 << 60, 10)
    store.verb = "release"
    with pytest.raises(StoreError, match=r"'article\.1' was deleted during its release, because its window has ended"):
        release(store, COPY)


def test_a_version_of_a_retracted_id_can_be_released() -> None:
    """The latest version is released unless another is named."""
    store = MemoryStore()
    judge(store, ORIGINAL, COPY)
    Detector(store, SETTINGS, lambda: TIME_MS).judge([make_tombstone("article.1", sequence=5)])
    named = COPY.record.reference[16:].hex()
    assert releasable_version(store, "article.1") == releasable_version(store, "article.1", named)
    assert decode_verdict(release(store, COPY)).outcome == "unique"


def test_verify_minds_what_is_kept_beside_a_released_one_only_if_it_came_later() -> None:
    """Articles judged before the release could not know of it; later ones must be flagged."""
    chance = random.Random("beside")
    first, middle, last = near_chain(chance, "link", 3, 0)
    store = MemoryStore()
    assert [verdict.outcome for verdict in judge(store, first, last, middle)] == ["unique", "unique", "duplicate"]
    release(store, middle)
    assert wrong(store) == []
    for name, judged_ms, is_wrong in (("before", LATER_MS - 1, False), ("after", LATER_MS + 1, True)):
        beside = copy_of(middle, name)
        event = kept_event(beside.record, truncated=False, decided_ms=judged_ms).encoded
        store.create([beside])
        store.add([beside.record])
        assert store.settle([(beside.record.reference, event)]) == [True]
        assert (f"'link.1' and '{name}' are near each other and both kept" in wrong(store)) == is_wrong
