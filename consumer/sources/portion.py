"""How many messages to take from the client in one call, which copies all that it gives before anybody sees a size."""

from collections.abc import Iterable


class Portion:
    """Remembers how large messages have been lately."""

    def __init__(self, messages_max: int) -> None:
        self._messages_max = messages_max
        self._large_bytes = 1

    def messages(self, room: int, room_bytes: int) -> int:
        """As many as there is room for, if all are as large as the largest lately; one at least where there is any."""
        if not room:
            return 0
        return min(room, self._messages_max, max(1, room_bytes // self._large_bytes))

    def saw(self, sizes_bytes: Iterable[int]) -> None:
        """These came. A large message counts for half its size with every call after it."""
        self._large_bytes = max(self._large_bytes // 2, *sizes_bytes, 1)
