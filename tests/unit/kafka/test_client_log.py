"""What librdkafka says is told; what it says ten times a second is told once a minute."""

import logging

from consumer.kafka.client_log import ConnectionLogFilter, client_log


class Clock:
    """A time that the test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now_s


def shown(seldom: ConnectionLogFilter, message: str) -> str | None:
    """What becomes of a line."""
    record = logging.LogRecord("dupwatch.kafka", logging.ERROR, "", 0, "%s", (message,), None)
    return record.getMessage() if seldom.filter(record) else None


def fail(thread: str, milliseconds: int = 0, client: int = 1) -> str:
    """A line of a connection that failed."""
    return f"FAIL [rdkafka#producer-{client}] [thrd:{thread}]: {thread}: Connection refused (after {milliseconds}ms)"


def test_a_connection_that_fails_is_told_once_a_minute_with_how_often() -> None:
    """Also where another client of the same kind took its place."""
    clock = Clock()
    seldom = ConnectionLogFilter(clock)
    assert shown(seldom, fail("a:1")) == fail("a:1")
    for number in range(5):
        clock.now_s += 1
        assert shown(seldom, fail("a:1", number, number)) is None
    clock.now_s += 55
    assert shown(seldom, fail("a:1")) == f"{fail('a:1')} (5 more times since this was logged)"
    clock.now_s += 60
    assert shown(seldom, fail("a:1")) == fail("a:1")


def test_other_connections_and_other_lines_are_told() -> None:
    """Each connection has a minute of its own, and what is no failed connection is always told."""
    seldom = ConnectionLogFilter(Clock())
    lines = [fail("a:1"), fail("b:1"), "SESSTMOUT [rdkafka#consumer-1]: session timed out"]
    assert [shown(seldom, line) for line in (*lines, lines[2])] == [*lines, lines[2]]
    assert [shown(seldom, line) for line in lines] == [None, None, lines[2]]


def test_the_clients_log_is_filtered() -> None:
    """The one that every client is given."""
    assert any(isinstance(filtering, ConnectionLogFilter) for filtering in client_log.filters)
