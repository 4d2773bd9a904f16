"""Answers requests for one path: identifies the sender, checks permissions, and turns errors into pages.

Reviewers read pages and make decisions; admins also manage people and read the audit log. ``OpenRoute`` is for pages
that people need before they sign in.
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
from consumer.console.i18n import choose_language
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
"""The seconds after which to try again while the database, the store or the banks do not answer."""


Method = Literal["GET", "POST"]

_ALLOWED_ROLES: Final[Mapping[Role, frozenset[Role]]] = {
    "reviewer": frozenset({"reviewer"}),
    "admin": frozenset({"reviewer", "admin"}),
}


@dataclass(frozen=True, slots=True)
class Route:
    """A path that people with this role may request. ``answer`` runs in a thread and may wait for the database.

    Admins may also request the paths of reviewers. The origin and the token of a POST are checked before ``answer`` is
    called, so that only forms of this console are accepted. ``of_banks``: the banks' thread answers. ``is_use``: a
    request keeps its session alive; False for requests that pages send on their own. ``form_bytes_max`` applies only to
    people who are signed in; others may send at most ``FORM_BYTES_MAX``.
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
    """A path that everybody may request. POSTs are checked as for a ``Route``."""

    method: Method
    path: str
    answer: Callable[[Visit], Answer]


@dataclass(frozen=True, slots=True)
class ConsoleFront:
    """The parts that answer requests. ``is_tls``: this process itself has the TLS certificate.

    ``identity`` is the identity of the database.
    """

    context: ConsoleContext
    workers: Workers
    authentication: SessionAuthentication
    proxies: Proxies
    is_tls: bool
    identity: str
    pages: FormPages

    def workers_for(self, route: "Route | OpenRoute") -> Workers:
        """Return the threads that answer a route."""
        banks = self.context.banks
        return banks.workers if isinstance(route, Route) and route.of_banks and banks is not None else self.workers

    def visit(self, request: Request) -> Visit:
        """Return the visit of a request whose sender is not known yet."""
        code = choose_language(None, self.context.section.language, request.headers.get("accept-language", ""))
        is_secure = self.proxies.is_secure(request, is_tls=self.is_tls)
        return Visit(
            context=self.context,
            request_id=request.state.request_id,
            path=request.url.path,
            address=self.proxies.client(request),
            language=self.context.rendering.language(code),
            session=session_of(request, self.identity, is_secure=is_secure),
            path_parameters=request.scope.get("path_params", {}),
        )

    def problem_page(self, request: Request, problem: ProblemError) -> Response:
        """Return the page for a problem that occurred before the sender was known."""
        return self.error_page(request, self.visit(request), page_error(problem))

    def error_page(self, request: Request, visit: Visit, error: PageError) -> Response:
        """Return the page for an error. ``Front`` counts the limit that the error names."""
        if error.limit is not None:
            request.state.limit = error.limit
        language = visit.language
        title = TITLES[error.status]
        if error.status == HTTPStatus.BAD_REQUEST and visit.signed_in is not None:
            # The console understood the request, but cannot do what it asks.
            title = N_("Not done") if request.method == "POST" else N_("This page cannot be shown")
        response = visit.page(
            "error.html",
            status=error.status,
            title=language.gettext(title),
            back=self.pages.address(request) if error.status in CORRECTABLE else None,
            message=error.text(language),
            offers_sign_in=error.offers_sign_in,
        )
        response.headers.update(error.headers)
        return response


class _StreamStart(NamedTuple):
    """A streamed response, its first piece, and the position after that piece; None at the end."""

    streamed: StreamedResponse
    first: bytes
    after: str | None


