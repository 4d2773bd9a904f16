"""Makes one attempt to deliver a message, and returns its outcome in a form that pages can explain."""

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
"""How long an attempt may take in all: name look-up, connecting, TLS, sending and the answer."""
GONE: Final = 410
"""The HTTP status of a receiver that wants no more messages."""
_EXCERPT_CHARS_MAX: Final = 400
_REDIRECTS: Final = range(300, 400)

Result = Literal["accepted", "rejected", "unreachable", "refused_address"]
"""How an attempt ended. ``refused_address`` also stands for a URL that was refused for a fault in itself."""
Cause = Literal["status", "redirect", "url", "address", "name", "connection", "tls", "time", "answer"]


class WebhookMessage(NamedTuple):
    """A message to sign with each of ``secrets`` and send.

    ``message_id`` is the same in every attempt, so that receivers can detect duplicates.
    """

    message_id: str
    body: bytes
    secrets: Sequence[str]


class AttemptOutcome(NamedTuple):
    """The outcome of an attempt. ``cause`` and ``detail`` explain a failure.

    ``status`` is the HTTP status, or None without an answer. ``retry_after_s`` is the pause that the receiver requests.
    """

    result: Result
    status: int | None = None
    cause: Cause | None = None
    detail: str = ""
    retry_after_s: float | None = None

    @property
    def explanation(self) -> str:
        """The cause and its detail as one text, or "" without a failure; ``cause_of`` splits it."""
        return f"{self.cause} {self.detail}".strip() if self.cause else ""


class RefusedEndpoint(DupwatchError):  # noqa: N818  # named for the endpoint
    """A URL is refused because of a fault in it (``url``) or one of its addresses (``address``)."""

    def __init__(self, cause: Literal["url", "address"], detail: str) -> None:
        super().__init__(f"the URL is refused: {cause} {detail}")
        self.cause: Literal["url", "address"] = cause
        self.detail = detail


def cause_of(explanation: str) -> tuple[str, str]:
    """Return the cause and the detail in ``AttemptOutcome.explanation``."""
    cause, _, detail = explanation.partition(" ")
    return cause, detail


def resolve_host(host: str, port: int) -> list[str]:
    """Return the distinct addresses of a name. Raises ``OSError``, and ``UnicodeError`` for an invalid name."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Courier:
    """A sender of messages to endpoints whose addresses are global or in ``networks``. Threads may share it."""

    def __init__(
        self,
        networks: Sequence[str] = (),
        *,
        allows_http: bool = False,
        resolve: Callable[[str, int], Sequence[str]] = resolve_host,
        attempt_s: float = ATTEMPT_S,
    ) -> None:
        self._networks = [ip_network(network) for network in networks]
        self._allows_http = allows_http
        self._resolve = resolve
        self._attempt_s = attempt_s
        self._try_lock = Lock()
        self._tls_lock = Lock()
        self._tls: ssl.SSLContext | None = None

    def check(self, url: str) -> None:
        """Raise ``RefusedEndpoint`` if a URL is refused. A host name that does not resolve yet is accepted."""
        with suppress(OSError, DeadlinePassed):
            self._resolve_endpoint(url, AttemptDeadline(self._attempt_s))

    def send(self, url: str, message: WebhookMessage, at_s: float) -> AttemptOutcome:
        """Make one attempt, and return its outcome. ``at_s`` is the time in seconds since 1970."""
        deadline = AttemptDeadline(self._attempt_s)
        try:
            endpoint, addresses = self._resolve_endpoint(url, deadline)
        except RefusedEndpoint as error:
            return AttemptOutcome("refused_address", cause=error.cause, detail=error.detail)
        except (OSError, DeadlinePassed) as error:
            return _failure(error, "name")
        headers = signed_headers(message.message_id, int(at_s), message.body, message.secrets)
        tls = self._tls_context() if endpoint.is_tls else None
        try:
            reply = exchange(endpoint, addresses, (headers, message.body), tls, deadline)
        except (OSError, DeadlinePassed, NoReply) as error:
            return _failure(error, "connection")
        return _outcome(reply, at_s)

    def try_out(self, url: str, message: WebhookMessage, at_s: float) -> AttemptOutcome | None:
        """Make one attempt while a person waits. Return None if such an attempt is already running."""
        if not self._try_lock.acquire(blocking=False):
            return None
        try:
            return self.send(url, message, at_s)
        finally:
            self._try_lock.release()

    def _resolve_endpoint(self, url: str, deadline: AttemptDeadline) -> tuple[Endpoint, Sequence[str]]:
        """Return the endpoint of a URL, and its checked addresses. The caller must connect to no other address.

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
        """Return the addresses of an endpoint's host. Raises ``OSError`` and ``DeadlinePassed``.

        The system's resolver cannot be stopped: after the deadline, the thread that waits for it is left behind.
        """
        call = Call(partial(self._resolve, endpoint.host, endpoint.port))
        if not call.wait(deadline.left_s()):
            raise DeadlinePassed
        try:
            return call.result()
        except UnicodeError as error:
            raise OSError(errno.EINVAL, "it is not a valid name") from error

    def _tls_context(self) -> ssl.SSLContext:
        """Return a context with the system's authorities, created once because reading them is slow."""
        with self._tls_lock:
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
    """Return the outcome of an attempt without an answer. ``cause`` is used unless the error has a more precise one."""
    if isinstance(error, TimeoutError | DeadlinePassed):
        return AttemptOutcome("unreachable", cause="time")
    if isinstance(error, NoReply):
        return AttemptOutcome("unreachable", cause="answer", detail=str(error)[:_EXCERPT_CHARS_MAX])
    if isinstance(error, ssl.SSLError):
        cause = "tls"
    reason = getattr(error, "verify_message", "") or getattr(error, "reason", "") or error.strerror or str(error)
    return AttemptOutcome("unreachable", cause=cause, detail=str(reason)[:_EXCERPT_CHARS_MAX])
