"""Which verdicts a file or a stream gets."""

from collections.abc import Sequence
from typing import Literal

from consumer.model.ports import Answer

Emit = Literal["duplicates", "all", "none"]
"""Dead letters are always written."""


def events(answers: Sequence[Answer], wanted: Emit) -> list[bytes]:
    """Return the events of the verdicts that are wanted."""
    if wanted == "none":
        return []
    return [answer.event for answer in answers if wanted == "all" or answer.verdict.outcome == "duplicate"]
