"""Logs on standard error: lines of JSON for programs, or text for people.

All lines, also those of librdkafka, go through the standard library's logging. Names of fields come from the code, but
values, such as the id of an article, may come from a feed. So values are cut, and cannot end their line, control a
terminal or add a field. Bodies are never logged.
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

from consumer.text.redaction import redacted
from consumer.text.timestamps import rfc3339
from consumer.text.visible import escaped

Format = Literal["auto", "json", "text"]
Level = Literal["debug", "info", "warning", "error"]

PROGRAM: Final = "dupwatch"
MESSAGE_CHARS_MAX: Final = 8_000
"""The maximum length of a message, enough for the stack of a thread."""
FIELD_CHARS_MAX: Final = 300
ITEMS_MAX: Final = 50
STACK_CHARS_MAX: Final = 16_000
ERROR_CHARS_MAX: Final = 1_000
_FRAMES_MAX: Final = 40
_LINE_CHARS_MAX: Final = 500
_CONTINUED: Final = "\n         | "
_COLOURS: Final = {"DEBUG": "2", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}
_STANDARD_ATTRIBUTES: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""The attributes of every record of the standard library. All others are fields given with ``extra``."""

Plain = str | int | float | bool | list["Plain"] | None


def set_up(form: Format = "auto", level: Level | None = None, *, is_service: bool = False) -> None:
    """Set up logging to standard error. A second call replaces the first.

    The default level is info for a service, which writes nothing else, and warning for a command. Records of other
    libraries are written from level warning on.
    """
    is_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    handler = _StandardError(
        JsonFormatter() if is_json else TextFormatter(), for_people=not is_json or (form == "auto" and not is_service)
    )
    root = logging.getLogger()
    for previous in [found for found in root.handlers if isinstance(found, _StandardError)]:
        root.removeHandler(previous)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger(PROGRAM).setLevel((level or ("info" if is_service else "warning")).upper())
    # By default, an uncaught error of a thread prints lines in another format, with any secrets that the error quotes.
    threading.excepthook = _log_failed_thread


def tells_people() -> bool:
    """Return whether standard error may have text for people, such as tables, in addition to log lines."""
    ours = [handler for handler in logging.getLogger().handlers if isinstance(handler, _StandardError)]
    return all(handler.for_people for handler in ours)


class JsonFormatter(logging.Formatter):
    """Formats a record as one line: ``time``, ``level``, ``logger``, ``thread``, ``message``, fields, ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without a line end."""
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


class TextFormatter(logging.Formatter):
    """Formats a record as text for people. Further lines of a message are indented and begin with a bar."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, or the lines."""
        name = record.levelname
        colour = _COLOURS.get(name, "")
        shown = f"\x1b[{colour}m{name:<8}\x1b[0m" if colour and _has_colours() else f"{name:<8}"
        text = _message(record)
        for field, value in fields_of(record):
            text += f"  {field}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        if record.exc_info and record.exc_info[1] is not None:
            text += f"\n{_stack(record.exc_info[1])}"
        return f"{shown} {_CONTINUED.join(text.rstrip().split(chr(10)))}"


def fields_of(record: logging.LogRecord) -> Iterator[tuple[str, Plain]]:
    """Yield the fields given with ``extra``, cut and escaped."""
    for name, value in vars(record).items():
        if name not in _STANDARD_ATTRIBUTES:
            yield name, _plain(value)


class _StandardError(logging.Handler):
    """A handler for the current standard error. It writes each record with one call, so that lines do not mix."""

    def __init__(self, formatter: logging.Formatter, *, for_people: bool) -> None:
        super().__init__()
        self.for_people = for_people
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record. If that fails, drop the record."""
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()


def _message(record: logging.LogRecord) -> str:
    try:
        message = record.getMessage()
    except (TypeError, ValueError):
        message = str(record.msg)
    return escaped(redacted(message), MESSAGE_CHARS_MAX, "\n")


def _plain(value: object) -> Plain:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in list(value)[:ITEMS_MAX]]
    return escaped(redacted(str(value)), FIELD_CHARS_MAX)


def _stack(error: BaseException) -> str:
    trace = traceback.TracebackException.from_exception(error, limit=-_FRAMES_MAX, compact=True)
    # Redact the whole text, because a secret may have several lines.
    lines = [escaped(line, _LINE_CHARS_MAX) for line in redacted("".join(trace.format())).splitlines()]
    text = "\n".join(lines)
    # The end names the error.
    return text if len(text) <= STACK_CHARS_MAX else f"…{text[-STACK_CHARS_MAX:]}"


def _has_colours() -> bool:
    return sys.stderr.isatty() and "NO_COLOR" not in os.environ


def _log_failed_thread(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is not None:
        name = "" if failed.thread is None else failed.thread.name
        logging.getLogger(PROGRAM).critical("Thread %s failed", name, exc_info=failed.exc_value)
