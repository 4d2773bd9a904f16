"""Session cookies, and the token that proves that a form comes from this console.

People who sign in get a cookie with the secret of their session. Everybody else, including people signed in by a proxy,
gets a cookie with a random secret. Forms carry a token derived from one of these secrets, which pages of other sites
do not know.

Browsers send a host's cookies to all its ports. So cookie names contain the identity of the database: consoles of
different databases on one host do not mix them up, and consoles of one database share them.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from consumer.console.faults import N_, PageError

TOKEN_FIELD: Final = "token"  # noqa: S105  # the name of a field
_NAMES: Final = {False: "dupwatch", True: "__Host-dupwatch"}
_FORM_NAMES: Final = {False: "dupwatch-form", True: "__Host-dupwatch-form"}
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_PURPOSE: Final = b"dupwatch console form"


@dataclass(frozen=True, slots=True)
class SessionCookies:
    """The cookies of a request. ``secret`` is the secret of a session that may have ended, or None.

    ``form_secret`` is the secret in the form cookie. It is new if the browser has no such cookie.
    """

    is_secure: bool
    identity: str
    secret: str | None
    form_secret: str
    has_form_cookie: bool

    @property
    def form_token(self) -> str:
        """The token in this browser's forms."""
        key = (self.secret or self.form_secret).encode()
        return hmac.new(key, _PURPOSE, hashlib.sha256).hexdigest()

    def check_token(self, sent: str) -> None:
        """Raise ``PageError`` unless a form carries the token of this browser."""
        if not hmac.compare_digest(sent.encode(), self.form_token.encode()):
            raise PageError(
                HTTPStatus.FORBIDDEN,
                N_("This form is out of date. Nothing was changed. Go back, reload the page, and send it again."),
            )

    def begin(self, response: Response, secret: str, session_s: float) -> None:
        """Give the browser the secret of a new session."""
        self._set(response, _name(_NAMES, self.identity, is_secure=self.is_secure), secret, round(session_s))

    def end(self, response: Response) -> None:
        """Delete the session cookie."""
        self._set(response, _name(_NAMES, self.identity, is_secure=self.is_secure), "", 0)

    def keep(self, response: Response) -> None:
        """Set the form cookie, unless the browser already has a cookie that forms can be checked against."""
        if self.secret is None and not self.has_form_cookie:
            name = _name(_FORM_NAMES, self.identity, is_secure=self.is_secure)
            self._set(response, name, self.form_secret, None)

    def _set(self, response: Response, name: str, value: str, age_s: int | None) -> None:
        # Lax, not strict, so that people who follow a link from a chat are signed in. The token protects forms.
        response.set_cookie(name, value, max_age=age_s, path="/", secure=self.is_secure, httponly=True, samesite="lax")


def session_of(request: Request, identity: str, *, is_secure: bool) -> SessionCookies:
    """Return the cookies of a request for the database with this identity."""
    secret = _secret(request.cookies.get(_name(_NAMES, identity, is_secure=is_secure)))
    form_secret = _secret(request.cookies.get(_name(_FORM_NAMES, identity, is_secure=is_secure)))
    return SessionCookies(
        is_secure, identity, secret, form_secret or secrets.token_urlsafe(32), form_secret is not None
    )


def check_origin(request: Request, *, is_secure: bool) -> None:
    """Raise ``PageError`` unless a POST comes from a page of this console.

    Browsers send ``Sec-Fetch-Site`` over secure connections, and ``Origin`` always. Behind a proxy that changes
    ``Host``, only ``Sec-Fetch-Site`` is reliable.
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site is not None:
        is_own = site in {"same-origin", "none"}
    else:
        is_own = origin is not None and _is_own(origin, request.headers.get("host", ""), is_secure=is_secure)
    if not is_own:
        message = N_("This form was sent from a page of another site. Nothing was changed.")
        raise PageError(HTTPStatus.FORBIDDEN, message)


def _name(names: Mapping[bool, str], identity: str, *, is_secure: bool) -> str:
    return f"{names[is_secure]}-{identity}"


def _is_own(origin: str, host: str, *, is_secure: bool) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    # A proxy that terminates TLS may not say so.
    schemes = {"https"} if is_secure else {"http", "https"}
    return parts.scheme in schemes and parts.netloc.lower() == host.lower() != ""


def _secret(value: str | None) -> str | None:
    return value if value is not None and _SECRET.fullmatch(value) else None
