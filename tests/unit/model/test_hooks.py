"""How occurrences reach those who listen."""

from typing import NamedTuple

import pytest

from consumer.model.hooks import Hooks


class Rang(NamedTuple):
    """Something that happens."""

    times: int = 1


class Knocked(NamedTuple):
    """Something else that happens."""


class Keeper:
    """Keeps how often it rang."""

    def __init__(self) -> None:
        self.times: list[int] = []

    def listen(self, hooks: Hooks) -> None:
        """Listen."""
        hooks.on(Rang, lambda rang: self.times.append(rang.times))


def test_every_listener_of_a_class_is_called() -> None:
    """In the order of registration, and for no other class."""
    heard: list[str] = []
    hooks = Hooks()
    hooks.on(Rang, lambda _: heard.append("first"))
    hooks.on(Rang, lambda _: heard.append("second"))
    hooks.on(Knocked, lambda _: heard.append("third"))
    hooks.report(Rang())
    assert heard == ["first", "second"]


def test_listeners_can_be_given_at_once() -> None:
    """Each registers itself."""
    first, second = Keeper(), Keeper()
    Hooks(first, second).report(Rang(3))
    assert first.times == second.times == [3]


def test_an_occurrence_without_listeners_is_dropped() -> None:
    """Reporting it does nothing, and a reporter can ask first whether it is wanted."""
    keeper = Keeper()
    hooks = Hooks(keeper)
    hooks.report(Knocked())
    assert (hooks.wants(Rang), hooks.wants(Knocked)) == (True, False)
    assert keeper.times == []


def test_a_listener_may_be_added_while_another_is_called() -> None:
    """It hears of the next occurrence, not of the current one."""
    keeper = Keeper()
    hooks = Hooks()
    hooks.on(Rang, lambda rang: keeper.listen(hooks) if rang.times == 1 else None)
    hooks.report(Rang(1))
    hooks.report(Rang(2))
    assert keeper.times == [2]


def test_what_a_listener_raises_reaches_the_reporter() -> None:
    """A defect of a listener ends the run, as any other defect does."""

    def fail(_: Rang) -> None:
        raise ZeroDivisionError

    hooks = Hooks()
    hooks.on(Rang, fail)
    with pytest.raises(ZeroDivisionError):
        hooks.report(Rang())
