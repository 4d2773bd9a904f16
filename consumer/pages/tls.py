"""HTTPS for the pages, from PEM files."""

import ssl

from consumer.model.errors import ConfigError


def tls_context(certificate: str, key: str | None) -> ssl.SSLContext:
    """Return the context that HTTPS is served with, from PEM files. Raises ``ConfigError`` if they cannot be used."""

    def no_passphrase() -> str:
        raise ConfigError(
            "http.tls_key: the key has a passphrase, which a service cannot ask for; use a key without one"
        )

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, no_passphrase)
    except OSError as error:
        raise ConfigError(
            f"http.tls_certificate: {certificate}{f' with {key}' if key else ''} cannot be used: "
            f"{error.strerror or error}"
        ) from error
    return context
