"""Access control: each route that needs a role has a dependency that names the roles that may use it.

With a token file, a request needs a token (RFC 6750) with one of the roles. Without a token file, only programs on
this machine can connect, and they have all roles. ``consumer.web.front`` checks host names for all routes.
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

CallerLookup = Callable[[str], Caller | TokenRefusal]
"""Returns the caller who sent a secret, or the refusal. The event loop calls it, so it must not block."""
RoleName = Literal["reader", "writer", "reviewer", "admin"]

_SCHEME: Final = "bearer"
_CHALLENGE: Final = 'Bearer realm="dupwatch"'
_RETRY_S: Final = 5
"""The time after which a client should retry while tokens cannot be checked."""


class TokenAuthentication:
    """The check of tokens and roles. ``caller_of`` is None if no token is needed."""

    def __init__(self, caller_of: CallerLookup | None) -> None:
        self._caller_of = caller_of

    @property
    def needs_token(self) -> bool:
        """Whether requests need a token."""
        return self._caller_of is not None

    def authenticate(self, request: Request, roles: Sequence[Role]) -> None:
        """Check the token of a request. Store its caller in ``request.state.caller``: None without a token file.

        Raises ``ProblemError`` if the token is missing or refused, or if the caller has none of the roles. The reason
        is stored in ``request.state.refused``, for the log only: the client must not learn whether a secret is unknown,
        expired or revoked.
        """
        state = request.state
        state.caller = None
        if self._caller_of is None:
            return
        secret = _secret_of(request)
        if secret is None:
            state.refused = "missing"
            raise _unauthorized(
                "The token is missing. Send it in the header Authorization, after the word Bearer.", _CHALLENGE
            )
        caller_or_refusal = self._caller_of(secret)
        if isinstance(caller_or_refusal, TokenRefusal):
            state.refused, state.token = caller_or_refusal
            raise _refusal(caller_or_refusal)
        state.caller, state.token = caller_or_refusal, caller_or_refusal.name
        check_roles(request, roles)


@dataclass(frozen=True, slots=True)
class RoleRequirement:
    """The dependency of a route that only these roles may use. FastAPI calls it before the body is received."""

    roles: tuple[Role, ...]

    async def __call__(self, request: Request) -> None:
        """Authenticate the request. Raises ``ProblemError``."""
        authentication: TokenAuthentication = request.app.state.authentication
        authentication.authenticate(request, self.roles)


def require_role(*roles: RoleName) -> RoleRequirement:
    """Return the dependency of a route that only these roles may use; one of them is enough."""
    return RoleRequirement(tuple(map(Role, roles)))


def check_roles(request: Request, roles: Sequence[Role]) -> None:
    """Raise ``ProblemError`` if the caller has none of these roles. Without a token file, every caller has all roles.

    The request must be authenticated. A route calls this itself if the role depends on the content of the request.
    """
    caller: Caller | None = request.state.caller
    if caller is None or not caller.roles.isdisjoint(roles):
        return
    request.state.refused = "role"
    raise ProblemError(
        FORBIDDEN,
        f"This needs a token with the role {' or '.join(roles)}. Ask whoever runs the service for one.",
        headers={"WWW-Authenticate": f'{_CHALLENGE}, error="insufficient_scope", scope="{" ".join(roles)}"'},
    )


def roles_of(routers: Iterable[APIRouter]) -> Iterator[tuple[str, str, tuple[Role, ...]]]:
    """Yield the path, the method and the roles of each route that needs a role, once for each method."""
    for router in routers:
        for route in router.routes:
            if isinstance(route, APIRoute):
                for each in route.dependant.dependencies:
                    if isinstance(each.call, RoleRequirement):
                        yield from ((route.path, method, each.call.roles) for method in sorted(route.methods or ()))


def _secret_of(request: Request) -> str | None:
    """Return the secret that was sent, valid or not; None if there is none.

    Two headers count as an invalid secret: a proxy in front may have checked only one of them.
    """
    headers = request.headers.getlist("authorization")
    schemes = [value.partition(" ")[0].lower() for value in headers]
    if _SCHEME not in schemes:
        return None
    return headers[0].partition(" ")[2].strip(" ") if len(headers) == 1 else ""


def _refusal(refusal: TokenRefusal) -> ProblemError:
    if refusal.reason == "unchecked":
        return retry_later(
            UNCHECKED, "The token file cannot be read. Try again after the seconds in Retry-After.", _RETRY_S
        )
    return _unauthorized(
        "The token is not valid: it is unknown, expired or revoked. Ask whoever runs the service for another one.",
        f'{_CHALLENGE}, error="invalid_token"',
    )


def _unauthorized(detail: str, challenge: str) -> ProblemError:
    return ProblemError(UNAUTHORIZED, detail, headers={"WWW-Authenticate": challenge})
