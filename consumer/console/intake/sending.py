"""Carries out final decisions: releases articles in the store and in the sink.

Every step may be repeated, since a release that is already in the store yields the same event. If a process is killed,
another process repeats the releases that it had claimed, once the claim has expired.
"""

import logging
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.errors import ConfigError, SourceError
from consumer.model.hooks import Hooks
from consumer.reviews import audit, sending
from consumer.reviews.database import Connection, Database
from consumer.reviews.sending import DueRelease
from consumer.store_tools.releases import Attribution
from consumer.telemetry.metrics.console import ReleaseEnded
from storage.clock import MS_PER_S

log = logging.getLogger("dupwatch")

LEASE_S: Final = 30.0
"""How long a process may work on claimed releases before another one may claim them."""
CLAIMED_MAX: Final = 50
"""The maximum number of releases that are claimed and sent together."""
PREPARED_MAX: Final = 1_000
"""The maximum number of releases that are prepared together."""
PREPARED_S: Final = 60.0
"""How long prepared data remain usable."""
PATIENT_ATTEMPTS_MAX: Final = 5
"""After this many failed attempts, a release is carried out even if its article cannot return to the clean feed."""
_LEASE_LEFT_S_MIN: Final = 10.0


class PendingRelease(NamedTuple):
    """A version to release. ``is_patient``: retry later instead of leaving the article out of the clean feed."""

    article_id: str
    version: str
    attribution: Attribution
    is_patient: bool


class ReleasePort(Protocol):
    """The port that releases versions in the store and in the sink."""

    def release(self, releases: Sequence[PendingRelease]) -> Sequence[ConfigError | SourceError | None]:
        """Release versions, and return once the sink has the events and the clean feed has the returning articles.

        Begins at least the first release. Returns the outcomes of the releases that were begun, in order:

        - None: the version was released.
        - ``ConfigError``: the version cannot be released. The store no longer has it, or it is not flagged.
        - ``SourceError``: the article cannot return to the clean feed now, and ``is_patient`` is set.

        Raises ``SinkError`` and the store's errors. May be called again after any error.
        """
        ...

    def prepare(self, versions: Sequence[tuple[str, str]]) -> None:
        """Note the next releases, given by id and version, so that their data can be looked up together.

        These replace the releases of an earlier call. Other versions can also be released, but that takes longer.
        """
        ...


@dataclass(frozen=True, slots=True)
class ReleaseSenderParts:
    """The parts of a release sender.

    ``unwritable`` returns a path that must be writable but is not, or None. While it returns a path, releases wait.
    """

    database: Database
    releases: ReleasePort
    now_ms: Callable[[], int]
    hooks: Hooks
    unwritable: Callable[[], Path | None] = lambda: None


