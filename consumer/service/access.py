"""Who may ask for what: one dependency for each route names the role that it needs.

Only programs of this machine can connect, and they have every role; host names are checked for all routes at once
(``consumer.service.front``).
"""

from collections.abc import Callable
from typing import Literal

from starlette.requests import Request

Role = Literal["reader"]
"""``reader``: checks, and reads what is stored."""


def allowed(role: Role) -> Callable[[Request], None]:
    """Return the dependency of a route that only this role may ask for."""

    def check(request: Request) -> None:
        request.state.role = role

    return check
