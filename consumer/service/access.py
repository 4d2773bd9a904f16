"""Who may ask for what: a dependency of each route names the roles of which it needs one.

With a token file a request needs a token (RFC 6750) that has the role. Without one only programs of this machine can
connect, and they have every role. Host names are checked for all routes at once (``consumer.web.front``).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request

from consumer.service.problems import FORBIDDEN, UNAUTHORIZED, UNCHECKED
from consumer.web.problems import ProblemError, retry_later
from consumer.web.token import Caller, Role, TokenRefusal

CallerOf = Callable[[str], Caller | TokenRefusal]
"""Finds out who sends a secret. It is called by the event loop, so it waits for nothing."""
RoleName = Literal["reader", "writer", "reviewer", "admin"]

_SCHEME: Final = "bearer"
_CHALLENGE: Final = 'Bearer realm="dupwatch"'
_RETRY_S: Final = 5
"""When a client should try again while tokens cannot be checked."""


class TokenAuthentication:
    """Lets requests in. ``caller_of`` is None where no token is needed."""

    def __init__(self, caller_of: CallerOf | None) -> None:
        self._caller_of = caller_of

    @property
    def needs_token(self) -> bool:
        """Whether requests need a token."""
        return self._caller_of is not None

    def let_in(self, request: Request, roles: Sequence[Role]) -> None:
        """Note who asks as ``caller`` of the request's state: None without tokens.

        Raises ``ProblemError`` if the caller has none of the roles, and notes why as ``refused``, for the log alone: a
        client is not told whether a secret is unknown, expired or revoked.
        """
        state = request.state
        state.caller = None
        if self._caller_of is None:
            return
        secret = _secret_of(request)
        if secret is None:
            state.refused = "missing"
            raise _unauthorized("Send a token in the header Authorization, behind the word Bearer.", _CHALLENGE)
        found = self._caller_of(secret)
        if isinstance(found, TokenRefusal):
            state.refused, state.token = found
            raise _refusal(found)
        state.caller, state.token = found, found.name
        check_roles(request, roles)


@dataclass(frozen=True, slots=True)
class RoleRequirement:
    """The dependency of a route that only these roles may ask for. It is called before a body is received."""

    roles: tuple[Role, ...]

    async def __call__(self, request: Request) -> None:
        """Let the request in. Raises ``ProblemError``."""
        entrance: TokenAuthentication = request.app.state.entrance
        entrance.let_in(request, self.roles)


def allowed(*roles: RoleName) -> RoleRequirement:
    """Return the dependency of a route that only these roles may ask for; one of them is enough."""
    return RoleRequirement(tuple(map(Role, roles)))


def check_roles(request: Request, roles: Sequence[Role]) -> None:
    """Raise ``ProblemError`` if the caller has none of these roles; without tokens, every caller has all.

    The caller was let in before. A route may need another role for what a request names.
    """
    caller: Caller | None = request.state.caller
    if caller is None or not caller.roles.isdisjoint(roles):
        return
    request.state.refused = "role"
    raise ProblemError(
        FORBIDDEN,
        f"This needs a token with the role {' or '.join(roles)}. Ask who runs the service for one.",
        headers={"WWW-Authenticate": f'{_CHALLENGE}, error="insufficient_scope", scope="{" ".join(roles)}"'},
    )


def roles_of(routers: Iterable[APIRouter]) -> Iterator[tuple[str, str, tuple[Role, ...]]]:
    """Yield path, method and roles of each route that needs one."""
    for router in routers:
        for route in router.routes:
            if isinstance(route, APIRoute):
                for each in route.dependant.dependencies:
                    if isinstance(each.call, RoleRequirement):
                        yield from ((route.path, method, each.call.roles) for method in sorted(route.methods or ()))


def _secret_of(request: Request) -> str | None:
    """Return what was sent as a secret, whatever it is; None where there is nothing of the kind.

    Of two headers a proxy may have looked at the other one, so both together are no secret.
    """
    sent = request.headers.getlist("authorization")
    schemes = [value.partition(" ")[0].lower() for value in sent]
    if _SCHEME not in schemes:
        return None
    return sent[0].partition(" ")[2].strip(" ") if len(sent) == 1 else ""


def _refusal(refusal: TokenRefusal) -> ProblemError:
    if refusal.reason == "unchecked":
        return retry_later(
            UNCHECKED, "The token file cannot be read. Try again after the seconds in Retry-After.", _RETRY_S
        )
    return _unauthorized(
        "The token is not valid: it is unknown, expired or revoked. Ask who runs the service for another one.",
        f'{_CHALLENGE}, error="invalid_token"',
    )


def _unauthorized(detail: str, challenge: str) -> ProblemError:
    return ProblemError(UNAUTHORIZED, detail, headers={"WWW-Authenticate": challenge})