_PreparedAnswer = Response | _StreamStart


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
            query, fault = _fields_or_error(request.scope["query_string"])
            visit = replace(visit, query=query)
            sender = self._console.authentication.sender(request, visit.session.secret)
            if route.method == "POST":
                check_origin(request, is_secure=visit.session.is_secure)
                bytes_max = await self._form_bytes_max(route, sender)
                data = await received_form(request, self._console.context.section.receive_s, bytes_max)
                form, form_fault = _fields_or_error(data)
                visit, fault = replace(visit, form=form), fault or form_fault
            # The request's connection must not be closed to make room for another one while the answer is made.
            request.state.connection_is_needed = True
            workers = self._console.workers_for(route)
            answer = await workers.call(partial(self._answer_in_thread, request, route, visit, sender, fault))
            if isinstance(answer, _StreamStart):
                return self._streaming_response(answer, visit.request_id)
        except PageError as error:
            return self._console.error_page(request, visit, error)
        except ProblemError as problem:
            return self._console.error_page(request, visit, page_error(problem, changes=request.method == "POST"))
        return answer

    async def _form_bytes_max(self, route: Route | OpenRoute, sender: RequestSender) -> int:
        """Return the maximum size of a form, in bytes. Strangers must not fill the memory with large forms."""
        if isinstance(route, OpenRoute) or route.form_bytes_max <= FORM_BYTES_MAX:
            return FORM_BYTES_MAX

        def is_known() -> bool:
            try:
                return self._console.authentication.person(sender) is not None
            except (PageError, DatabaseUnavailable):
                # The person is looked up again for the answer, which reports the error.
                return False

        return route.form_bytes_max if await self._console.workers.call(is_known) else FORM_BYTES_MAX

    def _route(self, request: Request) -> Route | OpenRoute:
        if any(isinstance(value, int) and value > INTEGER_MAX for value in request.path_params.values()):
            raise not_found()
        route = self._routes.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            allowed = ", ".join([*self._routes, *(["HEAD"] if "GET" in self._routes else [])])
            message = N_("This address does not accept this kind of request. Go back to the queue.")
            raise PageError(HTTPStatus.METHOD_NOT_ALLOWED, message, headers={"Allow": allowed})
        return route

    def _answer_in_thread(
        self, request: Request, route: Route | OpenRoute, visit: Visit, sender: RequestSender, fault: PageError | None
    ) -> _PreparedAnswer:
        """Answer in a thread. All errors, and ``fault``, become pages, in the person's language once it is known."""
        answer: _PreparedAnswer
        try:
            person = self._console.authentication.person(sender, is_use=not isinstance(route, Route) or route.is_use)
            if person is not None:
                request.state.person = person.name
                visit = self._signed_in_visit(request, visit, person)
            answer = _with_first_piece(self._authorised_answer(route, visit, fault), has_body=request.method != "HEAD")
        except PageError as error:
            answer = self._console.error_page(request, visit, error)
        except DatabaseUnavailable as error:
            log.warning("A page failed because of the database: %s", error, extra={"request_id": visit.request_id})
            message = N_("The console's database does not answer. Try again in a few seconds.")
            answer = self._console.error_page(request, visit, _unavailable(message))
        except BadCursor:
            message = N_("This page of the list does not exist. Start at the first page.")
            answer = self._console.error_page(request, visit, PageError(HTTPStatus.BAD_REQUEST, message))
        except BankError as error:
            log.warning("The banks cannot be read or changed: %s", error, extra={"request_id": visit.request_id})
            answer = self._console.error_page(request, visit, _banks_unavailable(error))
        except (StoreError, StoreMismatch) as error:
            log.warning("The store cannot be read: %s", error, extra={"request_id": visit.request_id})
            answer = self._console.error_page(request, visit, _store_unavailable(error))
        except Exception:
            log.exception("A page of the console failed", extra={"request_id": visit.request_id})
            answer = self._console.error_page(request, visit, page_error(defect()))
        if isinstance(answer, Response):
            visit.session.keep(answer)
        return answer

    def _signed_in_visit(self, request: Request, visit: Visit, person: Person) -> SignedInVisit:
        context = self._console.context
        code = choose_language(person.language, context.section.language, request.headers.get("accept-language", ""))
        values: dict[str, Any] = {each.name: getattr(visit, each.name) for each in fields(visit)}
        return SignedInVisit(**{**values, "language": context.rendering.language(code)}, person=person)

    def _authorised_answer(self, route: Route | OpenRoute, visit: Visit, fault: PageError | None) -> Answer:
        """Check permissions and the form's token, and answer. Raises ``PageError``, and ``fault`` if there is one."""
        if fault is not None:
            raise fault
        if isinstance(route, Route):
            if not isinstance(visit, SignedInVisit):
                return _redirect_to_sign_in(route, visit)
            if route.role not in _ALLOWED_ROLES.get(visit.person.role, frozenset()):
                message = N_("Only an admin can do this. Ask an admin of this console.")
                raise PageError(HTTPStatus.FORBIDDEN, message)
        if route.method == "POST":
            visit.session.check_token(visit.form.text(TOKEN_FIELD))
        if isinstance(route, OpenRoute):
            return route.answer(visit)
        assert isinstance(visit, SignedInVisit)  # noqa: S101  # as above
        return route.answer(visit)

    def _streaming_response(self, start: _StreamStart, request_id: str) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            yield start.first
            position = start.after
            while position is not None:
                try:
                    data, position = await self._console.workers.call(partial(start.streamed.piece, position))
                except DatabaseUnavailable as error:
                    log.warning("%s is cut off: %s", start.streamed.filename, error, extra={"request_id": request_id})
                    raise AnswerCutOff from error
                yield data

        return StreamingResponse(pieces(), headers=_headers(start.streamed), media_type=start.streamed.content_type)


