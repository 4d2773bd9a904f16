"""Answers one path: who asks, whether they may, and what goes wrong becomes a page.

A reviewer looks and decides, an admin also manages people and reads the audit log. ``OpenRoute`` is for what people
need before they are signed in.
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from consumer.banks.bank import BankError, ChangeUnknown
from consumer.console.authentication import Proxies, RequestSender, SessionAuthentication
from consumer.console.context import ConsoleContext
from consumer.console.faults import N_, TITLES, PageError, not_found, page_error
from consumer.console.form_pages import CORRECTABLE, FormPages
from consumer.console.i18n import chosen
from consumer.console.session import TOKEN_FIELD, check_origin, session_of
from consumer.console.visit import (
    FORM_BYTES_MAX,
    INTEGER_MAX,
    Answer,
    Fields,
    SignedInVisit,
    StreamedResponse,
    Visit,
    fields_of,
    received_form,
)
from consumer.model.errors import StoreMismatch
from consumer.reviews.database import DatabaseUnavailable
from consumer.reviews.paging import BadCursor
from consumer.reviews.people import Person, Role
from consumer.web.front import AnswerCutOff
from consumer.web.problems import ProblemError, defect
from consumer.web.request_threads import Workers
from storage.errors import StoreError

log = logging.getLogger("dupwatch")

AWAY_RETRY_S: Final = 5
"""When to try again while the database or the store is away."""


Method = Literal["GET", "POST"]

_MAY: Final[Mapping[Role, frozenset[Role]]] = {
    "reviewer": frozenset({"reviewer"}),
    "admin": frozenset({"reviewer", "admin"}),
}


@dataclass(frozen=True, slots=True)
class Route:
    """A path that a person with this role may ask for. ``answer`` runs in a thread and may wait for the database.

    A POST has been sent by a form of this console: where it comes from, and its token, are checked before.
    ``of_banks``: the thread of the banks answers. Unless ``is_use``, pages ask by themselves, and no session is kept
    alive. Only somebody who is signed in may send a form of more than ``FORM_BYTES_MAX``.
    """

    method: Method
    path: str
    role: Role
    answer: Callable[[SignedInVisit], Answer]
    of_banks: bool = False
    is_use: bool = True
    form_bytes_max: int = FORM_BYTES_MAX


@dataclass(frozen=True, slots=True)
class OpenRoute:
    """A path that everybody may ask for; a POST is checked in the same way."""

    method: Method
    path: str
    answer: Callable[[Visit], Answer]


@dataclass(frozen=True, slots=True)
class ConsoleFront:
    """The parts that answer requests. ``is_tls``: this process itself has the certificate.

    ``identity`` is that of the database.
    """

    desk: ConsoleContext
    workers: Workers
    entrance: SessionAuthentication
    proxies: Proxies
    is_tls: bool
    identity: str
    pages: FormPages

    def workers_for(self, route: "Route | OpenRoute") -> Workers:
        """Return the threads that answer a route."""
        banks = self.desk.banks
        return banks.workers if isinstance(route, Route) and route.of_banks and banks is not None else self.workers

    def visit(self, request: Request) -> Visit:
        """Return a request of somebody of whom nothing is known yet."""
        code = chosen(None, self.desk.section.language, request.headers.get("accept-language", ""))
        is_secure = self.proxies.is_secure(request, is_tls=self.is_tls)
        return Visit(
            desk=self.desk,
            request_id=request.state.request_id,
            path=request.url.path,
            address=self.proxies.client(request),
            language=self.desk.rendering.language(code),
            session=session_of(request, self.identity, is_secure=is_secure),
            places=request.scope.get("path_params", {}),
        )

    def problem_page(self, request: Request, problem: ProblemError) -> Response:
        """Return the page of a problem that came before anybody was known."""
        return self.error_page(request, self.visit(request), page_error(problem))

    def error_page(self, request: Request, visit: Visit, error: PageError) -> Response:
        """Return the page of an error; ``Front`` counts the limit that it names."""
        if error.limit is not None:
            request.state.limit = error.limit
        language = visit.language
        title = TITLES[error.status]
        if error.status == HTTPStatus.BAD_REQUEST and visit.signed_in is not None:
            # It was read, and says something that cannot be.
            title = N_("Not done") if request.method == "POST" else N_("This page cannot be shown")
        response = visit.page(
            "error.html",
            status=error.status,
            title=language.gettext(title),
            back=self.pages.address(request) if error.status in CORRECTABLE else None,
            message=error.said(language),
            offers_sign_in=error.offers_sign_in,
        )
        response.headers.update(error.headers)
        return response


class _StreamStart(NamedTuple):
    """An answer that is made piece by piece, its first piece, and what the next one is made from."""

    streamed: StreamedResponse
    first: bytes
    after: str | None


_Made = Response | _StreamStart


class RouteEndpoint:
    """An ASGI application that answers one path, by method."""

    def __init__(self, console: ConsoleFront, routes: Sequence[Route | OpenRoute]) -> None:
        self._console = console
        self._path = routes[0].path
        self._routes: Mapping[str, Route | OpenRoute] = {route.method: route for route in routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        scope["state"]["route"] = self._path
        request = Request(scope, receive)
        response = await self._answer(request)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        visit = self._console.visit(request)
        try:
            route = self._route(request)
            query, fault = _readable(request.scope["query_string"])
            visit = replace(visit, query=query)
            arrival = self._console.entrance.arrival(request, visit.session.secret)
            if route.method == "POST":
                check_origin(request, is_secure=visit.session.is_secure)
                bytes_max = await self._form_bytes_max(route, arrival)
                data = await received_form(request, self._console.desk.section.receive_s, bytes_max)
                form, fault_of_form = _readable(data)
                visit, fault = replace(visit, form=form), fault or fault_of_form
            # While it is worked on, its connection is not closed in favour of another one.
            request.state.connection_is_needed = True
            workers = self._console.workers_for(route)
            answer = await workers.call(partial(self._answered, request, route, visit, arrival, fault))
            if isinstance(answer, _StreamStart):
                return self._streamed(answer, visit.request_id)
        except PageError as error:
            return self._console.error_page(request, visit, error)
        except ProblemError as problem:
            return self._console.error_page(request, visit, page_error(problem, changes=request.method == "POST"))
        return answer

    async def _form_bytes_max(self, route: Route | OpenRoute, arrival: RequestSender) -> int:
        """Return how large a form may be; strangers must not fill the memory with large ones."""
        if isinstance(route, OpenRoute) or route.form_bytes_max <= FORM_BYTES_MAX:
            return FORM_BYTES_MAX

        def is_known() -> bool:
            try:
                return self._console.entrance.person(arrival) is not None
            except (PageError, DatabaseUnavailable):
                # The answer will say it.
                return False

        return route.form_bytes_max if await self._console.workers.call(is_known) else FORM_BYTES_MAX

    def _route(self, request: Request) -> Route | OpenRoute:
        if any(isinstance(value, int) and value > INTEGER_MAX for value in request.path_params.values()):
            raise not_found()
        route = self._routes.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            allowed = ", ".join([*self._routes, *(["HEAD"] if "GET" in self._routes else [])])
            message = N_("This address is for forms of this console only, or has none. Go back to the queue.")
            raise PageError(HTTPStatus.METHOD_NOT_ALLOWED, message, headers={"Allow": allowed})
        return route

    def _answered(
        self, request: Request, route: Route | OpenRoute, visit: Visit, arrival: RequestSender, fault: PageError | None
    ) -> _Made:
        """Answer, in a thread. What is foreseen, as a ``fault``, becomes a page for the person who is signed in."""
        answer: _Made
        try:
            person = self._console.entrance.person(arrival, is_use=not isinstance(route, Route) or route.is_use)
            if person is not None:
                request.state.person = person.name
                visit = self._of_person(request, visit, person)
            answer = _begun(self._allowed(route, visit, fault), has_body=request.method != "HEAD")
        except PageError as error:
            answer = self._console.error_page(request, visit, error)
        except DatabaseUnavailable as error:
            log.warning("A page cannot be made: %s", error, extra={"request_id": visit.request_id})
            message = N_("The database of the console does not answer. Try again in some seconds.")
            answer = self._console.error_page(request, visit, _away(message))
        except BadCursor:
            message = N_("This address leads to no page of a list. Begin at the first page.")
            answer = self._console.error_page(request, visit, PageError(HTTPStatus.BAD_REQUEST, message))
        except BankError as error:
            log.warning("The banks do not answer: %s", error, extra={"request_id": visit.request_id})
            answer = self._console.error_page(request, visit, _banks_away(error))
        except (StoreError, StoreMismatch) as error:
            log.warning("The store does not answer: %s", error, extra={"request_id": visit.request_id})
            message = N_("The store with the texts does not answer. Try again in some seconds.")
            answer = self._console.error_page(request, visit, _away(message))
        except Exception:
            log.exception("A page of the console failed", extra={"request_id": visit.request_id})
            answer = self._console.error_page(request, visit, page_error(defect()))
        if isinstance(answer, Response):
            visit.session.keep(answer)
        return answer

    def _of_person(self, request: Request, visit: Visit, person: Person) -> SignedInVisit:
        desk = self._console.desk
        code = chosen(person.language, desk.section.language, request.headers.get("accept-language", ""))
        given: dict[str, Any] = {each.name: getattr(visit, each.name) for each in fields(visit)}
        return SignedInVisit(**{**given, "language": desk.rendering.language(code)}, person=person)

    def _allowed(self, route: Route | OpenRoute, visit: Visit, fault: PageError | None) -> Answer:
        """Answer where that is allowed. Raises ``PageError``, and the fault where the request has one."""
        if fault is not None:
            raise fault
        if isinstance(route, Route):
            if not isinstance(visit, SignedInVisit):
                return _to_sign_in(route, visit)
            if route.role not in _MAY.get(visit.person.role, frozenset()):
                message = N_("This needs the role of an admin. Ask an admin of this console.")
                raise PageError(HTTPStatus.FORBIDDEN, message)
        if route.method == "POST":
            visit.session.check_token(visit.form.text(TOKEN_FIELD))
        if isinstance(route, OpenRoute):
            return route.answer(visit)
        assert isinstance(visit, SignedInVisit)  # noqa: S101  # as above
        return route.answer(visit)

    def _streamed(self, begun: _StreamStart, request_id: str) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            yield begun.first
            last = begun.after
            while last is not None:
                try:
                    data, last = await self._console.workers.call(partial(begun.streamed.piece, last))
                except DatabaseUnavailable as error:
                    log.warning("%s is cut off: %s", begun.streamed.filename, error, extra={"request_id": request_id})
                    raise AnswerCutOff from error
                yield data

        return StreamingResponse(pieces(), headers=_headers(begun.streamed), media_type=begun.streamed.content_type)


def _readable(data: bytes) -> tuple[Fields, PageError | None]:
    """Return the fields of a query or a form; none and the error where it cannot be read."""
    try:
        return fields_of(data), None
    except PageError as error:
        return Fields(()), error


def _begun(answer: Answer, *, has_body: bool) -> _Made:
    """Return an answer with its first piece made: what goes wrong until then is still a page."""
    if isinstance(answer, Response):
        return answer
    if not has_body:
        # Nothing is handed out, and nobody is said to have had it.
        return Response(b"", headers=_headers(answer), media_type=answer.content_type)
    return _StreamStart(answer, *answer.piece(None))


def _headers(streamed: StreamedResponse) -> dict[str, str]:
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(streamed.filename)}"}


def _to_sign_in(route: Route, visit: Visit) -> Response:
    """Send somebody who is not signed in to where they can. A form that was sent is lost, which is said."""
    if route.method == "POST":
        message = N_("Your session has ended, and nothing was changed. Sign in and send it again.")
        raise PageError(HTTPStatus.FORBIDDEN, message, offers_sign_in=True)
    query = urlencode(visit.query.pairs())
    back = f"{visit.path}?{query}" if query else visit.path
    return visit.redirect("/sign-in", back=None if back == "/" else back)


def _away(message: str) -> PageError:
    return PageError(HTTPStatus.SERVICE_UNAVAILABLE, message, retry_s=AWAY_RETRY_S)


def _banks_away(error: BankError) -> PageError:
    if isinstance(error, ChangeUnknown):
        return _away(N_("The banks may have been changed in part. Look at them before you repeat it."))
    return _away(N_("The banks cannot be read or changed at the moment; the log of the console says why. Try again."))
