"""Serves the pages of a consumer, and builds its metrics."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import NamedTuple

from consumer.config.config import Config
from consumer.judge.plan_choice import larger_plan
from consumer.judge.settings import JudgeSettings
from consumer.model.program_version import program_version
from consumer.telemetry.metrics import Bounds, Build, Metrics
from consumer.web.access import Access, Account, ListenAddress, check_exposure, parse_address, read_password
from consumer.web.certificates import ServedCertificate, configured_certificate
from consumer.web.page import ServedPage
from consumer.web.page_server import PageServer
from consumer.web.requests import RequestFailed
from consumer.wiring import components
from consumer.workers.engines import EngineName


def consumer_metrics(config: Config) -> Metrics:
    """Build the metrics of this consumer."""
    sources = tuple(config.rules)
    return Metrics(bounds=Bounds(components.read_limits(config), config.http.sources_max, sources, config.workers))


def build_of(settings: JudgeSettings, engine: EngineName) -> Build:
    """Return the build information of a run with these settings and this engine, for metrics."""
    return Build(
        program_version(),
        settings.scheme.name,
        settings.plan.name,
        settings.digest(),
        larger_plan(settings.plan, settings.max_distance) or "",
        engine,
    )


class Exposure(NamedTuple):
    """The address of pages, the access to them, and the certificate if they are served over HTTPS."""

    address: ListenAddress
    access: Access
    certificate: ServedCertificate | None


def exposure_of(config: Config, report: Callable[[object], None]) -> Exposure | None:
    """Return the exposure of pages; None if none are served. ``report`` gets the occurrences of the certificate.

    Raises ``ConfigError`` if other machines could read them without a password, or a configured file cannot be used.
    """
    section = config.http
    if not section.listen:
        return None
    address, access = parse_address(section.listen), Access(_account(config), section.names)
    check_exposure(address, access, is_open=section.open)
    return Exposure(address, access, configured_certificate("http", section.tls_certificate, section.tls_key, report))


def serve_pages(
    config: Config, resources: ExitStack, pages: Mapping[str, ServedPage], report: Callable[[object], None]
) -> str | None:
    """Serve the pages until ``resources`` is closed; return their URL, or None if none are served.

    ``report`` gets every failed request, and the occurrences of the certificate.
    """
    exposure = exposure_of(config, report)
    if exposure is None:
        return None
    address, access, certificate = exposure
    if certificate is not None:
        resources.enter_context(certificate.periodic_check())
    tls = None if certificate is None else certificate.context
    server = PageServer(address, pages, lambda: report(RequestFailed()), access, tls)
    resources.callback(server.close)
    return server.url


def _account(config: Config) -> Account | None:
    section = config.http
    if section.user is None:
        return None
    if section.password_file is not None:
        return Account(section.user, read_password(section.password_file))
    return Account(section.user, section.password or "")
