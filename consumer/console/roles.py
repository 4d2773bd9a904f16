"""The routes: each names the role that it needs, here and nowhere else.

A reviewer looks and decides, an admin also sees to people and reads the audit log. ``OpenRoute`` is for what people
need before they are signed in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from consumer.console.visit import Answer, Asked, Visit

RoleName = Literal["reviewer", "admin"]
Method = Literal["GET", "POST"]

_MAY: Final[dict[RoleName, frozenset[RoleName]]] = {
    "reviewer": frozenset({"reviewer"}),
    "admin": frozenset({"reviewer", "admin"}),
}


@dataclass(frozen=True, slots=True)
class Route:
    """A path that a person with this role may ask for. ``answer`` runs in a thread and may wait for the database.

    A POST has been sent by a form of this console: where it comes from, and its token, are checked before.
    """

    method: Method
    path: str
    role: RoleName
    answer: Callable[[Asked], Answer]


@dataclass(frozen=True, slots=True)
class OpenRoute:
    """A path that everybody may ask for; a POST is checked in the same way."""

    method: Method
    path: str
    answer: Callable[[Visit], Answer]


def may(role: str, needed: RoleName) -> bool:
    """Return whether somebody with this role may do what needs another one."""
    return any(role == name and needed in may_be for name, may_be in _MAY.items())
