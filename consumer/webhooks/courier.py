"""Makes one attempt to deliver a message, and says what became of it in a form that pages can put into sentences."""

import errno
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import ip_network
from threading import Lock
from typing import Final, Literal, NamedTuple

from consumer.lifecycle.background import Call
from consumer.model.errors import DupwatchError
from consumer.webhooks.addresses import refused_address
from consumer.webhooks.deadline import AttemptDeadline, DeadlinePassed
from consumer.webhooks.endpoint import Endpoint, UrlError, endpoint_of
from consumer.webhooks.exchange import NoReply, WebhookReply, exchange
from consumer.webhooks.retrying import retry_after_s
from consumer.webhooks.signing import signed_headers

ATTEMPT_S: Final = 10.0
"""How long an attempt may take in all: looking the name up, connecting, TLS, sending and the answer."""
GONE: Final = 410
"""The status that says that a receiver wants nothing more."""
_EXCERPT_CHARS_MAX: Final = 400
_REDIRECTS: Final = range(300, 400)

Result = Literal["accepted", "rejected", "unreachable", "refused_address"]
Cause = Literal["status", "redirect", "url", "address", "name", "connection", "tls", "time", "answer"]


class WebhookMessage(NamedTuple):
    """A message. ``message_id`` is the same in every attempt, so that a receiver knows what it has already."""

    message_id: str
    body: bytes
    secrets: Sequence[str]


class AttemptOutcome(NamedTuple):
    """What became of an attempt. ``status`` is that of HTTP; ``cause`` and ``detail`` say why it failed."""

    result: Result
    status: int | None = None
    cause: Cause | None = None
    detail: str = ""
    retry_after_s: float | None = None

    @property
    def why(self) -> str:
        """The cause and its detail as one text, "" where there is none; ``cause_of`` takes it apart."""
        return f"{self.cause} {self.detail}".strip() if self.cause else ""


class RefusedEndpoint(DupwatchError):  # noqa: N818  # named for the endpoint
    """Nothing is sent to a URL: for a fault in it (``url``), or for one of its addresses and what that is for."""

    def __init__(self, cause: Literal["url", "address"], detail: str) -> None:
        super().__init__(f"nothing is sent there: {cause} {detail}")
        self.cause: Literal["url", "address"] = cause
        self.detail = detail


def cause_of(why: str) -> tuple[str, str]:
    """Return the cause and the detail that ``AttemptOutcome.why`` has."""
    cause, _, detail = why.partition(" ")
    return cause, detail


def resolved(host: str, port: int) -> list[str]:
    """Return the addresses of a name, each once. Raises ``OSError``."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Courier:
    """Sends messages to endpoints whose addresses are global or in ``networks``; used by several threads at once."""

    def __init__(
        self,
        networks: Sequence[str] = (),
        *,
        allows_http: bool = False,
        resolve: Callable[[str, int], Sequence[str]] = resolved,
        attempt_s: float = ATTEMPT_S,
    ) -> None:
        self._networks = [ip_network(network) for network in networks]
        self._allows_http = allows_http
        self._resolve = resolve
        self._attempt_s = attempt_s
        self._trying = Lock()
        self._tls_made = Lock()
        self._tls: ssl.SSLContext | None = None

    def check(self, url: str) -> None:
        """Raise ``RefusedEndpoint`` where nothing would be sent to a URL. A name may have no address yet."""
        with suppress(OSError, DeadlinePassed):
            self._checked(url, AttemptDeadline(self._attempt_s))

    def send(self, url: str, message: WebhookMessage, at_s: float) -> AttemptOutcome:
        """Make one attempt at this time, in seconds since 1970, and return what became of it."""
        deadline = AttemptDeadline(self._attempt_s)
        try:
            endpoint, addresses = self._checked(url, deadline)
        except RefusedEndpoint as error:
            return AttemptOutcome("refused_address", cause=error.cause, detail=error.detail)
        except (OSError, DeadlinePassed) as error:
            return _failure(error, "name")
        headers = signed_headers(message.message_id, int(at_s), message.body, message.secrets)
        tls = self._context() if endpoint.is_tls else None
        try:
            reply = exchange(endpoint, addresses, (headers, message.body), tls, deadline)
        except (OSError, DeadlinePassed, NoReply) as error:
            return _failure(error, "connection")
        return _outcome(reply, at_s)

    def try_out(self, url: str, message: WebhookMessage, at_s: float) -> AttemptOutcome | None:
        """Make one attempt while a person waits for it; None where another one is being made for somebody."""
        if not self._trying.acquire(blocking=False):
            return None
        try:
            return self.send(url, message, at_s)
        finally:
            self._trying.release()

    def _checked(self, url: str, deadline: AttemptDeadline) -> tuple[Endpoint, Sequence[str]]:
        """Return where to send, and its addresses. They are looked up once: another look could give others.

        Raises ``RefusedEndpoint``, ``OSError`` and ``DeadlinePassed``.
        """
        try:
            endpoint = endpoint_of(url, allows_http=self._allows_http)
        except UrlError as error:
            raise RefusedEndpoint("url", error.fault) from error
        addresses = self._addresses(endpoint, deadline)
        refused = refused_address(addresses, self._networks)
        if refused is not None:
            raise RefusedEndpoint("address", f"{refused.address} {refused.kind}")
        return endpoint, addresses

    def _addresses(self, endpoint: Endpoint, deadline: AttemptDeadline) -> Sequence[str]:
        """Look a name up. The system's resolver cannot be stopped, so a thread is left behind where it takes long."""
        call = Call(partial(self._resolve, endpoint.host, endpoint.port))
        if not call.ended(deadline.left_s()):
            raise DeadlinePassed
        try:
            return call.result()
        except UnicodeError as error:
            raise OSError(errno.EINVAL, "it cannot be a name") from error

    def _context(self) -> ssl.SSLContext:
        """Return the authorities of this system, which take a moment to read."""
        with self._tls_made:
            if self._tls is None:
                self._tls = ssl.create_default_context()
            return self._tls


def _outcome(reply: WebhookReply, at_s: float) -> AttemptOutcome:
    if reply.is_accepted:
        return AttemptOutcome("accepted", reply.status)
    excerpt = reply.body.decode(errors="replace")[:_EXCERPT_CHARS_MAX]
    if reply.status in _REDIRECTS:
        return AttemptOutcome("rejected", reply.status, "redirect", reply.header(b"location")[:_EXCERPT_CHARS_MAX])
    pause_s = retry_after_s(reply.header(b"retry-after"), at_s)
    return AttemptOutcome("rejected", reply.status, "status", excerpt, pause_s)


def _failure(error: OSError | DeadlinePassed | NoReply, cause: Cause) -> AttemptOutcome:
    """Return the outcome of an attempt that got no answer, for this cause unless the error says a closer one."""
    if isinstance(error, TimeoutError | DeadlinePassed):
        return AttemptOutcome("unreachable", cause="time")
    if isinstance(error, NoReply):
        return AttemptOutcome("unreachable", cause="answer", detail=str(error)[:_EXCERPT_CHARS_MAX])
    if isinstance(error, ssl.SSLError):
        cause = "tls"
    reason = getattr(error, "verify_message", "") or getattr(error, "reason", "") or error.strerror or str(error)
    return AttemptOutcome("unreachable", cause=cause, detail=str(reason)[:_EXCERPT_CHARS_MAX])
