"""A wait for HBase is announced once for an outage, with its reason, and not for what takes long elsewhere."""

import threading
from collections.abc import Iterator

import pytest

from storage.hbase.waits import Waits

STORE = "hbase://gateway:9090/feed"
REFUSED = ConnectionError("gateway:9090: Connection refused")


class Watched:
    """Waits by a clock that stands, and what they announce."""

    def __init__(self) -> None:
        self.heard: list[str | None] = []
        self.now_s = 100.0
        self.waits = Waits(STORE, self.heard.append, lambda: self.now_s)

    def later(self, seconds: float) -> list[str | None]:
        """What is announced after this many seconds."""
        self.now_s += seconds
        self.waits.look()
        heard, self.heard[:] = list(self.heard), []
        return heard


@pytest.fixture
def watched() -> Watched:
    """Nothing is asked yet."""
    return Watched()


class GivenUpError(Exception):
    """The question has come to nothing."""


def give_up(watched: Watched, seconds: float) -> list[str | None]:
    """Ask, fail and ask again for so long; what is announced."""
    heard: list[str | None] = []

    def ask() -> None:
        with watched.waits.request():
            watched.waits.note_failure(REFUSED)
            heard.extend(watched.later(seconds))
            raise GivenUpError

    with pytest.raises(GivenUpError):
        ask()
    return heard


def test_an_outage_is_told_once_with_its_reason(watched: Watched) -> None:
    """However many questions fail in it; then that there is an answer, and the next outage again."""
    for _ in range(2):
        assert give_up(watched, 1.9) == []
        assert give_up(watched, 2.1) == [f"the store {STORE}: gateway:9090: Connection refused"]
        assert give_up(watched, 2.1) == []
        with watched.waits.request():
            pass
        assert watched.later(10) == [None]


def test_a_question_without_an_answer_is_told(watched: Watched) -> None:
    """Before anything has failed; what failed in an earlier outage is no reason."""
    give_up(watched, 1)
    for _ in range(2):
        with watched.waits.request():
            pass
        with watched.waits.request():
            assert watched.later(2.1) == [f"the store {STORE}: no answer yet"]
        assert watched.later(0) == [None]


def test_answers_at_once_are_not_told(watched: Watched) -> None:
    """Nor is the time between questions, or between the pieces of an answer."""
    with watched.waits.request():
        pass
    assert watched.later(10) == []
    with watched.waits.request():
        for _ in watched.waits.pieces([1, 2]):
            assert watched.later(10) == []
        assert watched.later(1.9) == []
    assert watched.later(10) == []


def test_a_piece_that_does_not_come_is_told(watched: Watched) -> None:
    """A walk over rows may stand still in the middle."""
    heard: list[str | None] = []

    def found() -> Iterator[int]:
        yield 1
        heard.extend(watched.later(2.1))

    with watched.waits.request():
        assert list(watched.waits.pieces(found())) == [1]
    assert heard == [f"the store {STORE}: no answer yet"]


def test_without_a_listener_nothing_is_watched() -> None:
    """There is no thread then."""
    before = threading.active_count()
    waits = Waits(STORE, None)
    waits.watch()
    with waits.request():
        assert list(waits.pieces([1, 2])) == [1, 2]
    waits.look()
    assert threading.active_count() <= before
