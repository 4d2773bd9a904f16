"""The common server of the HTTP service and the console: it listens, has worker threads, and can be stopped."""

from contextlib import ExitStack
from typing import Literal

from consumer.config.sections.console import ConsoleSection
from consumer.config.sections.service import ServiceSection
from consumer.model.hooks import Hooks
from consumer.telemetry.health import Health
from consumer.web.certificates import configured_certificate
from consumer.web.connections import ConnectionLimits
from consumer.web.front import Front
from consumer.web.request_threads import Workers
from consumer.web.server import Server, allow_connections, listening_socket, url_of


class ListeningServer:
    """A server that listens as soon as it is created, and answers while it runs. ``close`` stops listening.

    ``name`` is the server's section of the configuration, for messages. Raises ``ConfigError`` if the server cannot
    listen, or a configured file cannot be used.
    """

    def __init__(
        self,
        name: Literal["service", "console"],
        section: ServiceSection | ConsoleSection,
        hooks: Hooks,
        health: Health,
        *,
        needs_token: bool,
    ) -> None:
        self._section = section
        self._report = hooks.report
        self._health = health
        allow_connections(section.connections_max, f"{name}.connections_max")
        self._certificate = configured_certificate(name, section.tls_certificate, section.tls_key, hooks.report)
        self._tls = None if self._certificate is None else self._certificate.context
        self._listening = listening_socket(section.listen, needs_token=needs_token, setting=f"{name}.listen")
        self._workers = Workers(section.threads, section.requests_max, section.answer_s)

    @property
    def url(self) -> str:
        """The URL of the server."""
        return url_of(self._listening, is_secure=self._tls is not None)

    def stop(self) -> None:
        """Begin to stop: current requests may finish within ``drain_s``. Any thread may call this."""
        self._health.note_stopping()
        self._server.stop()

    def close(self) -> None:
        """Stop listening. A second call does nothing."""
        self._listening.close()

    def _prepare(self, app: Front) -> None:
        """Build the server that answers with this application."""
        section = self._section
        limits = ConnectionLimits(section.connections_max, section.receive_s, section.send_s, section.unread_bytes_max)
        self._server = Server(app, limits, self._report, section.drain_s, self._tls)

    def _serve(self) -> None:
        """Serve until ``stop`` is called, following changes of the certificate."""
        with ExitStack() as following:
            if self._certificate is not None:
                following.enter_context(self._certificate.periodic_check())
            self._server.run([self._listening])
