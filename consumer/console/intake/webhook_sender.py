"""Sends due events to webhooks. Each attempt has its own thread, so that a slow receiver does not delay others.

One thread claims deliveries, starts an attempt for each, and stores the results. If a process is killed, another
process sends the events that it had claimed, under the same ids, once the claims have expired.
"""

import logging
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from consumer.console.intake.background import BackgroundWork, WorkSchedule
from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.hooks import Hooks
from consumer.reviews import audit
from consumer.reviews.database import Connection, Database, DatabaseUnavailable, identity
from consumer.reviews.outbox import deliveries, webhooks
from consumer.reviews.outbox.deliveries import DeliveryClaim, Destination, Failure, LastAttempt
from consumer.reviews.outbox.webhooks import OffReason
from consumer.telemetry.metrics.webhooks import DeliveryEnded, WebhooksCounted
from consumer.webhooks.courier import GONE, AttemptOutcome, Courier, WebhookMessage
from consumer.webhooks.retrying import RETRY_AFTER_MAX_S, has_failed_too_long, next_try_ms
from storage.clock import MS_PER_S

log = logging.getLogger("dupwatch")

ATTEMPTS_MAX: Final = 4
"""The maximum number of simultaneous attempts for a webhook. A failing webhook gets one at a time."""
LEASE_S: Final = 60.0
"""How long a claim lasts; an attempt takes at most ten seconds."""
LOOK_S: Final = 1.0
"""The pause between two searches for due deliveries."""
PAUSE_S: Final = 0.5
"""The pause of a webhook after its first failure, to spare a receiver that is down. Each further failure doubles it."""
PAUSE_MAX_S: Final = 30.0
"""The longest pause of a failing webhook, unless the receiver asks for a longer one."""
_END_S: Final = 2.0
"""How long ``close`` waits for attempts. Attempts that take longer are repeated after their claims have expired."""
_TIDY_S: Final = 60.0
_DOUBLINGS_MAX: Final = 10
_OFF_REASONS: Final = {"day": "a delivery has failed for a day", "gone": "its receiver answered that it is gone"}


def message_id(database_name: str, event_id: int, at_ms: int) -> str:
    """Return the id of an event for receivers, the same in every attempt and every console of a database.

    It includes the time, since different events may get the same numbers after a backup is restored.
    """
    return f"{database_name}-{event_id}-{at_ms}"


def no_wake() -> None:
    """Wake nobody."""


@dataclass(slots=True)
class WebhookParts:
    """The parts of a webhook sender. Each attempt's thread calls ``wake`` at its end.

    ``chance`` returns random numbers from 0 to 1, which spread retries.
    """

    database: Database
    courier: Courier
    now_ms: Callable[[], int]
    hooks: Hooks
    wake: Callable[[], None] = no_wake
    chance: Callable[[], float] = field(default=random.random)


class DeliveryAttempt(NamedTuple):
    """An attempt that has ended."""

    destination: Destination
    claim: DeliveryClaim
    outcome: AttemptOutcome


