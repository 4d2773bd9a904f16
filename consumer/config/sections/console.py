"""The moderators' console: ``[console]``."""

from ipaddress import ip_network
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from consumer.config.setting_types import Count, Ranks, Seconds, Section, Text


def _network(text: str) -> str:
    try:
        ip_network(text)
    except ValueError as error:
        raise ValueError(f"write it as 10.1.0.0/16 or 10.1.2.3: {error}") from error
    return text


class WebhooksSection(Section):
    """Where webhooks may be sent to."""

    networks: tuple[Annotated[Text, AfterValidator(_network)], ...] = ()
    """Networks whose addresses are allowed in addition to global ones: receivers within your own network."""
    http: bool = False
    """Whether URLs may be http://; anybody on the way can read what is sent then, and change it."""


class ConsoleSection(Section):
    """Where ``dupwatch console`` listens, where its database is, and how people sign in."""

    listen: Annotated[str, Field(pattern=r"^.+:\d{1,5}$")] = "127.0.0.1:8760"
    """HOST:PORT of the console."""
    database: Text = "sqlite:///console.db"
    """sqlite:///PATH, or postgresql://USER@HOST:PORT/NAME; a password belongs in password_file."""
    password_file: Text | None = None
    """The file that holds the password of the database."""
    group: Text = "dupwatch-console"
    """The consumer group that reads PREFIX.duplicates; the one that reads PREFIX.near-misses ends in -near-misses."""
    names: tuple[Text, ...] = ()
    """Names of this machine under which it answers, in addition to addresses and localhost."""
    tls_certificate: Text | None = None
    """Serve HTTPS with the certificate in this file, in PEM format; its key is in tls_key or in the same file."""
    tls_key: Text | None = None
    """A file with the private key of the certificate, in PEM format, without a passphrase."""
    proxy_addresses: tuple[Text, ...] = ()
    """Addresses of trusted proxies, which say where requests come from, and whether over TLS."""
    proxy_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] | None = None
    """The header in which these proxies name the person, if they sign people in; otherwise people have passwords."""
    language: Literal["en", "zh"] | None = None
    """The language of pages for people who have chosen none; when unset, that of their browser."""
    undo_s: Annotated[float, Field(ge=0, le=600)] = 10.0
    """How long a decision can be undone before it is final, and a release is sent."""
    idle_s: Seconds = 28_800.0
    """How long a session lasts without a request."""
    session_s: Annotated[float, Field(gt=0, le=2_592_000)] = 604_800.0
    """How long a session lasts at most."""
    failures_max: Count = 10
    """Failed attempts to sign in from one address, or ten times as many with one name, before further ones wait."""
    search: bool = True
    """Whether words of open flags are indexed in the database; without it, flags are found by id and source."""
    page_rows: Annotated[int, Field(ge=1, le=200)] = 50
    """Flags on a page of the queue."""
    reviewed_at_once_max: Annotated[int, Field(ge=1, le=10_000)] = 1_000
    """Maximum flags of a story or of a page of the queue that one decision may cover."""
    flood_copies: Count = 100
    """Copies of one story within flood_s that make a flood."""
    flood_s: Seconds = 60.0
    """The time within which the copies of a flood arrive."""
    outbox_events_max: Count = 1_000_000
    """Maximum events waiting for the sink, and as many for each webhook; later ones are not kept for that receiver."""
    webhooks: WebhooksSection = WebhooksSection()
    authority: Ranks = Field(default_factory=dict)
    """The rank of each source, from -1,000 to 1,000; a story prefers the member with the highest. Others have 0."""
    threads: Annotated[int, Field(ge=1, le=64)] = 4
    """Threads that make pages."""
    requests_max: Count = 64
    """Maximum requests that are worked on or wait for a thread; further ones get 503."""
    connections_max: Annotated[int, Field(ge=1, le=100_000)] = 1_024
    """Maximum open connections; for a further one the connection that has been idle longest is closed."""
    receive_s: Seconds = 10.0
    """How long a TLS handshake may take, then the head of a request to arrive, and then its body."""
    send_s: Seconds = 30.0
    """How long a client may take to read an answer before its connection is closed."""
    unread_bytes_max: Count = 128 * 1024 * 1024
    """Maximum bytes of unread answers; beyond it the connection that has been reading longest is closed."""
    answer_s: Seconds = 30.0
    """How long a request may wait for a thread, the database and the store before it gets 503."""
    drain_s: Seconds = 20.0
    """How long requests may take to end after SIGTERM."""

    @model_validator(mode="after")
    def _settings_fit(self) -> "ConsoleSection":
        if self.tls_key and not self.tls_certificate:
            raise ValueError("tls_key has no effect without tls_certificate")
        if self.proxy_header and not self.proxy_addresses:
            raise ValueError("proxy_header needs proxy_addresses: anybody can send a header")
        if self.connections_max <= self.requests_max:
            raise ValueError(
                f"connections_max is {self.connections_max}; it has to be more than requests_max, {self.requests_max}"
            )
        return self
