"""Metrics of what the console works on: flags as they come in, decisions, and releases that are due.

What is reported is defined here because ``consumer.console``, which causes it, is above this package.
"""

from typing import Final, Literal, NamedTuple, get_args

from consumer.model.hooks import Hooks
from consumer.telemetry.metrics.instruments import Group, Instruments, Label, Measure

FlagState = Literal["open", "skipped", "right", "wrong", "released"]
TakenKind = Literal["flag", "release", "near_miss", "known", "other"]
SkippedFor = Literal["null_value", "not_an_event", "too_large", "unreadable_message"]
ReviewDecision = Literal["right", "wrong", "skip"]
Sent = Literal["sent", "refused"]

FLAGS: Final = Measure(
    "dupwatch_console_flags", "gauge", "Flags by state.", "flags", (Label("state", get_args(FlagState)),)
)
NEAR_MISSES_OPEN: Final = Measure(
    "dupwatch_console_near_misses_open",
    "gauge",
    "Sampled pairs just under the threshold that nobody has decided on.",
    "pairs",
)
OLDEST_OPEN: Final = Measure(
    "dupwatch_console_oldest_open_flag_seconds",
    "gauge",
    "How long ago the article of the oldest open flag came; 0 without open flags.",
    "seconds",
)
RELEASES_DUE: Final = Measure(
    "dupwatch_console_releases_due", "gauge", "Releases that are final and not sent yet.", "releases"
)
EVENTS: Final = Measure(
    "dupwatch_console_events_total",
    "counter",
    'Events that were taken from the topics: flags, releases, near misses, those that were "known" before, and "other" '
    "verdicts.",
    "events",
    (Label("kind", get_args(TakenKind)),),
)
SKIPPED: Final = Measure(
    "dupwatch_console_events_skipped_total",
    "counter",
    "Records of the topics of flags and near misses that can never be read, and were skipped, by reason.",
    "records",
    (Label("reason", get_args(SkippedFor)),),
)
DECISIONS: Final = Measure(
    "dupwatch_console_decisions_total",
    "counter",
    "Flags that people of this process decided on, by decision; those that were undone too.",
    "flags",
    (Label("decision", get_args(ReviewDecision)),),
)
RELEASES: Final = Measure(
    "dupwatch_console_releases_total",
    "counter",
    "Releases that were carried out, or can never be.",
    "releases",
    (Label("outcome", get_args(Sent)),),
)
FLOODS: Final = Measure("dupwatch_console_floods_total", "counter", "Floods that have begun.", "floods")
SIGN_IN_FAILURES: Final = Measure(
    "dupwatch_console_sign_in_failures_total", "counter", "Attempts to sign in that failed.", "attempts"
)
GROUP: Final = Group(
    "The queue (dupwatch console)",
    (
        FLAGS,
        NEAR_MISSES_OPEN,
        OLDEST_OPEN,
        RELEASES_DUE,
        EVENTS,
        SKIPPED,
        DECISIONS,
        RELEASES,
        FLOODS,
        SIGN_IN_FAILURES,
    ),
)


class QueueCounted(NamedTuple):
    """How many flags are in each state, and what waits."""

    flags: dict[FlagState, int]
    near_misses_open: int
    oldest_open_s: float
    releases_due: int


class EventsTaken(NamedTuple):
    """So many events of this kind are in the database."""

    kind: TakenKind
    events: int


class EventSkipped(NamedTuple):
    """A record of the topic of flags, or of near misses, can never be read."""

    reason: SkippedFor


class FlagsDecided(NamedTuple):
    """A person decided on so many flags."""

    decision: ReviewDecision
    flags: int


class ReleaseEnded(NamedTuple):
    """A release was sent, or refused for good."""

    outcome: Sent


class FloodsBegan(NamedTuple):
    """So many floods have begun."""

    floods: int


class SignInFailed(NamedTuple):
    """Somebody could not sign in."""


class QueueMetrics:
    """Counts what comes in and goes out, and shows what waits."""

    def __init__(self, instruments: Instruments) -> None:
        self._flags = instruments.gauge(FLAGS)
        self._near_misses_open = instruments.gauge(NEAR_MISSES_OPEN)
        self._oldest_open = instruments.gauge(OLDEST_OPEN)
        self._releases_due = instruments.gauge(RELEASES_DUE)
        self._events = instruments.counter(EVENTS)
        self._skipped = instruments.counter(SKIPPED)
        self._decisions = instruments.counter(DECISIONS)
        self._releases = instruments.counter(RELEASES)
        self._floods = instruments.counter(FLOODS)
        self._sign_in_failures = instruments.counter(SIGN_IN_FAILURES)

    def listen(self, hooks: Hooks) -> None:
        """Count what is reported from now on."""
        hooks.on(QueueCounted, self._counted)
        hooks.on(EventsTaken, lambda taken: self._events.labels(taken.kind).inc(taken.events))
        hooks.on(EventSkipped, lambda skipped: self._skipped.labels(skipped.reason).inc())
        hooks.on(FlagsDecided, lambda decided: self._decisions.labels(decided.decision).inc(decided.flags))
        hooks.on(ReleaseEnded, lambda ended: self._releases.labels(ended.outcome).inc())
        hooks.on(FloodsBegan, lambda began: self._floods.inc(began.floods))
        hooks.on(SignInFailed, lambda _: self._sign_in_failures.inc())

    def _counted(self, counted: QueueCounted) -> None:
        for state in get_args(FlagState):
            self._flags.labels(state).set(counted.flags[state])
        self._near_misses_open.set(counted.near_misses_open)
        self._oldest_open.set(counted.oldest_open_s)
        self._releases_due.set(counted.releases_due)
