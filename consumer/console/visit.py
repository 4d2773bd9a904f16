"""Requests, in the form in which page functions get them.

``Visit`` is any request. ``SignedInVisit`` comes from a person who is signed in and has the role that the route needs.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from consumer.console.context import ConsoleContext
from consumer.console.faults import N_, PageError
from consumer.console.i18n import Language
from consumer.console.session import SessionCookies
from consumer.reviews import audit
from consumer.reviews.database import Connection
from consumer.reviews.people import Person
from consumer.reviews.portable import is_storable

_INTEGER_DIGITS_MAX = 19
INTEGER_MAX = 2**63 - 1
"""The largest id of a row."""
FORM_BYTES_MAX: Final = 64 * 1024
FIELDS_MAX: Final = 1_000
_TYPE: Final = "application/x-www-form-urlencoded"
_CLOSE_CONNECTION: Final = {"Connection": "close"}
"""The header that closes the connection after a refused body, so that the rest is not read."""


class Fields:
    """The fields of a query or a form. A field may occur several times, or not at all.

    Methods that return a single value return the last one.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]] = ()) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def all(self, name: str) -> list[str]:
        """Return all values of a field."""
        return list(self._values.get(name, ()))

    def text(self, name: str, chars_max: int = 2_000) -> str:
        """Return a field without white space around it, or "" if it is missing. CRLF becomes a line feed.

        Raises ``PageError`` if the field is too long.
        """
        value = self._values.get(name, [""])[-1].strip().replace("\r\n", "\n")
        if len(value) > chars_max:
            message = N_("“%(field)s” has %(num)s characters; the limit is %(most)s.")
            raise PageError(HTTPStatus.BAD_REQUEST, message, field=name, num=len(value), most=chars_max)
        return value

    def exact(self, name: str, chars_max: int) -> str:
        """Return a field unchanged, or "" if it is missing or too long."""
        value = self._values.get(name, [""])[-1]
        return value if len(value) <= chars_max else ""

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a field as a whole number from 0 to 2^63 - 1, or ``default`` if it is empty.

        Raises ``PageError`` if it is not such a number.
        """
        value = self._values.get(name, [""])[-1].strip()
        if not value and default is not None:
            return default
        return _integer(name, value)

    def integers(self, name: str) -> list[int]:
        """Return all values of a field as whole numbers, as ``integer`` does. Raises ``PageError``."""
        return [_integer(name, value) for value in self._values.get(name, ())]

    def number(self, name: str) -> float | None:
        """Return a field as a number, or None if it is empty. Raises ``PageError`` unless it is a finite number."""
        value = self._values.get(name, [""])[-1].strip()
        if not value:
            return None
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if number != number or abs(number) == float("inf"):  # noqa: PLR0124  # nan is not itself
            raise _not_a_number(name)
        return number

    def day(self, name: str, *, later_days: int = 0) -> date | None:
        """Return a field as a date plus ``later_days``, or None if it is empty.

        Raises ``PageError`` unless it is a date.
        """
        value = self.text(name)
        if not value:
            return None
        try:
            return date.fromisoformat(value) + timedelta(days=later_days)
        except (ValueError, OverflowError) as error:
            message = N_("“%(field)s” is not a date. Write it as 2026-11-21.")
            raise PageError(HTTPStatus.BAD_REQUEST, message, field=name) from error

    def pairs(self) -> list[tuple[str, str]]:
        """Return all fields with all their values."""
        return [(name, value) for name, values in self._values.items() for value in values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request that is being answered."""

    context: ConsoleContext
    request_id: str
    # Without the query.
    path: str
    # The client's IP address, as far as known behind a proxy.
    address: str
    language: Language
    session: SessionCookies
    # The parameters of the path, such as flag_id.
    path_parameters: Mapping[str, Any] = field(default_factory=dict)
    query: Fields = field(default_factory=Fields)
    form: Fields = field(default_factory=Fields)

    @property
    def signed_in(self) -> Person | None:
        """The person who is signed in, or None."""
        return None

    def page(self, template: str, *, status: int = HTTPStatus.OK, **values: object) -> Response:
        """Return a page rendered from a template."""
        shared = {
            "visit": self,
            "person": self.signed_in,
            "section": self.context.section,
            "has_banks": self.context.banks is not None,
            "warnings": self.context.warnings(),
            "now_ms": self.context.now_ms(),
            "form_token": self.session.form_token,
        }
        return HTMLResponse(self.context.rendering.page(template, self.language, {**shared, **values}), status)

    def redirect(self, path: str, **query: object) -> Response:
        """Return a redirect to another page of the console, which browsers request with GET. Leaves out None values."""
        fields = {name: value for name, value in query.items() if value is not None}
        return RedirectResponse(f"{path}?{urlencode(fields)}" if fields else path, HTTPStatus.SEE_OTHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedInVisit(Visit):
    """A request of a person who is signed in."""

    person: Person

    @property
    def signed_in(self) -> Person:
        """The person who is signed in."""
        return self.person

    def add_audit_entry(
        self,
        connection: Connection,
        action: str,
        *,
        at_ms: int | None = None,
        subject: str = "",
        flag_id: int | None = None,
        why: str = "",
    ) -> None:
        """Record an action of this person in the audit log, in the transaction of ``connection``."""
        audit.add_entry(
            connection,
            at_ms=self.context.now_ms() if at_ms is None else at_ms,
            person=self.person.name,
            address=self.address,
            action=action,
            subject=subject,
            flag_id=flag_id,
            why=why,
        )


@dataclass(frozen=True, slots=True)
class StreamedResponse:
    """A response made piece by piece in threads, so that long exports are never in memory as a whole.

    ``piece`` takes a position, or None for the first piece, and returns data and the next position, None at the end.
    """

    content_type: str
    filename: str
    piece: Callable[[str | None], tuple[bytes, str | None]]


Answer = Response | StreamedResponse


def _integer(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= _INTEGER_DIGITS_MAX and int(value) <= INTEGER_MAX):
        raise _not_a_number(name)
    return int(value)


def _not_a_number(name: str) -> PageError:
    return PageError(HTTPStatus.BAD_REQUEST, N_("“%(field)s” is not a number."), field=name)


async def received_form(request: Request, receive_s: float, bytes_max: int) -> bytes:
    """Return the body of a POST. Raises ``ClientDisconnect`` if the client leaves.

    Raises ``PageError`` if the body is not a form, is longer than ``bytes_max``, or takes longer than ``receive_s``.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != _TYPE:
        message = N_("The console cannot read this form: its content type must be %(type)s.")
        raise PageError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, message, type=_TYPE, headers=_CLOSE_CONNECTION)
    data = bytearray()
    try:
        async with asyncio.timeout(receive_s):
            async for chunk in request.stream():
                data += chunk
                if len(data) > bytes_max:
                    raise _too_large(bytes_max)
    except TimeoutError as error:
        message = N_("The form did not arrive within %(seconds)s s. Send it again.")
        raise PageError(
            HTTPStatus.REQUEST_TIMEOUT, message, seconds=f"{receive_s:g}", limit="receive_s", headers=_CLOSE_CONNECTION
        ) from error
    return bytes(data)


def fields_of(data: bytes) -> Fields:
    """Return the fields of a form or a query. Raises ``PageError`` if it cannot be read."""
    try:
        pairs = parse_qsl(data.decode(), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError as error:
        raise _unreadable() from error
    # Browsers never send text that PostgreSQL cannot store.
    if not all(is_storable(name) and is_storable(value) for name, value in pairs):
        raise _unreadable()
    return Fields(pairs)


def _unreadable() -> PageError:
    message = N_(
        "The address or the form is not UTF-8 text, contains a NUL character, or has more than %(most)s fields."
    )
    return PageError(HTTPStatus.BAD_REQUEST, message, most=FIELDS_MAX)


def _too_large(bytes_max: int) -> PageError:
    return PageError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        N_("The form is larger than %(most)s bytes. Nothing was changed. Send less at a time."),
        limit="body_bytes_max",
        headers=_CLOSE_CONNECTION,
        most=bytes_max,
    )
