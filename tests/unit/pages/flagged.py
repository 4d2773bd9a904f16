"""A store with flags in it, as a run leaves them."""

from collections.abc import Sequence

from consumer.judge.decision import Duplicate, Neighbour
from consumer.judge.events import Remarks, duplicate_event, kept_event, version_name
from consumer.model.verdict import Part, Verdict
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
    parts: Sequence[Version] = (),
) -> Verdict:
    """Store all, and flag one as a duplicate of the other; a quarter of it stands in each of ``parts``."""
    store.create([original, article, *parts])
    remarks = Remarks(
        parts=tuple(
            Part(id=each.record.id, version=version_name(each.reference), share_of_this=0.25, share_of_that=0.5)
            for each in parts
        )
    )
    near = Neighbour(original.record, distance, similarity)
    event = duplicate_event(
        Duplicate(article.record, near, (near,)), truncated=False, decided_ms=TIME_MS + 5, remarks=remarks
    )
    store.settle(
        [
            (original.record.reference, kept_event(original.record, truncated=False, decided_ms=TIME_MS).encoded),
            (article.record.reference, event.encoded),
        ]
    )
    return event.verdict
