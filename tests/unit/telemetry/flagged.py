"""A store with flags in it, as a run leaves them."""

from consumer.judge.decision import Duplicate, Neighbour
from consumer.judge.events import duplicate_event, kept_event
from consumer.model.verdict import Verdict
from storage.memory import MemoryStore
from storage.records import Version
from tests.builders import TIME_MS


def flagged(
    store: MemoryStore,
    article: Version,
    original: Version,
    *,
    similarity: float | None = 0.9375,
    distance: int = 3,
) -> Verdict:
    """Store both, and flag one as a duplicate of the other."""
    store.create([original, article])
    near = Neighbour(original.record, distance, similarity)
    event = duplicate_event(Duplicate(article.record, near, (near,)), truncated=False, decided_ms=TIME_MS + 5)
    store.settle(
        [
            (original.record.reference, kept_event(original.record, truncated=False, decided_ms=TIME_MS).encoded),
            (article.record.reference, event.encoded),
        ]
    )
    return event.verdict