def _fields_or_error(data: bytes) -> tuple[Fields, PageError | None]:
    """Return the fields of a query or a form. If they cannot be read, return no fields and the error."""
    try:
        return fields_of(data), None
    except PageError as error:
        return Fields(()), error


def _with_first_piece(answer: Answer, *, has_body: bool) -> _PreparedAnswer:
    """Return an answer. Make the first piece of a stream now, so that an error still becomes a page."""
    if isinstance(answer, Response):
        return answer
    if not has_body:
        # A HEAD request receives no data, so no export enters the audit log.
        return Response(b"", headers=_headers(answer), media_type=answer.content_type)
    return _StreamStart(answer, *answer.piece(None))


def _headers(streamed: StreamedResponse) -> dict[str, str]:
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(streamed.filename)}"}


def _redirect_to_sign_in(route: Route, visit: Visit) -> Response:
    """Redirect to the sign-in page. Raises ``PageError`` for a form, since a redirect would lose its content."""
    if route.method == "POST":
        message = N_("Your session has ended. Nothing was changed. Sign in and send the form again.")
        raise PageError(HTTPStatus.FORBIDDEN, message, offers_sign_in=True)
    query = urlencode(visit.query.pairs())
    back = f"{visit.path}?{query}" if query else visit.path
    return visit.redirect("/sign-in", back=None if back == "/" else back)


def _unavailable(message: str) -> PageError:
    return PageError(HTTPStatus.SERVICE_UNAVAILABLE, message, retry_s=AWAY_RETRY_S)


def _store_unavailable(error: StoreError | StoreMismatch) -> PageError:
    if isinstance(error, StoreMismatch):
        # The store may be empty, damaged, or made with other settings.
        return _unavailable(N_("The store cannot be used. The console's log says why. Tell whoever runs the console."))
    return _unavailable(N_("The store does not answer. Try again in a few seconds."))


def _banks_unavailable(error: BankError) -> PageError:
    if isinstance(error, ChangeUnknown):
        return _unavailable(N_("The change may have been made only in part. Look at the banks before you repeat it."))
    return _unavailable(
        N_("The banks cannot be read or changed at the moment. The console's log says why. Try again later.")
    )
