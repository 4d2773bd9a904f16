"""For which host names a certificate is good, as OpenSSL finds out in a handshake in memory."""

import ssl
from collections.abc import Iterable

_HOSTNAME_MISMATCH = 62
"""X509_V_ERR_HOSTNAME_MISMATCH of OpenSSL."""


def names_not_in(certificate: str, key: str | None, names: Iterable[str]) -> list[str]:
    """Return the names that a certificate is not good for. Raises ``OSError`` where it cannot be used."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # Without a password here, OpenSSL would prompt for it on the terminal.
    server.load_cert_chain(certificate, key, password="")
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The certificate itself is trusted, whoever has signed it: only its names are in question.
    client.load_verify_locations(certificate)
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return [name for name in names if not _is_good_for(name, server, client)]


def _is_good_for(name: str, server: ssl.SSLContext, client: ssl.SSLContext) -> bool:
    """Shake hands until the client has seen the certificate. A fault other than of the name is not told here."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname=name)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    try:
        for side in (asking, answering, asking):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    except ssl.SSLCertVerificationError as error:
        return error.verify_code != _HOSTNAME_MISMATCH
    return True
