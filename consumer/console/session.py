"""The cookies of a session, and the proof that a form is one of this console.

A person who is signed in has a cookie with the secret of the session. Everybody else, so also somebody whom a proxy
signs in, gets a cookie that says nothing. A form carries a token that is made from either of them: a page of another
site knows neither.

Browsers send the cookies of a host to all its ports. So their names have the identity of the database in them: several
consoles on a host do not take each other's, and those of one group share them.
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
    """The cookies of a request. ``secret`` is that of a session, whether it is still valid or not."""

    is_secure: bool
    identity: str
    secret: str | None
    form_secret: str
    has_form_cookie: bool

    @property
    def form_token(self) -> str:
        """The token that forms of this browser carry."""
        key = (self.secret or self.form_secret).encode()
        return hmac.new(key, _PURPOSE, hashlib.sha256).hexdigest()

    def check_token(self, sent: str) -> None:
        """Raise ``PageError`` unless a form carries the token of this browser."""
        if not hmac.compare_digest(sent.encode(), self.form_token.encode()):
            raise PageError(
                HTTPStatus.FORBIDDEN,
                N_("This form is out of date, and nothing was changed. Go back, reload the page, and send it again."),
            )

    def begin(self, response: Response, secret: str, session_s: float) -> None:
        """Give the browser the secret of a new session."""
        self._set(response, _name(_NAMES, self.identity, is_secure=self.is_secure), secret, round(session_s))

    def end(self, response: Response) -> None:
        """Take the secret from the browser."""
        self._set(response, _name(_NAMES, self.identity, is_secure=self.is_secure), "", 0)

    def keep(self, response: Response) -> None:
        """See to it that the browser has what forms are checked by."""
        if self.secret is None and not self.has_form_cookie:
            name = _name(_FORM_NAMES, self.identity, is_secure=self.is_secure)
            self._set(response, name, self.form_secret, None)

    def _set(self, response: Response, name: str, value: str, age_s: int | None) -> None:
        # Not strict: somebody who follows a link to a flag from a chat is still signed in. Forms have their token.
        response.set_cookie(name, value, max_age=age_s, path="/", secure=self.is_secure, httponly=True, samesite="lax")


def session_of(request: Request, identity: str, *, is_secure: bool) -> SessionCookies:
    """Return what the cookies of a request say to the consoles with the database of this identity."""
    secret = _secret(request.cookies.get(_name(_NAMES, identity, is_secure=is_secure)))
    form_secret = _secret(request.cookies.get(_name(_FORM_NAMES, identity, is_secure=is_secure)))
    return SessionCookies(
        is_secure, identity, secret, form_secret or secrets.token_urlsafe(32), form_secret is not None
    )


def check_origin(request: Request, *, is_secure: bool) -> None:
    """Raise ``PageError`` unless a POST comes from a page of this console.

    Browsers say so in ``Sec-Fetch-Site`` where the connection is safe, and in ``Origin`` always. Behind a proxy that
    changes ``Host`` only the former can tell.
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site is not None:
        is_own = site in {"same-origin", "none"}
    else:
        is_own = origin is not None and _is_own(origin, request.headers.get("host", ""), is_secure=is_secure)
    if not is_own:
        message = N_("This form was sent from a page of another site, and nothing was changed.")
        raise PageError(HTTPStatus.FORBIDDEN, message)


def _name(names: Mapping[bool, str], identity: str, *, is_secure: bool) -> str:
    return f"{names[is_secure]}-{identity}"


def _is_own(origin: str, host: str, *, is_secure: bool) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    # A proxy that ends TLS need not say that it does.
    schemes = {"https"} if is_secure else {"http", "https"}
    return parts.scheme in schemes and parts.netloc.lower() == host.lower() != ""


def _secret(value: str | None) -> str | None:
    return value if value is not None and _SECRET.fullmatch(value) else None