class WebhookSender:
    """A sender of due deliveries. Used by one thread. Senders in other processes share the work by claims."""

    def __init__(self, parts: WebhookParts) -> None:
        self._parts = parts
        self._progress = ThreadProgress(parts.hooks)
        self._name = ""
        self._ended: deque[DeliveryAttempt] = deque()
        # By webhook: attempts that are under way or not stored yet, and consecutive failures.
        self._in_flight: Counter[int] = Counter()
        self._failures: Counter[int] = Counter()
        self._tidied_ms = 0

    def work(self) -> bool:
        """Store the results of ended attempts, and begin new ones. Raises ``DatabaseUnavailable``.

        Return False, because attempts wake the thread when they end.
        """
        with self._progress.at_work():
            self._store_ended()
            self._tidy()
            self._begin()
        return False

    def close(self) -> None:
        """Wait briefly for attempts under way, and store their results."""
        ends_s = time.monotonic() + _END_S
        while self._in_flight.total() > len(self._ended) and time.monotonic() < ends_s:
            time.sleep(0.01)
        # Attempts whose results are not stored are repeated.
        with suppress(DatabaseUnavailable):
            self._store_ended()

    def _store_ended(self) -> None:
        ended = list(self._ended)
        if not ended:
            return
        now_ms, chance = self._parts.now_ms(), self._parts.chance
        note = partial(_store_results, ended=ended, failures_before=self._failures, now_ms=now_ms, chance=chance)
        noted = self._parts.database.write(note)
        for attempt in ended:
            self._ended.popleft()
            self._in_flight[attempt.destination.webhook_id] -= 1
            self._parts.hooks.report(DeliveryEnded(attempt.outcome.result))
        # Leave out the detail, which the receiver controls, and the URL, which may contain a password.
        causes = {attempt.destination: attempt.outcome.cause for attempt in ended if attempt.outcome.cause}
        for destination, cause in causes.items():
            if not self._failures[destination.webhook_id]:
                log.warning("The webhook %r fails: %s", destination.name, cause)
        self._failures = noted.failures
        for destination, reason in noted.given_up:
            log.warning("The webhook %r is off: %s", destination.name, _OFF_REASONS[reason])

    def _tidy(self) -> None:
        """Forget expired former secrets, and end waits that are too long because the clock was ahead."""
        now_ms = self._parts.now_ms()
        # The difference is negative if the clock was set back.
        if abs(now_ms - self._tidied_ms) >= _TIDY_S * MS_PER_S:
            self._parts.database.write(partial(_end_expired, now_ms=now_ms))
            self._tidied_ms = now_ms

    def _begin(self) -> None:
        parts, now_ms = self._parts, self._parts.now_ms()
        with parts.database.read_connection() as connection:
            self._name = self._name or identity(connection)
            due = [
                destination
                for destination in deliveries.destinations(connection, now_ms)
                if self._room(destination.webhook_id) > 0
                and deliveries.is_any_due(connection, destination.webhook_id, now_ms)
            ]
        for destination in due:
            self._progress.report()
            claim = partial(
                deliveries.claim_due_deliveries,
                webhook_id=destination.webhook_id,
                now_ms=now_ms,
                lease_ms=round(LEASE_S * MS_PER_S),
                limit=self._room(destination.webhook_id),
            )
            for claimed in parts.database.write(claim):
                self._in_flight[destination.webhook_id] += 1
                threading.Thread(target=self._send, args=(destination, claimed), name="webhook", daemon=True).start()

    def _room(self, webhook_id: int) -> int:
        """Return how many more attempts of a webhook may begin now."""
        return (1 if self._failures[webhook_id] else ATTEMPTS_MAX) - self._in_flight[webhook_id]

    def _send(self, destination: Destination, claim: DeliveryClaim) -> None:
        """Make an attempt. Runs in a thread of its own."""
        parts, name = self._parts, message_id(self._name, claim.event_id, claim.at_ms)
        message = WebhookMessage(name, claim.payload.encode(), destination.secrets)
        try:
            outcome = parts.courier.send(destination.url, message, parts.now_ms() / MS_PER_S)
        except Exception:
            log.exception("An attempt to send to the webhook %r failed", destination.name)
            outcome = AttemptOutcome("unreachable", cause="connection")
        self._ended.append(DeliveryAttempt(destination, claim, outcome))
        parts.wake()


def webhook_background(parts: WebhookParts, stopping: threading.Event, running: ExitStack) -> BackgroundWork:
    """Return the work that sends to webhooks. ``running`` closes the sender.

    The caller must enter the work in ``running``, so that its thread ends first.
    """
    sender = WebhookSender(parts)
    background = BackgroundWork("webhooks", sender.work, WorkSchedule(LOOK_S, "database"), parts.hooks, stopping)
    parts.wake = background.wake
    running.callback(sender.close)
    return background


