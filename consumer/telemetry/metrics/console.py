"""Metrics of the console's work: incoming flags, decisions, and releases that are due.

The occurrences are defined here because ``consumer.console``, which reports them, is above this package.
"""

from typing import Final, Literal, NamedTuple, get_args

from consumer.telemetry.metrics.instruments import Label, Measure, MetricGroup, Reaction, reaction

FlagState = Literal["open", "skipped", "right", "wrong", "released"]
EntryKind = Literal["flag", "near_miss", "ended_before", "bank_match"]
TakenKind = Literal["flag", "release", "near_miss", "ended_before", "bank_match", "known", "other"]
SkipReason = Literal["null_value", "not_an_event", "too_large", "unreadable_message"]
ReviewDecision = Literal["right", "wrong", "skip"]
Decider = Literal["person", "standing_decision"]
StandingSubject = Literal["story", "sources"]
ReleaseOutcome = Literal["sent", "refused"]
SinkEventKind = Literal["story", "flood"]
Receiver = Literal["sink", "webhooks"]

FLAGS: Final = Measure(
    "dupwatch_console_flags", "gauge", "Flags by state.", "flags", (Label("state", get_args(FlagState)),)
)
OPEN: Final = Measure(
    "dupwatch_console_open_entries",
    "gauge",
    "Entries of the queue that nobody has decided on, by kind.",
    "entries",
    (Label("kind", get_args(EntryKind)),),
)
OLDEST_OPEN: Final = Measure(
    "dupwatch_console_oldest_open_flag_seconds",
    "gauge",
    "Time since the article of the oldest open flag arrived; 0 without open flags.",
    "seconds",
)
RELEASES_DUE: Final = Measure(
    "dupwatch_console_releases_due", "gauge", "Final releases that are not sent yet.", "releases"
)
SEARCH_WAITING: Final = Measure(
    "dupwatch_console_search_waiting_flags",
    "gauge",
    "Flags whose words are not indexed yet, so that searches find them only by id and source.",
    "flags",
)
EVENTS: Final = Measure(
    "dupwatch_console_events_total",
    "counter",
    'Events read from the sink: flags, releases, other entries, "known" events (read before), and "other" verdicts.',
    "events",
    (Label("kind", get_args(TakenKind)),),
)
SKIPPED: Final = Measure(
    "dupwatch_console_events_skipped_total",
    "counter",
    "Records of the sink that were skipped because they are invalid for their topic or file, by reason.",
    "records",
    (Label("reason", get_args(SkipReason)),),
)
DECISIONS: Final = Measure(
    "dupwatch_console_decisions_total",
    "counter",
    "Flags decided by people in this process, or by their standing decisions, including undone ones; by decision.",
    "flags",
    (Label("decision", get_args(ReviewDecision)), Label("decider", get_args(Decider))),
)
STANDING: Final = Measure(
    "dupwatch_console_standing_decisions",
    "gauge",
    'Standing decisions in force: about a "story" whose further copies are right, or a muted pair of "sources".',
    "decisions",
    (Label("about", get_args(StandingSubject)),),
)
RELEASES: Final = Measure(
    "dupwatch_console_releases_total",
    "counter",
    "Releases that were sent, or refused for good.",
    "releases",
    (Label("outcome", get_args(ReleaseOutcome)),),
)
FLOODS: Final = Measure("dupwatch_console_floods_total", "counter", "Floods that have begun.", "floods")
OUTBOX: Final = Measure(
    "dupwatch_console_outbox_events",
    "gauge",
    "Events of the console that wait for the sink or for webhooks; each counts once for each receiver.",
    "events",
    (Label("receiver", get_args(Receiver)),),
)
OUTBOX_OLDEST: Final = Measure(
    "dupwatch_console_outbox_oldest_seconds",
    "gauge",
    "Age of the oldest waiting event; 0 if none waits.",
    "seconds",
    (Label("receiver", get_args(Receiver)),),
)
EVENTS_SENT: Final = Measure(
    "dupwatch_console_events_sent_total",
    "counter",
    "Events of the console that this process sent to the sink, by kind.",
    "events",
    (Label("kind", get_args(SinkEventKind)),),
)
EVENTS_MISSED: Final = Measure(
    "dupwatch_console_events_missed_total",
    "counter",
    "Events of the console that were dropped, because console.outbox_events_max already waited for that receiver.",
    "events",
    (Label("receiver", get_args(Receiver)),),
)
SIGN_IN_FAILURES: Final = Measure(
    "dupwatch_console_sign_in_failures_total", "counter", "Attempts to sign in that failed.", "attempts"
)
GROUP: Final = MetricGroup(
    "The queue (dupwatch console)",
    (
        FLAGS,
        OPEN,
        OLDEST_OPEN,
        RELEASES_DUE,
        SEARCH_WAITING,
        EVENTS,
        SKIPPED,
        DECISIONS,
        STANDING,
        RELEASES,
        FLOODS,
        OUTBOX,
        OUTBOX_OLDEST,
        EVENTS_SENT,
        EVENTS_MISSED,
        SIGN_IN_FAILURES,
    ),
)


