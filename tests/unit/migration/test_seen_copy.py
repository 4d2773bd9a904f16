"""What an old store remembers of texts goes along."""

from collections.abc import Sequence

from typing_extensions import override

from consumer.judge.detector import Detector
from consumer.migration.adopting import AdoptingJudge
from consumer.migration.seen_copy import copy_seen, seen_by_new_digest
from consumer.model.verdict import SeenBefore
from storage.clock import MS_PER_DAY
from storage.memory import MemoryStore
from storage.seen import SeenChange, SeenTimes
from tests.builders import TIME_MS
from tests.unit.migration.test_stand_ins import LETTERS, NOW, SIMPLIFIED, WINDOW_MS, judged, version

ENTRIES = {
    number.to_bytes(16, "big"): SeenTimes(number, 10_000 + number, number, 1 + number) for number in range(3_000)
}


def remembering(entries: dict[bytes, SeenTimes], store: MemoryStore | None = None) -> MemoryStore:
    """Return a store that remembers these."""
    found = MemoryStore() if store is None else store
    found.change_seen([SeenChange(digest, None, seen) for digest, seen in entries.items()])
    return found


def test_everything_is_copied_and_copying_again_changes_nothing() -> None:
    """As after a migration that was killed and run again."""
    old, new = remembering(ENTRIES), MemoryStore()
    for _ in range(2):
        assert copy_seen(old, new, lambda: False) == len(ENTRIES)
        assert dict(new.scan_seen()) == ENTRIES


def test_what_the_new_store_remembers_already_stays() -> None:
    """The earlier beginning and the later end count, and the larger number of times."""
    digest = min(ENTRIES)
    old, new = remembering({digest: SeenTimes(1, 50, 3, 20)}), remembering({digest: SeenTimes(10, 60, 1, 4)})
    copy_seen(old, new, lambda: False)
    assert dict(new.scan_seen()) == {digest: SeenTimes(1, 60, 1, 20)}


def test_it_stops_between_pages() -> None:
    """And is complete when it is run again."""
    old, new = remembering(ENTRIES), MemoryStore()
    answers = iter([False, True])
    copied = copy_seen(old, new, lambda: next(answers))
    assert 0 < copied < len(ENTRIES)
    assert len(dict(new.scan_seen())) == copied


def test_a_lost_compare_and_set_is_repeated_from_what_is_stored() -> None:
    """Another process may see the same text meanwhile."""
    digest = min(ENTRIES)

    class Racing(MemoryStore):
        raced = False

        @override
        def change_seen(self, changes: Sequence[SeenChange]) -> list[bool]:
            if not self.raced:
                self.raced = True
                super().change_seen([SeenChange(digest, None, SeenTimes(0, 99, 9, 2))])
            return super().change_seen(changes)

    new = Racing()
    copy_seen(remembering({digest: SeenTimes(5, 50, 3, 20)}), new, lambda: False)
    assert dict(new.scan_seen()) == {digest: SeenTimes(0, 99, 9, 20)}


def test_what_is_remembered_is_found_by_another_digest() -> None:
    """Of two texts that are one now the earlier beginning counts, and the larger number of times; none is added up."""
    one, other, unknown, now = (bytes([number]) * 16 for number in range(4))
    old = remembering({one: SeenTimes(5, 50, 3, 20), other: SeenTimes(1, 40, 9, 2), now: SeenTimes(0, 99, 0, 7)})
    assert seen_by_new_digest(old, [(one, now), (other, now), (unknown, now), (now, now)]) == {
        now: SeenTimes(1, 50, 3, 20)
    }
    assert seen_by_new_digest(old, []) == {}


def test_a_text_that_comes_back_is_remembered_in_the_form_that_is_compared_now() -> None:
    """Spaces between its letters made it another text; the fill counts its copies in the window once, however often."""
    keep_ms = 90 * MS_PER_DAY
    spaced, times_ms = f"{SIMPLIFIED} See you soon.", [TIME_MS + number * (WINDOW_MS + 1) for number in range(4)]
    before, store = MemoryStore(), MemoryStore()
    old = [
        version(NOW, *each, time_ms=time_ms) for each, time_ms in zip(enumerate([spaced] * 3), times_ms, strict=False)
    ]
    detector = Detector(before, NOW, lambda: TIME_MS, seen_ms=keep_ms)
    sent = [detector.judge([each])[0].verdict for each in old]
    assert isinstance(sent[2].seen_before, SeenBefore)
    assert sent[2].seen_before.times == 2
    in_window = version(LETTERS, 2, spaced, time_ms=times_ms[2])
    assert in_window.record.text_digest != old[2].record.text_digest
    for _ in range(2):
        copy_seen(before, store, lambda: False)
        filling = AdoptingJudge(store, LETTERS, lambda: TIME_MS, seen_ms=keep_ms, old_store=before)
        filling.judge([in_window])
    after = Detector(store, LETTERS, lambda: TIME_MS, seen_ms=keep_ms)
    (event,) = after.judge([version(LETTERS, 9, spaced.replace("See", "S e e"), time_ms=times_ms[3])])
    assert isinstance(event.verdict.seen_before, SeenBefore)
    assert event.verdict.seen_before.times == 3
    assert event.verdict.seen_before.first == sent[2].seen_before.first


def test_nothing_is_renamed_for_consumers_that_remember_nothing() -> None:
    """Without ``judge.seen_days`` the old store is not asked, and the new one stays as it is."""
    before, store = MemoryStore(), MemoryStore()
    spaced = f"{SIMPLIFIED} See you soon."
    old = version(NOW, 0, spaced)
    judged(before, NOW, old)
    remembering({old.record.text_digest: SeenTimes(1, 2, 3, 4)}, before)
    AdoptingJudge(store, LETTERS, lambda: TIME_MS, old_store=before).judge([version(LETTERS, 0, spaced)])
    assert dict(store.scan_seen()) == {}
