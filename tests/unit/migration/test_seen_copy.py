"""What an old store remembers of texts goes along."""

from collections.abc import Sequence

from typing_extensions import override

from consumer.migration.seen_copy import copy_seen
from storage.memory import MemoryStore
from storage.seen import Seen, SeenChange

ENTRIES = {number.to_bytes(16, "big"): Seen(number, 10_000 + number, number, 1 + number) for number in range(3_000)}


def remembering(entries: dict[bytes, Seen], store: MemoryStore | None = None) -> MemoryStore:
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
    old, new = remembering({digest: Seen(1, 50, 3, 20)}), remembering({digest: Seen(10, 60, 1, 4)})
    copy_seen(old, new, lambda: False)
    assert dict(new.scan_seen()) == {digest: Seen(1, 60, 1, 20)}


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
                super().change_seen([SeenChange(digest, None, Seen(0, 99, 9, 2))])
            return super().change_seen(changes)

    new = Racing()
    copy_seen(remembering({digest: Seen(5, 50, 3, 20)}), new, lambda: False)
    assert dict(new.scan_seen()) == {digest: Seen(0, 99, 9, 20)}
