"""How many messages to take from the client in one call, which copies all of them before their sizes are known."""

from collections.abc import Iterable


class FetchSize:
    """Remembers how large recent messages were."""

    def __init__(self, messages_max: int) -> None:
        self._messages_max = messages_max
        self._large_bytes = 1

    def next_count(self, room: int, room_bytes: int) -> int:
        """Return how many fit if all are as large as the largest recent one; at least one where there is room."""
        if not room:
            return 0
        return min(room, self._messages_max, max(1, room_bytes // self._large_bytes))

    def observe(self, sizes_bytes: Iterable[int]) -> None:
        """Note the sizes of messages. Each later call halves what a large message counts for."""
        self._large_bytes = max(self._large_bytes // 2, *sizes_bytes, 1)
