"""Which verdicts a file or a stream gets."""

from collections.abc import Sequence
from typing import Literal

from consumer.model.ports import Answer

Emit = Literal["duplicates", "all", "none"]
"""Dead letters are always written."""


def selected_events(answers: Sequence[Answer], emit: Emit) -> list[bytes]:
    """Return the events of the verdicts that ``emit`` selects."""
    if emit == "none":
        return []
    return [answer.event.encoded for answer in answers if emit == "all" or answer.event.verdict.outcome == "duplicate"]


def released_events(answer: Answer, emit: Emit) -> list[bytes]:
    """Return the event of a release, for who gets flags."""
    return [] if emit == "none" else [answer.event.encoded]
