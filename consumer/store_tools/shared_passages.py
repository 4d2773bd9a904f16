"""The passages that an article shares with those that its verdict names as parts, word for word."""

from collections.abc import Sequence
from typing import NamedTuple

from consumer.judge.events import reference_in
from consumer.model.verdict import Part, Verdict
from consumer.text.passages import Passage, passages
from storage.interface import Store
from storage.records import Stored


class SharedWith(NamedTuple):
    """A part, and the passages that stand in both articles; None where the store does not have both texts."""

    part: Part
    passages: list[Passage] | None


def shared_passages(store: Store, body: str | None, parts: Sequence[Part]) -> list[SharedWith]:
    """Return the passages of a text that stand in each of these articles. Raises the store's errors."""
    if body is None:
        return [SharedWith(part, None) for part in parts]
    others = store.bodies([reference_in(part.id, part.version) for part in parts])
    return [
        SharedWith(part, None if other is None else passages(body, other))
        for part, other in zip(parts, others, strict=True)
    ]


def passages_of(store: Store, stored: Stored, verdict: Verdict | None) -> list[SharedWith]:
    """Return the same for the parts that a stored verdict names."""
    if verdict is None or not isinstance(verdict.parts, tuple):
        return []
    return shared_passages(store, store.bodies([stored.record.reference])[0], verdict.parts)
