"""Where the consumer of a configuration has its pages, for whoever asks it on the same machine."""

from typing import Final

from consumer.config.config import Config
from consumer.model.errors import ConfigError
from consumer.pages.access import parse_address
from consumer.top.client import Access

_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # nothing listens here


def own_url(config: Config) -> str:
    """The address of the pages; ConfigError where there are none, or their port is whichever is free."""
    if not config.http.listen:
        raise ConfigError("http.listen is empty, so this consumer has no pages; name others: dupwatch top URL")
    address = parse_address(config.http.listen)
    if not address.port:
        raise ConfigError(f"http.listen is {config.http.listen}: only the consumer's log says which port it has")
    host = _EVERYWHERE.get(address.host, address.host)
    scheme = "https" if config.http.tls_certificate else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{address.port}"


def with_own_certificate(access: Access, config: Config) -> Access:
    """Trust the certificate that is configured: who shows it is the consumer, by whatever name it is asked."""
    certificate = config.http.tls_certificate
    return access if certificate is None else access._replace(authorities=certificate, checks_name=False)
