"""Parses requests as h11 does, and refuses those whose framing two servers could understand differently."""

from typing import Final

import h11
from typing_extensions import override

_LENGTH: Final = b"content-length"
_ENCODING: Final = b"transfer-encoding"
_CHUNKED_SINCE: Final = b"1.1"
_PARTS: Final = (h11.Request, h11.Data, h11.EndOfMessage)


class RequestParser(h11.Connection):
    """The parser of one connection. ``head_bytes_max`` limits a head that has not arrived yet.

    A request with both ``Content-Length`` and ``Transfer-Encoding`` may hide another one behind a proxy that goes by
    the former, and so may one with the latter in HTTP/1.0 (RFC 9112, 6.1). h11 goes by ``Transfer-Encoding`` and keeps
    the connection.
    """

    def __init__(self, head_bytes_max: int) -> None:
        super().__init__(h11.SERVER, head_bytes_max)

    @override
    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event. Raises ``h11.RemoteProtocolError``; the connection has to be closed then."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            _check_framing(event)
        return event


def several_requests(data: bytes) -> bool:
    """Return whether these bytes go on behind their first request. A malformed request counts as one."""
    if not data:
        # To h11 no bytes are the end of the connection.
        return False
    parser = RequestParser(len(data))
    parser.receive_data(data)
    try:
        while isinstance(event := parser.next_event(), _PARTS):
            pass
    except h11.RemoteProtocolError:
        return False
    return event is h11.PAUSED and bool(parser.trailing_data[0])


def _check_framing(request: h11.Request) -> None:
    names = {name for name, _ in request.headers}
    if _ENCODING not in names:
        return
    if _LENGTH in names:
        raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding; send one of them")
    if request.http_version < _CHUNKED_SINCE:
        raise h11.RemoteProtocolError("Transfer-Encoding needs HTTP/1.1")
