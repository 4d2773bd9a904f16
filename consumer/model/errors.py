"""The errors of dupwatch, and what each one means for the run.

::

    DupwatchError
    ├── BadRecord               one record: it becomes a dead letter, and the run continues
    ├── Abandoned               one batch: nothing of it is committed, and the owner of its partitions reads it again
    │   └── OutcomeUnknown      one batch: it may have been committed; only the brokers know
    ├── StoppedBeforeStart      the run: it was stopped before it read anything
    ├── InboxFull               one request: there is no room for its records, and none was accepted
    ├── Unanswered              one request: its records may or may not have been judged
    └── Fatal                1  the run: it ends with one sentence and the error's exit code, and commits nothing more
        ├── ConfigError         2  an option or a setting is wrong
        ├── SourceError         3  the input cannot be read
        ├── StoreMismatch       4  the store was made with other settings or another layout, or is damaged
        ├── StoreBroken         5  the store failed or cannot be reached
        ├── SinkError           6  verdicts or dead letters cannot be written
        └── TooManyDeadLetters  7  too many records cannot be judged

``wiring`` turns the errors of stores (``storage.errors``) into these. Any other exception is a bug: the run ends with
exit code 1 and a traceback.
"""

from typing import ClassVar


class DupwatchError(Exception):
    """The base class. The message says what happened and what to do, in a sentence or two."""


class BadRecord(DupwatchError):  # noqa: N818  # named for the record, which is at fault
    """A record cannot be judged. ``reason`` is an ``article.Reason``; ``detail`` is a sentence for people.

    ``limit`` names the exceeded limit of ``DecodeLimits``, or is "".
    """

    def __init__(self, reason: str, detail: str, limit: str = "") -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.limit = limit


class Abandoned(DupwatchError):  # noqa: N818  # named for the batch: nothing failed
    """This consumer gave up a batch without committing it. The consumer that owns its partitions reads it again."""


class StoppedBeforeStart(DupwatchError):  # noqa: N818  # nothing failed
    """The run was asked to stop before it began."""


class InboxFull(DupwatchError):  # noqa: N818  # named for the inbox, which is full
    """The inbox has no room for the records of a request. ``limit`` names the setting, ``maximum`` is its value."""

    def __init__(self, limit: str, maximum: int) -> None:
        super().__init__(f"the inbox is full: {limit} is {maximum}")
        self.limit = limit
        self.maximum = maximum


class Unanswered(DupwatchError):  # noqa: N818  # named for the request: nothing need have failed
    """A run ended before it answered a request. Its records may have been judged; sending them again is safe."""


class OutcomeUnknown(Abandoned):
    """The batch may have been committed. The source continues at the offsets that the brokers have for the group."""


class Fatal(DupwatchError):  # noqa: N818  # a kind of error, as its subclasses say
    """The run cannot continue."""

    exit_code: ClassVar[int] = 1


class ConfigError(Fatal):
    """An option or a setting is wrong."""

    exit_code = 2


class SourceError(Fatal):
    """The input cannot be read."""

    exit_code = 3


class StoreMismatch(Fatal):
    """The store was made with other settings or another layout, is damaged, or is something other than a store."""

    exit_code = 4


class StoreBroken(Fatal):
    """The store failed, or cannot be reached."""

    exit_code = 5


class SinkError(Fatal):
    """Verdicts or dead letters cannot be written."""

    exit_code = 6


class TooManyDeadLetters(Fatal):
    """Too many records of a file or a stream cannot be judged: the feed is probably in another format."""

    exit_code = 7
