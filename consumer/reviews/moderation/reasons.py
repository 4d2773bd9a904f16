"""Reasons for *wrong*, chosen from a short list that admins maintain.

The list starts empty: reasons are plain text in one language, and each newsroom has its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, func, insert, select, update

from consumer.model.errors import DupwatchError
from consumer.reviews.portable import Lock, acquire_lock, is_storable
from consumer.reviews.tables import REASONS
from consumer.text.names import name_key

REASONS_MAX: Final = 20
"""The maximum number of reasons to choose from. Reading a longer list takes longer than writing a note."""
RETIRED_MAX: Final = 200
"""The maximum number of retired reasons, which are kept because decisions name them."""
REASON_CHARS_MAX: Final = 80
# Built once: pages of flags execute it.
_IN_ORDER: Final = select(REASONS.c.reason_id, REASONS.c.name, REASONS.c.retired_ms.is_not(None)).order_by(
    REASONS.c.retired_ms.is_not(None), REASONS.c.place, REASONS.c.reason_id
)


@dataclass(frozen=True, slots=True)
class ReviewReason:
    """A reason. A retired one can no longer be chosen, but remains in the decisions that name it."""

    reason_id: int
    name: str
    is_retired: bool


class ReasonError(DupwatchError):
    """A reason cannot be added or changed. The message says why."""


class ReasonTaken(ReasonError):  # noqa: N818  # named for the reason
    """Another reason, perhaps a retired one, has this name, or one with the same ``name_key``."""


class ReasonsFull(ReasonError):  # noqa: N818  # named for the list
    """The list of reasons, or of retired reasons, is full."""


class ReasonRetired(ReasonError):  # noqa: N818  # named for the reason
    """A retired reason cannot be given for a new decision."""


class ReasonMissing(ReasonError):  # noqa: N818  # named for the reason
    """No reason has this number."""


def reasons(connection: Connection) -> list[ReviewReason]:
    """Return all reasons in the order of the list, retired ones last."""
    return [
        ReviewReason(reason_id, name, bool(is_retired)) for reason_id, name, is_retired in connection.execute(_IN_ORDER)
    ]


def choices(connection: Connection) -> list[ReviewReason]:
    """Return the reasons that can be chosen, in order."""
    return [reason for reason in reasons(connection) if not reason.is_retired]


def reason_numbered(connection: Connection, reason_id: int) -> ReviewReason:
    """Return a reason, retired or not. Raises ``ReasonMissing``."""
    for reason in reasons(connection):
        if reason.reason_id == reason_id:
            return reason
    raise ReasonMissing(f"there is no reason with the number {reason_id}")


def choice_numbered(connection: Connection, reason_id: int) -> ReviewReason:
    """Return a reason that can be chosen. Raises ``ReasonMissing`` and ``ReasonRetired``."""
    reason = reason_numbered(connection, reason_id)
    if reason.is_retired:
        raise ReasonRetired(f"the reason {reason.name} is retired")
    return reason


def with_note(reason: str | None, note: str) -> str:
    """Return a reason and a note as one text. Either may be missing."""
    return ": ".join(text for text in (reason, note) if text)


def add_reason(connection: Connection, name: str) -> ReviewReason:
    """Add a reason at the end of the list. Raises ``ReasonError`` for an invalid or known name, or a full list."""
    acquire_lock(connection, Lock.REASONS)
    known = reasons(connection)
    _check_name(known, name)
    _check_room(known, is_retired=False)
    values = {"name": name, "place": _last_place(connection) + 1}
    reason_id = connection.execute(insert(REASONS).values(values).returning(REASONS.c.reason_id)).scalar_one()
    return ReviewReason(reason_id, name, is_retired=False)


def rename_reason(connection: Connection, reason_id: int, name: str) -> None:
    """Rename a reason, also in decisions that name it. Raises ``ReasonError`` for an invalid or known name.

    Raises ``ReasonMissing`` for an unknown number.
    """
    acquire_lock(connection, Lock.REASONS)
    _check_name([reason for reason in reasons(connection) if reason.reason_id != reason_id], name)
    _change(connection, reason_id, name=name)


def retire_reason(connection: Connection, reason_id: int, now_ms: int) -> None:
    """Retire a reason. Raises ``ReasonMissing``, and ``ReasonsFull`` if there are too many retired reasons."""
    acquire_lock(connection, Lock.REASONS)
    if not reason_numbered(connection, reason_id).is_retired:
        _check_room(reasons(connection), is_retired=True)
        _change(connection, reason_id, retired_ms=now_ms)


def restore_reason(connection: Connection, reason_id: int) -> None:
    """Put a retired reason back at the end of the list. Raises ``ReasonMissing`` and ``ReasonsFull``."""
    acquire_lock(connection, Lock.REASONS)
    if reason_numbered(connection, reason_id).is_retired:
        _check_room(reasons(connection), is_retired=False)
        _change(connection, reason_id, retired_ms=None, place=_last_place(connection) + 1)


def move_reason(connection: Connection, reason_id: int, step: int) -> None:
    """Move a reason up (-1) or down (1) by one place, unless it is at that end or retired. Raises ``ReasonMissing``."""
    acquire_lock(connection, Lock.REASONS)
    reason_numbered(connection, reason_id)
    order = [reason.reason_id for reason in choices(connection)]
    if reason_id not in order:
        return
    place = order.index(reason_id)
    order.insert(max(0, place + step), order.pop(place))
    for number, each in enumerate(order):
        _change(connection, each, place=number)


def _check_name(others: Sequence[ReviewReason], name: str) -> None:
    if not name or len(name) > REASON_CHARS_MAX or not is_storable(name):
        raise ReasonError(f"a reason must have 1 to {REASON_CHARS_MAX} characters of valid UTF-8, without NUL")
    if any(name_key(reason.name) == name_key(name) for reason in others):
        raise ReasonTaken(f"a reason named {name} already exists; choose another name")


def _check_room(known: Sequence[ReviewReason], *, is_retired: bool) -> None:
    if sum(reason.is_retired == is_retired for reason in known) >= (RETIRED_MAX if is_retired else REASONS_MAX):
        raise ReasonsFull("the list of reasons is full")


def _last_place(connection: Connection) -> int:
    return connection.execute(select(func.max(REASONS.c.place))).scalar() or 0


def _change(connection: Connection, reason_id: int, **values: object) -> None:
    changed = connection.execute(update(REASONS).where(REASONS.c.reason_id == reason_id).values(**values))
    if not changed.rowcount:
        raise ReasonMissing(f"there is no reason with the number {reason_id}")
