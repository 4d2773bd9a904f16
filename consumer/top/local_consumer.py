"""Finds the pages of the consumer that a configuration describes, on the same machine."""

from typing import Final

from consumer.config.config import Config
from consumer.model.errors import ConfigError
from consumer.pages.access import parse_address
from consumer.top.client import ClientAccess

_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # only compared


def own_url(config: Config) -> str:
    """Return the URL of the pages. Raises ``ConfigError`` if there are none, or if their port is not fixed."""
    if not config.http.listen:
        raise ConfigError("http.listen is empty, so this consumer has no pages; name a consumer: dupwatch top URL")
    address = parse_address(config.http.listen)
    if not address.port:
        raise ConfigError(
            f"http.listen is {config.http.listen}: the log of the consumer has its port; name it: dupwatch top URL"
        )
    host = _EVERYWHERE.get(address.host, address.host)
    scheme = "https" if config.http.tls_certificate else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{address.port}"


def with_own_certificate(access: ClientAccess, config: Config) -> ClientAccess:
    """Trust the configured certificate: whoever has it is the consumer, under any host name."""
    certificate = config.http.tls_certificate
    return access if certificate is None else access._replace(authorities=certificate, checks_name=False)
