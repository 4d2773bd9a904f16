"""Reads the host that a request names: in its ``Host`` header, or in its target where that is a whole URL."""

import ipaddress
import re
from collections.abc import Sequence
from typing import Final

_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([0-9]{1,5}))?")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
_PORT_MAX: Final = 65_535


class BadHost(Exception):  # noqa: N818  # named for the host
    """A request does not name one host. It is to be answered with 400 (RFC 9112, 3.2)."""


def host_named(sent: Sequence[str], target: str) -> str | None:
    """Return the host in these ``Host`` headers without its port, in small letters; None where they name none.

    The host in a target such as ``http://HOST/path`` counts instead. Raises ``BadHost``.
    """
    if len(sent) > 1:
        raise BadHost("The request has several Host headers. Send one.")
    # A client that has no host to name sends an empty header, or, in HTTP/1.0, none.
    text = sent[0].strip(" \t") if sent else ""
    host = _parsed(text) if text else None
    url = _URL.match(target)
    return host if url is None else _parsed(url[1])


def _parsed(text: str) -> str:
    """Return the host in ``HOST``, ``HOST:PORT`` or ``[IPV6]:PORT``. Raises ``BadHost`` for anything else."""
    found = _HOST.fullmatch(text)
    if found is None or int(found[3] or 0) > _PORT_MAX:
        raise _bad()
    address, name, _ = found.groups()
    if address is None:
        return str(name).casefold()
    try:
        return str(ipaddress.IPv6Address(address))
    except ValueError as error:
        raise _bad() from error


def _bad() -> BadHost:
    return BadHost("The Host of the request is malformed. Send HOST, HOST:PORT or [IPV6]:PORT.")
