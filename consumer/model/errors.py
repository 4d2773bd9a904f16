"""Everything that can go wrong, and what follows from it.

::

    DupwatchError
    ├── BadRecord            this record only: it becomes a dead letter, its neighbours go on
    ├── Abandoned            this batch only: it belongs to another consumer now, or will be read again
    │   └── OutcomeUnknown   the same, but it may have been committed: only the brokers know
    └── Fatal             1  this run: say why in one sentence, exit with the error's code, commit nothing
        ├── ConfigError      2  a wrong option or configuration
        ├── SourceError      3  the input cannot be read
        ├── StoreMismatch    4  the store was made with other settings, or is no store
        ├── StoreBroken      5  the store failed: disk full, out of reach
        ├── SinkError        6  verdicts or dead letters cannot be written
        └── TooManyDeadLetters  7  too many records of a file or a stream cannot be judged

What a store raises (``storage.errors``) is turned into one of these in ``app``. Every other exception is a defect: exit
code 1, with its traceback.
"""

from typing import ClassVar


class DupwatchError(Exception):
    """The root; its message is a sentence for a person that says what to do."""


class BadRecord(DupwatchError):  # noqa: N818  # named for the record, which is at fault
    """A record that cannot be judged. ``reason`` is one of a fixed list, ``detail`` a sentence."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Abandoned(DupwatchError):  # noqa: N818  # named for the batch, which is nobody's fault
    """The batch at hand is given up: nothing of it is committed here, and whoever has its partitions reads it again."""


class NotBegun(DupwatchError):  # noqa: N818  # nothing is wrong
    """The run was asked to stop before it had begun."""


class OutcomeUnknown(Abandoned):
    """Nobody knows whether the batch was committed: the source goes on where the brokers say that the group is."""


class Fatal(DupwatchError):  # noqa: N818  # a kind of error, as its subclasses say
    """The run cannot go on."""

    exit_code: ClassVar[int] = 1


class ConfigError(Fatal):
    """An option or a setting is wrong."""

    exit_code = 2


class SourceError(Fatal):
    """The input cannot be read."""

    exit_code = 3


class StoreMismatch(Fatal):
    """The store was made with other settings or another layout, or is no store."""

    exit_code = 4


class StoreBroken(Fatal):
    """The store failed, or is out of reach."""

    exit_code = 5


class SinkError(Fatal):
    """Verdicts or dead letters cannot be written."""

    exit_code = 6


class TooManyDeadLetters(Fatal):
    """Too many records of a file or a stream cannot be judged: the feed is not what the run takes it for."""

    exit_code = 7
