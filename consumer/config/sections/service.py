"""The HTTP service of ``dupwatch serve``: ``[service]``."""

from typing import Annotated

from pydantic import Field, model_validator

from consumer.config.setting_types import Count, Seconds, Section, Text


class ServiceSection(Section):
    """The address, the tokens and the limits of ``dupwatch serve``."""

    listen: Annotated[str, Field(pattern=r"^.+:\d{1,5}$")] = "127.0.0.1:8750"
    """HOST:PORT of the service; without tokens only addresses of this machine's loopback interface are allowed."""
    tokens: Text | None = None
    """The file with the hashes of tokens, which dupwatch tokens edits. All requests except probes and the API reference
    then need a token."""
    tls_certificate: Text | None = None
    """Serve HTTPS with the certificate in this file, in PEM format; its key is in tls_key or in the same file."""
    tls_key: Text | None = None
    """A file with the private key of the certificate, in PEM format, without a passphrase."""
    audit: Text | None = None
    """The audit log: a file that gets a line for each change of state."""
    names: tuple[Text, ...] = ()
    """Host names under which the service answers, in addition to addresses and localhost."""
    gather_s: Annotated[float, Field(ge=0, le=1)] = 0.005
    """How long articles of several requests are gathered, to be judged and stored together."""
    inbox_records_max: Count = 4_096
    """Maximum articles and retractions that wait to be judged; a request that would exceed it gets 503."""
    inbox_bytes_max: Count = 64 * 1024 * 1024
    """Maximum bytes of articles that wait to be judged; a request that would exceed it gets 503."""
    threads: Annotated[int, Field(ge=1, le=64)] = 2
    """Threads that judge and read the store."""
    requests_max: Count = 64
    """Maximum requests in progress or waiting for a thread; further ones get 503."""
    connections_max: Annotated[int, Field(ge=1, le=100_000)] = 2_048
    """Maximum open connections; a further one closes the connection that has been idle longest."""
    articles_max: Annotated[int, Field(ge=1, le=1_000)] = 1_000
    """Maximum articles in one request."""
    body_bytes_max: Count = 16 * 1024 * 1024
    """Maximum bytes of a request's body."""
    received_bytes_max: Count = 128 * 1024 * 1024
    """Maximum bytes of all bodies in memory; beyond that, the request that has been arriving longest gets 503."""
    receive_s: Seconds = 10.0
    """Time limit for each of these: a TLS handshake, the head of a request, and its body."""
    send_s: Seconds = 30.0
    """How long a client may take to read an answer before its connection is closed."""
    unread_bytes_max: Count = 128 * 1024 * 1024
    """Maximum bytes of unread answers; beyond that, the connection that has been reading longest is closed."""
    answer_s: Seconds = 30.0
    """How long a request may wait for a thread and for the store before it gets 503."""
    store_s: Seconds = 5.0
    """How long one call of a remote store may take."""
    drain_s: Seconds = 20.0
    """How long requests in progress may take to finish after SIGTERM."""

    @model_validator(mode="after")
    def _settings_fit(self) -> "ServiceSection":
        if self.tls_key and not self.tls_certificate:
            raise ValueError("tls_key has no effect without tls_certificate")
        if self.connections_max <= self.requests_max:
            raise ValueError(
                f"connections_max is {self.connections_max}; it must be more than requests_max, {self.requests_max}"
            )
        if self.received_bytes_max < self.body_bytes_max:
            raise ValueError(
                f"received_bytes_max is {self.received_bytes_max}; it must be at least body_bytes_max, "
                f"{self.body_bytes_max}"
            )
        if self.inbox_records_max < self.articles_max:
            raise ValueError(
                f"inbox_records_max is {self.inbox_records_max}; it must be at least articles_max, {self.articles_max}"
            )
        if self.inbox_bytes_max < self.body_bytes_max:
            raise ValueError(
                f"inbox_bytes_max is {self.inbox_bytes_max}; it must be at least body_bytes_max, {self.body_bytes_max}"
            )
        return self
