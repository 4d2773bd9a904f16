"""What a running consumer shows: ``[http]``, ``[log]`` and ``[tracing]``."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from consumer.config.setting_types import Seconds, Section, SiteUrl, Text


class HttpSection(Section):
    """Health, metrics and the latest flags."""

    listen: Annotated[str, Field(pattern=r"^$|^.+:\d{1,5}$")] = "127.0.0.1:9464"
    """HOST:PORT of /healthz, /readyz, /metrics and /flags.json while topics are read; empty for none."""
    open: bool = False
    """Allow an address that other machines can reach even though no password is asked for."""
    user: Annotated[str, Field(pattern=r"^[^:]+$")] | None = None
    """Ask for this user and a password, except for the status of /healthz and /readyz."""
    password: Text | None = None
    """The password itself; set it in the environment, as DUPWATCH_HTTP__PASSWORD."""
    password_file: Text | None = None
    """The file that holds the password."""
    tls_certificate: Text | None = None
    """Serve HTTPS with the certificate in this file, in PEM format; its key is in tls_key or in the same file."""
    tls_key: Text | None = None
    """A file with the private key of the certificate, in PEM format, without a passphrase."""
    names: tuple[Text, ...] = ()
    """Names of this machine under which articles are shown without a password; addresses and localhost always are.

    Where listen is a loopback address, metrics and health answer under these names only, too.
    """
    flags: Annotated[int, Field(ge=0, le=500)] = 50
    """How many of the latest flags /flags.json has; 0 for no such page."""
    console_url: SiteUrl | None = None
    """The address of the moderators' console, https://HOST, to which /flags.json links."""
    stuck_s: Seconds = 60.0
    """How long the loop may make no progress before /healthz fails."""
    sources_max: Annotated[int, Field(ge=0, le=1_000)] = 50
    """How many sources have metrics of their own: those with rules, then the first to appear; the others share one."""

    @model_validator(mode="after")
    def _credentials_are_complete(self) -> "HttpSection":
        if self.password and self.password_file:
            raise ValueError("password and password_file are both set; leave one out")
        if bool(self.user) != bool(self.password or self.password_file):
            raise ValueError("user goes with password or password_file; set both or none")
        if self.tls_key and not self.tls_certificate:
            raise ValueError("tls_key has no effect without tls_certificate")
        return self


class LogSection(Section):
    """What is logged to standard error."""

    format: Literal["auto", "json", "text"] = "auto"
    """json: one JSON object a line. auto: text on a terminal, otherwise json."""
    level: Literal["debug", "info", "warning", "error"] | None = None
    """The lowest level that is logged; when unset, info while topics are read, otherwise warning."""


class TracingSection(Section):
    """Spans to an OpenTelemetry collector, while topics are read. OpenTelemetry's own OTEL_... variables apply too."""

    enabled: bool = False
    """Whether spans are sent; it needs the packages of the extra tracing."""
    endpoint: Annotated[str, Field(pattern=r"^https?://.+")] | None = None
    """The collector, http://HOST:4318; when unset, OTEL_EXPORTER_OTLP_ENDPOINT."""
    links_max: Annotated[int, Field(ge=0, le=10_000)] = 256
    """How many different traces of its articles the span of a batch links to."""
    close_s: Seconds = 5.0
    """How long the end of a run may wait until the collector has the last spans."""
