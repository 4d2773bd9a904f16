"""The settings of a running consumer's pages, log and traces: ``[http]``, ``[log]`` and ``[tracing]``."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from consumer.config.setting_types import Seconds, Section, SiteUrl, Text


class HttpSection(Section):
    """Health, metrics and the latest flags."""

    listen: Annotated[str, Field(pattern=r"^$|^.+:\d{1,5}$")] = "127.0.0.1:9464"
    """HOST:PORT of /healthz, /readyz, /metrics and /flags.json while topics are read; empty for none."""
    open: bool = False
    """Allow an address that other machines can reach even if no password is set."""
    user: Annotated[str, Field(pattern=r"^[^:]+$")] | None = None
    """Require this user and a password, except for the status of /healthz and /readyz."""
    password: Text | None = None
    """The password itself; set it in the environment, as DUPWATCH_HTTP__PASSWORD."""
    password_file: Text | None = None
    """The file that holds the password."""
    tls_certificate: Text | None = None
    """Serve HTTPS with the certificate in this file, in PEM format; its key is in tls_key or in the same file."""
    tls_key: Text | None = None
    """A file with the private key of the certificate, in PEM format, without a passphrase."""
    names: tuple[Text, ...] = ()
    """Host names under which articles are shown without a password, in addition to addresses and localhost.

    If listen is a loopback address, metrics and health are also limited to these names.
    """
    flags: Annotated[int, Field(ge=0, le=500)] = 50
    """The number of latest flags in /flags.json; 0 switches the page off."""
    console_url: SiteUrl | None = None
    """The address of the moderators' console, https://HOST, to which /flags.json links."""
    stuck_s: Seconds = 60.0
    """How long the loop may make no progress before /healthz fails."""
    sources_max: Annotated[int, Field(ge=0, le=1_000)] = 50
    """The number of sources with their own metrics: sources with rules, then the first others to appear. The rest share
    one set."""

    @model_validator(mode="after")
    def _credentials_are_complete(self) -> "HttpSection":
        if self.password and self.password_file:
            raise ValueError("password and password_file are both set; leave one out")
        if bool(self.user) != bool(self.password or self.password_file):
            raise ValueError("user needs password or password_file, and these need user; set both or neither")
        if self.tls_key and not self.tls_certificate:
            raise ValueError("tls_key has no effect without tls_certificate")
        return self


class LogSection(Section):
    """The log on standard error."""

    format: Literal["auto", "json", "text"] = "auto"
    """json: one JSON object a line. auto: text on a terminal, json elsewhere."""
    level: Literal["debug", "info", "warning", "error"] | None = None
    """The lowest level that is logged; when unset, info for dupwatch serve, dupwatch console and runs over topics, and
    warning for other commands."""


class TracingSection(Section):
    """Spans for an OpenTelemetry collector, while topics are read. OpenTelemetry's OTEL_... variables also apply."""

    enabled: bool = False
    """Send spans; needs the packages of the extra tracing."""
    endpoint: Annotated[str, Field(pattern=r"^https?://.+")] | None = None
    """The collector, http://HOST:4318; when unset, OTEL_EXPORTER_OTLP_ENDPOINT."""
    links_max: Annotated[int, Field(ge=0, le=10_000)] = 256
    """Maximum traces of articles that the span of their batch links to."""
    close_s: Seconds = 5.0
    """How long a run waits at its end for the collector to receive the last spans."""
