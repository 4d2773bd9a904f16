"""Releases over HTTP: the event goes to the sink that the verdicts go to, the article back to the clean feed."""

import logging
from dataclasses import dataclass

from consumer.config.config import Config
from consumer.model.errors import SourceError
from consumer.model.ports import Answer
from consumer.model.record import RawRecord
from consumer.model.verdict import VerdictEvent
from consumer.service.answering import AnsweringSink
from consumer.store_tools.released_record import NoWayBack, Origins
from consumer.store_tools.releases import Attribution, is_last, releasable, release
from consumer.wiring.release_run import NO_RECORD, way_back
from storage.clock import Clock
from storage.interface import Store

log = logging.getLogger("dupwatch")


@dataclass(frozen=True, slots=True)
class Releasing:
    """Undoes flags in a store, and tells the sink of a run that judges into it."""

    config: Config
    store: Store
    sink: AnsweringSink
    clock: Clock
    has_times: bool = True
    """Whether the brokers find an offset by its time."""
    is_patient: bool = False
    """Whether the caller would rather try again than do without the clean feed."""
    known: Origins | None = None
    """Where the records of versions are, as far as that was looked for before."""

    def release(self, article_id: str, version: str | None, attribution: Attribution) -> bytes:
        """Undo a flag, and return the event, once the sink has it; the article returns to the clean feed if it can.

        Raises ``ConfigError`` where there is nothing to undo, ``SinkError``, ``Abandoned`` and the store's errors; and
        ``SourceError`` if it is patient. After an error it may be called again.
        """
        flagged = releasable(self.store, article_id, version)
        reference = flagged.record.reference
        back = way_back(self.config, flagged, has_times=self.has_times, known=self.known)
        if self.is_patient and isinstance(back, NoWayBack) and back.is_passing:
            raise SourceError(f"{article_id!r} cannot be sent to the clean feed yet: {back.why}")
        event = release(self.store, reference, attribution, self.clock)
        record = back if isinstance(back, RawRecord) and is_last(self.store, reference) else None
        self.sink.release(Answer(record or NO_RECORD, VerdictEvent.read(event)))
        if isinstance(back, NoWayBack):
            log.warning("%r was released, but is not sent to the clean feed: %s", article_id, back.why)
        elif back is not None and (record is None or not is_last(self.store, reference)):
            log.warning(
                "A newer version of %r arrived during its release: compare its last message in the clean feed with its "
                "source, and send it again if they differ",
                article_id,
            )
        return event