def count_webhooks(database: Database, now_ms: int, report: Callable[[object], None]) -> None:
    """Report the age of the oldest event for an enabled webhook, and how many webhooks the console has turned off.

    Raises ``DatabaseUnavailable``.
    """
    with database.read_connection() as connection:
        backlog = deliveries.backlog(connection)
    oldest_ms = now_ms if backlog.oldest_ms is None else backlog.oldest_ms
    oldest_s = max(0, now_ms - oldest_ms) / MS_PER_S
    report(WebhooksCounted(oldest_s, backlog.given_up))


def _end_expired(connection: Connection, now_ms: int) -> None:
    webhooks.end_expired_secrets(connection, now_ms)
    deliveries.end_long_waits(connection, now_ms)


class _FailureReport(NamedTuple):
    """The consecutive failures of each webhook, and the webhooks that were turned off, with the reasons."""

    failures: Counter[int]
    given_up: list[tuple[Destination, OffReason]]


def _store_results(
    connection: Connection,
    ended: Sequence[DeliveryAttempt],
    failures_before: Counter[int],
    now_ms: int,
    chance: Callable[[], float],
) -> _FailureReport:
    """Store the results of attempts, and turn off webhooks whose receivers are gone or have failed for too long.

    ``failures_before`` has the earlier consecutive failures of each webhook.
    """
    accepted = [attempt.claim for attempt in ended if attempt.outcome.result == "accepted"]
    if accepted:
        deliveries.note_accepted(connection, accepted, now_ms)
    noted = _FailureReport(failures_before.copy(), [])
    for destination, claim, outcome in ended:
        webhook_id, paused_until_ms = destination.webhook_id, None
        if outcome.result == "accepted":
            noted.failures.pop(webhook_id, None)
        else:
            failing_since_ms = now_ms if claim.failing_since_ms is None else claim.failing_since_ms
            due_ms = next_try_ms(failing_since_ms, now_ms, outcome.retry_after_s, chance())
            deliveries.note_failed(connection, Failure(claim, outcome.status, outcome.explanation, due_ms), now_ms)
            reason = _off_reason(connection, webhook_id, outcome, now_ms)
            if reason is not None and _turn_off(connection, destination, reason, now_ms):
                noted.given_up.append((destination, reason))
            paused_until_ms = now_ms + _pause_ms(noted.failures[webhook_id], outcome.retry_after_s)
            noted.failures[webhook_id] += 1
        last = LastAttempt(now_ms, outcome.status, outcome.explanation, paused_until_ms)
        deliveries.note_last(connection, webhook_id, last)
    return noted


def _pause_ms(failures: int, retry_after_s: float | None) -> int:
    """Return how long to pause a webhook that has just failed, after ``failures`` earlier consecutive failures."""
    pause_s = min(PAUSE_S * 2.0 ** min(failures, _DOUBLINGS_MAX), PAUSE_MAX_S)
    return round(MS_PER_S * max(pause_s, min(retry_after_s or 0.0, RETRY_AFTER_MAX_S)))


def _off_reason(connection: Connection, webhook_id: int, outcome: AttemptOutcome, now_ms: int) -> OffReason | None:
    """Return why a webhook that has just failed is turned off, or None if it stays on."""
    if outcome.status == GONE:
        return "gone"
    since_ms = deliveries.failing_since(connection, webhook_id)
    return "day" if since_ms is not None and has_failed_too_long(since_ms, now_ms) else None


def _turn_off(connection: Connection, destination: Destination, reason: OffReason, now_ms: int) -> bool:
    """Turn a webhook off, record that in the audit log, and return whether it was on."""
    if not webhooks.turn_off(connection, destination.webhook_id, reason, now_ms):
        return False
    subject, why = destination.name, _OFF_REASONS[reason]
    audit.add_entry(connection, at_ms=now_ms, person="", address="", action="webhook.off", subject=subject, why=why)
    return True