class QueueCounted(NamedTuple):
    """The counts of flags by state, of open entries by kind, and of waiting work.

    ``standing`` counts the standing decisions in force.
    """

    flags: dict[FlagState, int]
    open: dict[EntryKind, int]
    oldest_open_s: float
    releases_due: int
    search_waiting: int
    standing: dict[StandingSubject, int]


class EventsTaken(NamedTuple):
    """Events of this kind were read. ``known`` events were stored before; ``other`` events are not stored."""

    kind: TakenKind
    events: int


class EventSkipped(NamedTuple):
    """A record of the sink was skipped, because it is not a valid event."""

    reason: SkipReason


class FlagsDecided(NamedTuple):
    """A person or a standing decision decided flags."""

    decision: ReviewDecision
    flags: int
    decider: Decider = "person"


class ReleaseEnded(NamedTuple):
    """A release was sent, or refused for good."""

    outcome: ReleaseOutcome


class FloodsStarted(NamedTuple):
    """Floods have begun."""

    floods: int


class OutboxCounted(NamedTuple):
    """The number of events that wait for each kind of receiver, and the age of the oldest waiting event."""

    events: dict[Receiver, int]
    oldest_s: dict[Receiver, float]


class EventsSent(NamedTuple):
    """Events of this kind were sent to the sink."""

    kind: SinkEventKind
    events: int


class EventsMissed(NamedTuple):
    """Events for a receiver were dropped, because too many were waiting for it."""

    receiver: Receiver
    events: int


class SignInFailed(NamedTuple):
    """An attempt to sign in failed."""


def _flags_in(state: FlagState) -> Reaction:
    return reaction(FLAGS, QueueCounted, lambda counted: counted.flags[state], lambda _: (state,))


def _open_of(kind: EntryKind) -> Reaction:
    return reaction(OPEN, QueueCounted, lambda counted: counted.open[kind], lambda _: (kind,))


def _waiting_for(receiver: Receiver) -> tuple[Reaction, Reaction]:
    return (
        reaction(OUTBOX, OutboxCounted, lambda counted: counted.events[receiver], lambda _: (receiver,)),
        reaction(OUTBOX_OLDEST, OutboxCounted, lambda counted: counted.oldest_s[receiver], lambda _: (receiver,)),
    )


def _standing_about(subject: StandingSubject) -> Reaction:
    return reaction(STANDING, QueueCounted, lambda counted: counted.standing[subject], lambda _: (subject,))


REACTIONS: Final = (
    *map(_flags_in, get_args(FlagState)),
    *map(_open_of, get_args(EntryKind)),
    *map(_standing_about, get_args(StandingSubject)),
    reaction(OLDEST_OPEN, QueueCounted, lambda counted: counted.oldest_open_s),
    reaction(RELEASES_DUE, QueueCounted, lambda counted: counted.releases_due),
    reaction(SEARCH_WAITING, QueueCounted, lambda counted: counted.search_waiting),
    reaction(EVENTS, EventsTaken, lambda taken: taken.events, lambda taken: (taken.kind,)),
    reaction(SKIPPED, EventSkipped, labels=lambda skipped: (skipped.reason,)),
    reaction(
        DECISIONS, FlagsDecided, lambda decided: decided.flags, lambda decided: (decided.decision, decided.decider)
    ),
    reaction(RELEASES, ReleaseEnded, labels=lambda ended: (ended.outcome,)),
    reaction(FLOODS, FloodsStarted, lambda began: began.floods),
    *(each for receiver in get_args(Receiver) for each in _waiting_for(receiver)),
    reaction(EVENTS_SENT, EventsSent, lambda sent: sent.events, lambda sent: (sent.kind,)),
    reaction(EVENTS_MISSED, EventsMissed, lambda missed: missed.events, lambda missed: (missed.receiver,)),
    reaction(SIGN_IN_FAILURES, SignInFailed),
)
