"""Large messages are taken few at a time, and small ones as many as there is room for."""

from consumer.sources.portion import Portion

MIB = 1 << 20


def test_small_messages_come_as_many_as_there_is_room_for() -> None:
    """In number, and in one call."""
    portion = Portion(256)
    portion.saw([2_000] * 256)
    assert portion.messages(512, 16 * MIB) == 256
    assert portion.messages(100, 16 * MIB) == 100
    assert portion.messages(0, 16 * MIB) == 0


def test_large_messages_come_as_many_as_there_are_bytes_for() -> None:
    """One at least, or reading would end."""
    portion = Portion(256)
    portion.saw([100, 8 * MIB, 100])
    assert portion.messages(512, 16 * MIB) == 2
    portion.saw([40 * MIB])
    assert portion.messages(512, 16 * MIB) == 1
    assert portion.messages(512, 0) == 1
    assert portion.messages(0, 0) == 0


def test_what_was_large_once_is_forgotten() -> None:
    """Half of it with every call, so that one large message does not slow a feed down for good."""
    portion = Portion(256)
    portion.saw([8 * MIB])
    calls = 0
    while portion.messages(512, 16 * MIB) < 256:
        portion.saw([])
        calls += 1
    assert calls == 7
