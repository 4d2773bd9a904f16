"""What a running server asks: whose secret is this? It follows the token file without a restart."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from consumer.model.errors import ConfigError
from consumer.tokens.token import SECRET, Caller, Refusal, Token, current_time, digest_of
from consumer.tokens.token_file import Signature, Tokens, load, signature_of

log = logging.getLogger("dupwatch")

CHECK_S: Final = 1.0
"""How often the file is looked at, at most: a change counts for requests that begin this much later."""
TRUST_S: Final = 60.0
"""How long what was read counts from the first failure to read the file: enough to mend it. Then all are refused."""


class TokensRead(NamedTuple):
    """The token file was read, at the start or after a change."""

    tokens: int


class TokensUnreadable(NamedTuple):
    """The token file could not be read or is invalid; reported at every attempt."""

    why: str


class SecretRefused(NamedTuple):
    """A request was not let in."""

    refusal: Refusal


class _Failing(NamedTuple):
    """The file cannot be read since then, and whether the log says that nothing counts any more."""

    since_s: float
    is_announced: bool = False

    def is_over(self, now_s: float) -> bool:
        """Return whether what was read before no longer counts."""
        return now_s - self.since_s >= TRUST_S


class KnownTokens:
    """The tokens of a file, for any number of threads.

    A secret is found by its hash in a dictionary. How long that takes may depend on the hash, which tells nothing about
    secrets: nobody can choose a secret so that its hash resembles another. ``report`` gets the occurrences of this
    module, from any thread. ``clock_s`` is monotonic, ``now`` the time of day.

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
        self._lock = threading.Lock()
        self._signature: Signature | None = None
        self._tokens: Mapping[str, Token] = {}
        self._checked_s = clock_s()
        self._failing: _Failing | None = None
        try:
            self._take(*load(path))
        except OSError as error:
            raise ConfigError(_unreadable(path, error)) from error

    def caller(self, secret: str) -> Caller | Refusal:
        """Return who sends this secret, or why it is refused."""
        found = self._found(secret)
        if isinstance(found, Refusal):
            self._report(SecretRefused(found))
        return found

    def _found(self, secret: str) -> Caller | Refusal:
        tokens = self._current()
        if tokens is None:
            return Refusal("unchecked")
        # What cannot be a secret is not hashed, however long it is.
        token = tokens.get(digest_of(secret)) if SECRET.fullmatch(secret) else None
        if token is None:
            return Refusal("unknown")
        state = token.state(self._now())
        return token.caller if state == "valid" else Refusal(state, token.name)

    def _current(self) -> Mapping[str, Token] | None:
        """Return what counts now; None if nothing does."""
        with self._lock:
            now_s = self._clock_s()
            if now_s - self._checked_s >= CHECK_S:
                self._checked_s = now_s
                self._check(now_s)
            return None if self._failing is not None and self._failing.is_over(now_s) else self._tokens

    def _check(self, now_s: float) -> None:
        """Look at the file, and read it if it has changed."""
        try:
            if self._signature != signature_of(self._path.stat()):
                self._take(*load(self._path))
        except OSError as error:
            self._keep(_unreadable(self._path, error), now_s)
        except ConfigError as error:
            self._keep(str(error), now_s)
        else:
            if self._failing is not None:
                log.info("The token file %s can be read again", self._path)
                self._failing = None

    def _take(self, tokens: Tokens, signature: Signature) -> None:
        self._tokens = {token.sha256: token for token in tokens}
        self._signature = signature
        self._report(TokensRead(len(tokens)))

    def _keep(self, why: str, now_s: float) -> None:
        """Keep what is known, for a while."""
        self._report(TokensUnreadable(why))
        if self._failing is None:
            self._failing = _Failing(now_s)
            log.warning("%s. What was read before counts for %g s more; then all requests are refused", why, TRUST_S)
        elif self._failing.is_over(now_s) and not self._failing.is_announced:
            self._failing = self._failing._replace(is_announced=True)
            log.error("%s. All requests are refused until it can be read", why)
        # Whatever is found next is read: the file may be moved back as it was.
        self._signature = None


def _unreadable(path: Path, error: OSError) -> str:
    return f"the token file {path} cannot be read: {error.strerror}"
