"""The state that a source's client thread and the judging thread share."""

import threading
from dataclasses import dataclass, field
from typing import NamedTuple

from consumer.kafka.membership import GroupMetadata
from consumer.kafka.source.partitions import Partitions


class ClientProgressed(NamedTuple):
    """The client's thread has made progress, or is about to begin."""


@dataclass(slots=True)
class Handover:
    """The shared state of both threads, guarded by the lock ``changed``.

    ``closing`` and ``error``, which never change back, may be read without the lock.
    """

    partitions: Partitions
    closing: bool = False
    error: BaseException | None = None
    group_metadata: GroupMetadata | None = None
    changed: threading.Condition = field(default_factory=threading.Condition)

    def close(self) -> None:
        """Ask the client's thread to end."""
        with self.changed:
            self.closing = True
            self.changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Note the error that ended the client's thread."""
        with self.changed:
            self.error = error
            self.changed.notify_all()

    def is_over(self) -> bool:
        """Return whether no more records will come."""
        return self.closing or self.error is not None

    def raise_error(self) -> None:
        """Raise the error that ended the client's thread, if there is one."""
        if self.error is not None:
            raise self.error
