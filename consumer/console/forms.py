"""Receives and reads what forms send: not too much, not for too long, and nothing but text."""

import asyncio
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from consumer.console.faults import N_, PageError
from consumer.console.visit import Fields
from consumer.reviews.portable import is_storable

FORM_BYTES_MAX: Final = 64 * 1024
FIELDS_MAX: Final = 1_000
_TYPE: Final = "application/x-www-form-urlencoded"
_LAST: Final = {"Connection": "close"}
"""The rest of a body that is given up is not waited for."""


async def received_form(request: Request, receive_s: float) -> Fields:
    """Receive the form of a POST. Raises ``PageError``, and ``ClientDisconnect`` where the client leaves."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != _TYPE:
        message = N_("This is not what a form of this console sends: it has to be %(type)s.")
        raise PageError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, message, type=_TYPE, headers=_LAST)
    data = bytearray()
    try:
        async with asyncio.timeout(receive_s):
            async for chunk in request.stream():
                data += chunk
                if len(data) > FORM_BYTES_MAX:
                    raise _too_large()
    except TimeoutError as error:
        message = N_("The form did not arrive within %(seconds)s s. Send it again.")
        raise PageError(
            HTTPStatus.REQUEST_TIMEOUT, message, seconds=f"{receive_s:g}", limit="receive_s", headers=_LAST
        ) from error
    return fields_of(bytes(data))


def fields_of(data: bytes) -> Fields:
    """Return the fields of a form or a query. Raises ``PageError`` where it cannot be read."""
    try:
        pairs = parse_qsl(data.decode(), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError as error:
        raise _unreadable() from error
    # No browser sends it, and PostgreSQL would fail.
    if not all(is_storable(name) and is_storable(value) for name, value in pairs):
        raise _unreadable()
    return Fields(pairs)


def _unreadable() -> PageError:
    message = N_("What was sent is not text in UTF-8, has a NUL character, or has more than %(most)s fields.")
    return PageError(HTTPStatus.BAD_REQUEST, message, most=FIELDS_MAX)


def _too_large() -> PageError:
    return PageError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        N_("What was sent has more than %(most)s bytes, and nothing was changed. Send less at a time."),
        limit="body_bytes_max",
        headers=_LAST,
        most=FORM_BYTES_MAX,
    )
