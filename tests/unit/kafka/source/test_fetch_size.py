"""Large messages are taken few at a time, and small ones as many as there is room for."""

from consumer.kafka.source.fetching import FetchSize

MIB = 1 << 20


def test_small_messages_come_as_many_as_there_is_room_for() -> None:
    """In number, and in one call."""
    size = FetchSize(256)
    size.observe([2_000] * 256)
    assert size.next_count(512, 16 * MIB) == 256
    assert size.next_count(100, 16 * MIB) == 100
    assert size.next_count(0, 16 * MIB) == 0


def test_large_messages_come_as_many_as_there_are_bytes_for() -> None:
    """One at least, or reading would end."""
    size = FetchSize(256)
    size.observe([100, 8 * MIB, 100])
    assert size.next_count(512, 16 * MIB) == 2
    size.observe([40 * MIB])
    assert size.next_count(512, 16 * MIB) == 1
    assert size.next_count(512, 0) == 1
    assert size.next_count(0, 0) == 0


def test_what_was_large_once_is_forgotten() -> None:
    """Half of it with every call, so that one large message does not slow a feed down for good."""
    size = FetchSize(256)
    size.observe([8 * MIB])
    calls = 0
    while size.next_count(512, 16 * MIB) < 256:
        size.observe([])
        calls += 1
    assert calls == 7
