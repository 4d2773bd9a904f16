"""Sends what is due to webhooks: each with threads of its own, so that a slow receiver holds up no other.

One thread claims deliveries, starts an attempt for each, and notes how attempts ended. A process that is killed in
between leaves nothing undone: when its claims have run out, another one sends the same events under the same numbers.
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
from consumer.lifecycle.turns import Turns
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

AT_ONCE: Final = 4
"""Attempts of one webhook at the same time; one while it fails."""
LEASE_S: Final = 60.0
"""How long a process has for what it claims; an attempt takes ten seconds at most."""
LOOK_S: Final = 1.0
PAUSE_S: Final = 0.5
PAUSE_MAX_S: Final = 30.0
"""A webhook that fails pauses for so long at most, whatever is due: a receiver that is away is asked for little."""
_END_S: Final = 2.0
"""How long the end waits for attempts. Those that take longer are left behind, and made again by another process."""
_TIDY_S: Final = 60.0
_DOUBLINGS_MAX: Final = 10
_OFF: Final = {"day": "a delivery has failed for a day", "gone": "its receiver answered that it is gone"}


def message_id(database_name: str, event_id: int, at_ms: int) -> str:
    """Return what names an event for receivers, the same in every attempt and for every console of a database.

    With its time: after a restored backup other events get the same numbers.
    """
    return f"{database_name}-{event_id}-{at_ms}"


def no_wake() -> None:
    """Wake nobody."""


@dataclass(slots=True)
class WebhookParts:
    """What a sender works with. ``wake`` is called by threads whose attempt has ended; ``chance`` spreads retries."""

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
    """Sends what is due; used by one thread. Others may do so in other processes."""

    def __init__(self, parts: WebhookParts) -> None:
        self._parts = parts
        self._turns = Turns(parts.hooks)
        self._name = ""
        self._ended: deque[DeliveryAttempt] = deque()
        # By webhook: attempts that are being made or are not noted yet, and failures in a row.
        self._flying: Counter[int] = Counter()
        self._failures: Counter[int] = Counter()
        self._tidied_ms = 0

    def work(self) -> bool:
        """Note how attempts ended, and begin others. Raises ``DatabaseUnavailable``; returns False."""
        with self._turns.at_work():
            self._note()
            self._tidy()
            self._begin()
        return False

    def close(self) -> None:
        """Wait a little for attempts that are being made, and note how they ended."""
        ends_s = time.monotonic() + _END_S
        while self._flying.total() > len(self._ended) and time.monotonic() < ends_s:
            time.sleep(0.01)
        # Without a note they are made again.
        with suppress(DatabaseUnavailable):
            self._note()

    def _note(self) -> None:
        ended = list(self._ended)
        if not ended:
            return
        now_ms, chance = self._parts.now_ms(), self._parts.chance
        note = partial(_noted, ended=ended, before=self._failures, now_ms=now_ms, chance=chance)
        noted = self._parts.database.written(note)
        for attempt in ended:
            self._ended.popleft()
            self._flying[attempt.destination.webhook_id] -= 1
            self._parts.hooks.report(DeliveryEnded(attempt.outcome.result))
        # Without the detail, which a receiver chose, and the URL, which may have a password in its path.
        causes = {attempt.destination: attempt.outcome.cause for attempt in ended if attempt.outcome.cause}
        for destination, cause in causes.items():
            if not self._failures[destination.webhook_id]:
                log.warning("The webhook %r fails: %s", destination.name, cause)
        self._failures = noted.failures
        for destination, why in noted.given_up:
            log.warning("The webhook %r is off: %s", destination.name, _OFF[why])

    def _tidy(self) -> None:
        """Forget former secrets that are no longer used, and end waits of a clock that was ahead."""
        now_ms = self._parts.now_ms()
        # The clock may be set back too.
        if abs(now_ms - self._tidied_ms) >= _TIDY_S * MS_PER_S:
            self._parts.database.written(partial(_tidied, now_ms=now_ms))
            self._tidied_ms = now_ms

    def _begin(self) -> None:
        parts, now_ms = self._parts, self._parts.now_ms()
        with parts.database.reading() as connection:
            self._name = self._name or identity(connection)
            due = [
                destination
                for destination in deliveries.destinations(connection, now_ms)
                if self._room(destination.webhook_id) > 0
                and deliveries.is_any_due(connection, destination.webhook_id, now_ms)
            ]
        for destination in due:
            self._turns.turn()
            claim = partial(
                deliveries.claim_due_deliveries,
                webhook_id=destination.webhook_id,
                now_ms=now_ms,
                lease_ms=round(LEASE_S * MS_PER_S),
                limit=self._room(destination.webhook_id),
            )
            for claimed in parts.database.written(claim):
                self._flying[destination.webhook_id] += 1
                threading.Thread(target=self._send, args=(destination, claimed), name="webhook", daemon=True).start()

    def _room(self, webhook_id: int) -> int:
        """Return how many more attempts of a webhook may begin now."""
        return (1 if self._failures[webhook_id] else AT_ONCE) - self._flying[webhook_id]

    def _send(self, destination: Destination, claim: DeliveryClaim) -> None:
        """Make an attempt, in a thread of its own."""
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
    """Return what sends to webhooks in a thread. ``running`` waits for its attempts after the thread has ended."""
    sender = WebhookSender(parts)
    background = BackgroundWork("webhooks", sender.work, WorkSchedule(LOOK_S, "database"), parts.hooks, stopping)
    parts.wake = background.wake
    running.callback(sender.close)
    return background


def count_webhooks(database: Database, now_ms: int, report: Callable[[object], None]) -> None:
    """Report how long webhooks wait, and how many are off. Raises ``DatabaseUnavailable``."""
    with database.reading() as connection:
        backlog = deliveries.backlog(connection)
    oldest_ms = now_ms if backlog.oldest_ms is None else backlog.oldest_ms
    oldest_s = max(0, now_ms - oldest_ms) / MS_PER_S
    report(WebhooksCounted(oldest_s, backlog.given_up))


def _tidied(connection: Connection, now_ms: int) -> None:
    webhooks.end_expired(connection, now_ms)
    deliveries.end_long_waits(connection, now_ms)


class _FailureReport(NamedTuple):
    """The failures in a row of each webhook, and the webhooks to which nothing more is sent."""

    failures: Counter[int]
    given_up: list[tuple[Destination, OffReason]]


def _noted(
    connection: Connection,
    ended: Sequence[DeliveryAttempt],
    before: Counter[int],
    now_ms: int,
    chance: Callable[[], float],
) -> _FailureReport:
    """Note how attempts ended."""
    accepted = [attempt.claim for attempt in ended if attempt.outcome.result == "accepted"]
    if accepted:
        deliveries.note_accepted(connection, accepted, now_ms)
    noted = _FailureReport(before.copy(), [])
    for destination, claim, outcome in ended:
        webhook_id, paused_until_ms = destination.webhook_id, None
        if outcome.result == "accepted":
            noted.failures.pop(webhook_id, None)
        else:
            failing_since_ms = now_ms if claim.failing_since_ms is None else claim.failing_since_ms
            due_ms = next_try_ms(failing_since_ms, now_ms, outcome.retry_after_s, chance())
            deliveries.note_failed(connection, Failure(claim, outcome.status, outcome.why, due_ms), now_ms)
            why = _why_off(connection, webhook_id, outcome, now_ms)
            if why is not None and _turned_off(connection, destination, why, now_ms):
                noted.given_up.append((destination, why))
            paused_until_ms = now_ms + _pause_ms(noted.failures[webhook_id], outcome.retry_after_s)
            noted.failures[webhook_id] += 1
        last = LastAttempt(now_ms, outcome.status, outcome.why, paused_until_ms)
        deliveries.note_last(connection, webhook_id, last)
    return noted


def _pause_ms(failures: int, retry_after_s: float | None) -> int:
    """Return how long a webhook pauses that has failed again after so many failures in a row."""
    pause_s = min(PAUSE_S * 2.0 ** min(failures, _DOUBLINGS_MAX), PAUSE_MAX_S)
    return round(MS_PER_S * max(pause_s, min(retry_after_s or 0.0, RETRY_AFTER_MAX_S)))


def _why_off(connection: Connection, webhook_id: int, outcome: AttemptOutcome, now_ms: int) -> OffReason | None:
    """Return why nothing more is sent to a webhook that has just failed, None where something is."""
    if outcome.status == GONE:
        return "gone"
    since_ms = deliveries.failing_since(connection, webhook_id)
    return "day" if since_ms is not None and has_failed_too_long(since_ms, now_ms) else None


def _turned_off(connection: Connection, destination: Destination, why: OffReason, now_ms: int) -> bool:
    """Turn a webhook off, with an entry in the audit log, and return whether it was on."""
    if not webhooks.turn_off(connection, destination.webhook_id, why, now_ms):
        return False
    subject, reason = destination.name, _OFF[why]
    audit.note(connection, at_ms=now_ms, person="", address="", action="webhook.off", subject=subject, why=reason)
    return True
