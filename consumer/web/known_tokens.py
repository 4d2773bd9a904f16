"""The tokens that a running server knows. It follows changes of the token file without a restart."""

import logging
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from consumer.model.errors import ConfigError
from consumer.web.token import SECRET, Caller, Token, TokenRefusal, current_time, digest_of
from consumer.web.token_file import Signature, Tokens, load, signature_of

log = logging.getLogger("dupwatch")

TRUST_S: Final = 60.0
"""How long tokens stay valid after the file was last usable, so that it can be repaired. After that all are refused."""


class TokensLoaded(NamedTuple):
    """The token file was read, at the start or after a change."""

    tokens: int


class TokensUnreadable(NamedTuple):
    """The token file could not be read or is invalid; reported at every attempt."""

    error: str


class SecretRefused(NamedTuple):
    """The secret of a request was refused."""

    refusal: TokenRefusal


class _TokenTable(NamedTuple):
    """The tokens by the hash of their secret, and the signature of the file that was read."""

    tokens: Mapping[str, Token]
    signature: Signature


class KnownTokens:
    """The tokens of a file, for any number of threads. One thread has to ``look`` at the file about every second.

    ``caller`` never blocks, even if the file system hangs. If no ``look`` has succeeded for ``TRUST_S``, because the
    file cannot be used or ``look`` does not return, all secrets are refused.

    A secret is looked up by its hash in a dictionary. The time of the look-up may depend on the hash, but reveals
    nothing about secrets: nobody can choose a secret so that its hash resembles another. ``report`` gets the
    occurrences of this module, from any thread. ``clock_s`` returns monotonic seconds, ``now`` the time in UTC.

    Raises ``ConfigError`` if the file cannot be used at the start.
    """

    def __init__(
        self,
        path: Path,
        report: Callable[[object], None],
        clock_s: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = current_time,
    ) -> None:
        self._path = path
        self._report = report
        self._clock_s = clock_s
        self._now = now
        self._is_failing = False
        self._has_logged_refusal = False
        self._seen_s = clock_s()
        try:
            self._table = self._table_of(*load(path))
        except OSError as error:
            raise ConfigError(_unreadable(path, error)) from error

    def caller(self, secret: str) -> Caller | TokenRefusal:
        """Return the caller with this secret, or why it is refused."""
        caller = self._find(secret)
        if isinstance(caller, TokenRefusal):
            self._report(SecretRefused(caller))
        return caller

    def look(self) -> None:
        """Check the file, and read it if it has changed or could not be used the last time."""
        began_s = self._clock_s()
        try:
            if self._is_failing or self._table.signature != signature_of(self._path.stat()):
                self._table = self._table_of(*load(self._path))
        except OSError as error:
            self._keep(_unreadable(self._path, error))
        except ConfigError as error:
            self._keep(str(error))
        else:
            self._seen_s = began_s
            if self._is_failing:
                log.info("The token file %s can be read again", self._path)
            self._is_failing = self._has_logged_refusal = False

    @property
    def _is_trusted(self) -> bool:
        return self._clock_s() - self._seen_s < TRUST_S

    def _find(self, secret: str) -> Caller | TokenRefusal:
        if not self._is_trusted:
            return TokenRefusal("unchecked")
        # Only well-formed secrets are hashed, because others may be very long.
        token = self._table.tokens.get(digest_of(secret)) if SECRET.fullmatch(secret) else None
        if token is None:
            return TokenRefusal("unknown")
        state = token.state(self._now())
        return token.caller if state == "valid" else TokenRefusal(state, token.name)

    def _table_of(self, tokens: Tokens, signature: Signature) -> _TokenTable:
        self._report(TokensLoaded(len(tokens)))
        return _TokenTable({token.sha256: token for token in tokens}, signature)

    def _keep(self, why: str) -> None:
        """Keep the known tokens, which stay valid for ``TRUST_S`` after the file was last usable."""
        self._report(TokensUnreadable(why))
        if not self._is_failing:
            log.warning("%s. Known tokens stay valid for at most %g s; then all requests are refused", why, TRUST_S)
        elif not self._is_trusted and not self._has_logged_refusal:
            self._has_logged_refusal = True
            log.error("%s. All requests are refused until it can be read", why)
        self._is_failing = True


def _unreadable(path: Path, error: OSError) -> str:
    return f"the token file {path} cannot be read: {error.strerror}"