class ReleaseSender:
    """A sender of due releases. Used by one thread. Senders in other processes share the work by claims."""

    def __init__(self, parts: ReleaseSenderParts) -> None:
        self._parts = parts
        self._worker = uuid.uuid4().hex
        self._progress = ThreadProgress(parts.hooks)
        self._claimed: deque[DueRelease] = deque()
        self._claimed_until_s = 0.0
        self._singles_left = 0
        self._is_full = False
        self._prepared: frozenset[tuple[str, str]] = frozenset()
        self._prepared_until_s = 0.0
        self._failures: Counter[int] = Counter()

    def work(self) -> bool:
        """Send due releases, and return whether more may be sent now. Raises the port's and the database's errors."""
        with self._progress.at_work():
            # Another console may carry out the releases, or this one once it can write.
            return self._parts.unwritable() is None and self._send_releases()

    def _send_releases(self) -> bool:
        if time.monotonic() > self._claimed_until_s - _LEASE_LEFT_S_MIN:
            # Another process may claim these releases soon.
            self._claimed.clear()
        if not self._claimed:
            self._is_full = self._prepare() and self._claim()
        while self._claimed:
            self._progress.report()
            self._send_next()
            if time.monotonic() > self._claimed_until_s - _LEASE_LEFT_S_MIN:
                return True
        return self._is_full

    def _send_next(self) -> None:
        """Send the claimed releases together. After an error, send one at a time, so that only failing ones wait."""
        dues = [self._claimed.popleft() for _ in range(1 if self._singles_left else len(self._claimed))]
        self._singles_left = max(0, self._singles_left - 1)
        try:
            outcomes = self._parts.releases.release([self._pending_release(due) for due in dues])
            begun = list(zip(dues, outcomes, strict=False))
            self._end([(due, outcome) for due, outcome in begun if not isinstance(outcome, SourceError)])
        except Exception:
            # These releases remain claimed, and are retried after the others.
            self._claimed.extend(dues)
            if len(dues) == 1:
                self._failures[dues[0].review_id] += 1
            else:
                self._singles_left = len(self._claimed)
            raise
        self._claimed.extendleft(reversed(dues[len(begun) :]))
        put_off = [(due, outcome) for due, outcome in begun if isinstance(outcome, SourceError)]
        # These releases are claimed again after the other claimed ones.
        self._failures.update(due.review_id for due, _ in put_off)
        if put_off:
            raise put_off[0][1]

    def _pending_release(self, due: DueRelease) -> PendingRelease:
        flag, is_patient = due.flag, self._failures[due.review_id] < PATIENT_ATTEMPTS_MAX
        return PendingRelease(flag.article_id, flag.version, Attribution(due.person, due.reason or None), is_patient)

    def _prepare(self) -> bool:
        """Prepare due releases, unless the next ones were prepared recently. Return whether any can be claimed."""
        with self._parts.database.read_connection() as connection:
            coming = sending.claimable_releases(connection, self._worker, self._parts.now_ms(), PREPARED_MAX)
        is_old = time.monotonic() > self._prepared_until_s
        if coming and (is_old or not self._prepared.issuperset(coming[:CLAIMED_MAX])):
            self._parts.releases.prepare(coming)
            self._prepared, self._prepared_until_s = frozenset(coming), time.monotonic() + PREPARED_S
        return bool(coming)

    def _claim(self) -> bool:
        """Claim due releases, and return whether there may be more."""
        parts, lease_ms = self._parts, round(LEASE_S * MS_PER_S)
        self._claimed_until_s = time.monotonic() + LEASE_S
        found = parts.database.write(
            lambda connection: sending.claim_due(connection, self._worker, parts.now_ms(), lease_ms, CLAIMED_MAX)
        )
        self._claimed.extend(found)
        return len(found) == CLAIMED_MAX

    def _end(self, ended: Sequence[tuple[DueRelease, ConfigError | None]]) -> None:
        """Store the outcome of releases: sent, or refused for good, since a retry would fail again."""
        now_ms = self._parts.now_ms()
        self._parts.database.write(lambda connection: _note_ended(connection, ended, now_ms))
        for due, refusal in ended:
            self._failures.pop(due.review_id, None)
            self._parts.hooks.report(ReleaseEnded("sent" if refusal is None else "refused"))
            if refusal is not None:
                log.warning("%r cannot be released: %s", due.flag.article_id, refusal)


def _note_ended(connection: Connection, ended: Sequence[tuple[DueRelease, ConfigError | None]], now_ms: int) -> None:
    for due, refusal in ended:
        if refusal is None:
            sending.mark_sent(connection, due.review_id, now_ms)
        else:
            sending.mark_refused(connection, due.review_id, str(refusal), now_ms)
        audit.add_entry(
            connection,
            at_ms=now_ms,
            person=due.person,
            address="",
            action="release.sent" if refusal is None else "release.refused",
            subject=due.flag.article_id,
            flag_id=due.flag.flag_id,
            why=due.reason if refusal is None else str(refusal),
        )
