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
    """The receivers to which webhooks may be sent."""

    networks: tuple[Annotated[Text, AfterValidator(_network)], ...] = ()
    """Networks whose addresses are allowed in addition to global addresses, for receivers in your own network."""
    http: bool = False
    """Allow http:// URLs. Anybody between the console and the receiver can then read and change what is sent."""


class ConsoleSection(Section):
    """The address, the database, the sign-in and the limits of ``dupwatch console``."""

    listen: Annotated[str, Field(pattern=r"^.+:\d{1,5}$")] = "127.0.0.1:8760"
    """HOST:PORT of the console."""
    database: Text = "sqlite:///console.db"
    """sqlite:///PATH, or postgresql://USER@HOST:PORT/NAME; a password belongs in password_file."""
    password_file: Text | None = None
    """The file that holds the password of the database."""
    group: Text = "dupwatch-console"
    """The consumer group that reads PREFIX.duplicates. For other topics a suffix is added, such as -near-misses."""
    names: tuple[Text, ...] = ()
    """Host names under which the console answers, in addition to addresses and localhost."""
    tls_certificate: Text | None = None
    """Serve HTTPS with the certificate in this file, in PEM format; its key is in tls_key or in the same file."""
    tls_key: Text | None = None
    """A file with the private key of the certificate, in PEM format, without a passphrase."""
    proxy_addresses: tuple[Text, ...] = ()
    """Addresses of trusted proxies. Their headers say where a request comes from, and whether it came over TLS."""
    proxy_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] | None = None
    """The header in which these proxies name the person who has signed in. When unset, people sign in with
    passwords."""
    language: Literal["en", "zh"] | None = None
    """The language of pages for people who have not chosen one. When unset, the browser's language is used."""
    undo_s: Annotated[float, Field(ge=0, le=600)] = 10.0
    """How long a decision can be undone. After that it is final, and a flag decided to be wrong is released."""
    idle_s: Seconds = 28_800.0
    """How long a sign-in lasts without requests."""
    session_s: Annotated[float, Field(gt=0, le=2_592_000)] = 604_800.0
    """How long a sign-in lasts at most."""
    failures_max: Count = 10
    """Failed sign-ins from one address before further attempts have to wait; for one name, ten times as many."""
    search: bool = True
    """Index the words of open flags in the database. Without the index, flags can be found only by id and source."""
    page_rows: Annotated[int, Field(ge=1, le=200)] = 50
    """Maximum rows on one page, such as flags of the queue."""
    reviewed_at_once_max: Annotated[int, Field(ge=1, le=10_000)] = 1_000
    """Maximum flags that one decision may cover, in a story or on a page of the queue."""
    flood_copies: Count = 100
    """A story with this many copies within flood_s is a flood."""
    flood_s: Seconds = 60.0
    """The period in which a story must get flood_copies copies to be a flood."""
    outbox_events_max: Count = 1_000_000
    """Maximum events that wait for the sink, and for each webhook. Further events for that receiver are dropped."""
    webhooks: WebhooksSection = WebhooksSection()
    authority: Ranks = Field(default_factory=dict)
    """The rank of each source, from -1,000 to 1,000; the default is 0. A story prefers its highest-ranked member."""
    threads: Annotated[int, Field(ge=1, le=64)] = 4
    """Threads that render pages."""
    requests_max: Count = 64
    """Maximum requests in progress or waiting for a thread; further requests get 503."""
    connections_max: Annotated[int, Field(ge=1, le=100_000)] = 1_024
    """Maximum open connections; beyond that, the connection that has been idle longest is closed."""
    receive_s: Seconds = 10.0
    """Time limit for a TLS handshake, for the head of a request, and for its body."""
    send_s: Seconds = 30.0
    """How long a client may take to read an answer before its connection is closed."""
    unread_bytes_max: Count = 128 * 1024 * 1024
    """Maximum bytes of unread answers; beyond that, the connection that has been reading longest is closed."""
    answer_s: Seconds = 30.0
    """How long a request may wait for a thread, the database and the store before it gets 503."""
    drain_s: Seconds = 20.0
    """How long requests in progress may take to finish after SIGTERM."""

    @model_validator(mode="after")
    def _settings_fit(self) -> "ConsoleSection":
        if self.tls_key and not self.tls_certificate:
            raise ValueError("tls_key has no effect without tls_certificate")
        if self.proxy_header and not self.proxy_addresses:
            raise ValueError("proxy_header needs proxy_addresses: anybody can send a header")
        if self.connections_max <= self.requests_max:
            raise ValueError(
                f"connections_max is {self.connections_max}; it must be more than requests_max, {self.requests_max}"
            )
        return self
