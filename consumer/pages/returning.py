"""The texts that came back most often in a run, of those that came from beyond their window."""

from collections.abc import Iterable
from heapq import nlargest
from operator import attrgetter
from typing import Final, NamedTuple

from consumer.model.verdict import SeenBefore, Verdict

SHOWN: Final = 5
_HELD_MAX: Final = 1_000
"""Of more texts, those that came most often are kept."""


class Returned(NamedTuple):
    """A text that came back: the latest article with it, when it came first and last, and at least how often."""

    id: str
    first: str
    last: str
    times: int


class ReturningTexts:
    """Holds the texts that came back, in bounded memory; not thread-safe.

    Texts are told apart by when they came first and by their fingerprint: an event has no digest of its text.
    """

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str | None], Returned] = {}

    def note(self, verdicts: Iterable[Verdict]) -> None:
        """Note those of the verdicts that say that their text was seen before."""
        for verdict in verdicts:
            seen = verdict.seen_before
            if isinstance(seen, SeenBefore):
                # With this article the text came once more.
                returned = Returned(verdict.id, seen.first, verdict.arrived_at, seen.times + 1)
                key = seen.first, verdict.fingerprint
                known = self._texts.get(key)
                if known is None or returned.times >= known.times:
                    self._texts[key] = returned
        if len(self._texts) > 2 * _HELD_MAX:
            self._texts = dict(nlargest(_HELD_MAX, self._texts.items(), key=lambda item: item[1].times))

    def most(self) -> tuple[Returned, ...]:
        """Return those that came most often, the most frequent first."""
        return tuple(nlargest(SHOWN, self._texts.values(), key=attrgetter("times")))
