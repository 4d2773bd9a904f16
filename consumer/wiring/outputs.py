"""Where the verdicts of a run go, as values: the sinks of verdicts and of dead letters are both built from them."""

from dataclasses import dataclass
from pathlib import Path

from consumer.kafka.sink.outbox import Outbox
from consumer.kafka.topics import SinkTopics
from consumer.model.ports import Marks
from consumer.wiring.components import Streams


@dataclass(frozen=True, slots=True)
class FileOutput:
    """Verdicts go to the file at ``path``.

    ``marks`` says how much of earlier runs to keep, None where the run begins with empty files; ``why_not_append`` is
    why it then cannot append to a file that is not empty, as a clause of the error.
    """

    path: Path
    marks: Marks | None
    why_not_append: str

    @property
    def verdicts_bytes(self) -> int | None:
        """How much of the file of verdicts to keep."""
        return None if self.marks is None else self.marks.verdicts_bytes

    @property
    def dead_letters_bytes(self) -> int | None:
        """How much of the dead letters to keep, where they go to a file too."""
        return None if self.marks is None else self.marks.dead_letters_bytes


@dataclass(frozen=True, slots=True)
class StreamOutput:
    """Verdicts go to standard output."""

    streams: Streams


@dataclass(frozen=True, slots=True)
class TopicOutput:
    """Verdicts go to the topics of one prefix, through this outbox."""

    topics: SinkTopics
    outbox: Outbox


@dataclass(frozen=True, slots=True)
class NoOutput:
    """Verdicts are discarded: the result of the run is what it leaves in the store."""


Output = FileOutput | StreamOutput | TopicOutput | NoOutput
