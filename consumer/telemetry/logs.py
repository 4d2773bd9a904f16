"""What the program tells of itself while it runs, on standard error: lines of JSON for programs, or text for people.

The standard library's logging carries it, librdkafka's lines too. Names of fields come from the code, and values from
wherever: so a value may be an article's id, and is cut, and cannot end its line, steer a terminal or become a field.
Bodies are never logged.
"""

import logging
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, Literal

import msgspec

from consumer.judge.events import rfc3339
from consumer.text.redaction import redacted
from consumer.text.visible import escaped

Format = Literal["auto", "json", "text"]
Level = Literal["debug", "info", "warning", "error"]

PROGRAM: Final = "dupwatch"
MESSAGE_CHARS_MAX: Final = 8_000
"""Room for the stack of a thread."""
FIELD_CHARS_MAX: Final = 300
ITEMS_MAX: Final = 50
STACK_CHARS_MAX: Final = 16_000
ERROR_CHARS_MAX: Final = 1_000
_FRAMES_MAX: Final = 40
_LINE_CHARS_MAX: Final = 500
_CONTINUED: Final = "\n         | "
_COLOURS: Final = {"DEBUG": "2", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record of the standard library has; the rest are fields that somebody gave."""

Plain = str | int | float | bool | list["Plain"] | None


def set_up(form: Format = "auto", level: Level | None = None, *, is_service: bool = False) -> None:
    """Log so from now on. A service's level is info where none is given, and all that it says is a log."""
    is_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    handler = _StandardError(
        JsonLines() if is_json else Text(), for_people=not is_json or (form == "auto" and not is_service)
    )
    root = logging.getLogger()
    for one in [one for one in root.handlers if isinstance(one, _StandardError)]:
        root.removeHandler(one)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger(PROGRAM).setLevel((level or ("info" if is_service else "warning")).upper())
    # What nobody catches would be lines of another kind among these, with whatever secrets it quotes.
    threading.excepthook = _thread_failed


def tells_people() -> bool:
    """Whether sentences and tables for people may stand on standard error; else all there has to be lines of a log."""
    ours = [one for one in logging.getLogger().handlers if isinstance(one, _StandardError)]
    return all(one.for_people for one in ours)


class JsonLines(logging.Formatter):
    """A record as one line: ``time``, ``level``, ``logger``, ``thread``, ``message``, its own fields, ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        line: dict[str, object] = {
            "time": rfc3339(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "thread": record.threadName,
            "message": _message(record),
        }
        for name, value in fields_of(record):
            line.setdefault(name, value)
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["exception"] = {
                "type": type(error).__name__,
                "text": escaped(redacted(str(error)), ERROR_CHARS_MAX, "\n"),
                "stack": _stack(error),
            }
        return msgspec.json.encode(line).decode()


class Text(logging.Formatter):
    """A record as people read it; what follows the first line of a message is set in, and begins with a bar."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, or lines."""
        name = record.levelname
        colour = _COLOURS.get(name, "")
        shown = f"\x1b[{colour}m{name:<8}\x1b[0m" if colour and _has_colours() else f"{name:<8}"
        told = _message(record)
        for field, value in fields_of(record):
            told += f"  {field}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        if record.exc_info and record.exc_info[1] is not None:
            told += f"\n{_stack(record.exc_info[1])}"
        return f"{shown} {_CONTINUED.join(told.rstrip().split(chr(10)))}"


def fields_of(record: logging.LogRecord) -> Iterator[tuple[str, Plain]]:
    """What was given with ``extra``, fit to be shown."""
    for name, value in vars(record).items():
        if name not in _OWN:
            yield name, _plain(value)


class _StandardError(logging.Handler):
    """Writes to what standard error is at the moment, a record with one call: threads do not mix their lines."""

    def __init__(self, formatter: logging.Formatter, *, for_people: bool) -> None:
        super().__init__()
        self.for_people = for_people
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        """Write it; where that cannot be done the run goes on without."""
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()


def _message(record: logging.LogRecord) -> str:
    try:
        told = record.getMessage()
    except (TypeError, ValueError):
        told = str(record.msg)
    return escaped(redacted(told), MESSAGE_CHARS_MAX, "\n")


def _plain(value: object) -> Plain:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(one) for one in list(value)[:ITEMS_MAX]]
    return escaped(redacted(str(value)), FIELD_CHARS_MAX)


def _stack(error: BaseException) -> str:
    told = traceback.TracebackException.from_exception(error, limit=-_FRAMES_MAX, compact=True)
    # All of it at once: a secret may have several lines.
    lines = [escaped(line, _LINE_CHARS_MAX) for line in redacted("".join(told.format())).splitlines()]
    text = "\n".join(lines)
    # The end names the error.
    return text if len(text) <= STACK_CHARS_MAX else f"…{text[-STACK_CHARS_MAX:]}"


def _has_colours() -> bool:
    return sys.stderr.isatty() and "NO_COLOR" not in os.environ


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is not None:
        name = "" if failed.thread is None else failed.thread.name
        logging.getLogger(PROGRAM).critical("The thread %s has failed", name, exc_info=failed.exc_value)
