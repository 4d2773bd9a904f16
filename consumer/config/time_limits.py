"""Whether the limits that are configured fit into one another; pure functions.

::

    kafka.revoke_s + CLOSE_S           <  max.poll.interval.ms    else the group takes the consumer for dead
    kafka.drain_s + ENDING_S           <= kafka.grace_s           else a supervisor kills what is still ending
    3 · heartbeat.interval.ms          <= session.timeout.ms      else one late heartbeat loses the partitions
    message.max.bytes                  <= queue.buffering.max.kbytes
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from consumer.config.sections import KafkaSection
from consumer.model.errors import ConfigError
from consumer.sources.kafka import CLOSE_S
from storage.clock import MS_PER_S

ENDING_S: Final = 2 * CLOSE_S
"""How long after ``kafka.drain_s`` a run that hangs is ended by itself."""
_BYTES_PER_KB: Final = 1_024
_HEARTBEATS: Final = 3
_SESSION_MS: Final = 45_000
_HEARTBEAT_MS: Final = 3_000
"""librdkafka's defaults."""


def check_limits(section: KafkaSection, reading: Mapping[str, Any], writing: Mapping[str, Any]) -> None:
    """Raise ConfigError for the first that does not fit; ``reading`` and ``writing`` are the clients' settings."""
    for fault in limit_faults(section, reading, writing):
        raise ConfigError(fault)


def limit_faults(section: KafkaSection, reading: Mapping[str, Any], writing: Mapping[str, Any]) -> Iterator[str]:
    """What does not fit, a phrase each that says what to change."""
    poll_s = int(reading["max.poll.interval.ms"]) / MS_PER_S
    if section.revoke_s + CLOSE_S >= poll_s:
        yield (
            f"kafka.revoke_s is {section.revoke_s:g}, and the group takes a consumer for dead that is silent for "
            f"{poll_s:g} s (max.poll.interval.ms); set kafka.revoke_s below {poll_s - CLOSE_S:g}, or raise "
            "max.poll.interval.ms in [kafka.consumer]"
        )
    if section.drain_s + ENDING_S > section.grace_s:
        yield (
            f"kafka.drain_s is {section.drain_s:g} and ending takes up to {ENDING_S:g} s more, which is more than "
            f"kafka.grace_s ({section.grace_s:g}); lower kafka.drain_s, or raise kafka.grace_s together with the time "
            "that the supervisor gives (terminationGracePeriodSeconds, stop_grace_period, TimeoutStopSec)"
        )
    session_ms = int(reading.get("session.timeout.ms", _SESSION_MS))
    heartbeat_ms = int(reading.get("heartbeat.interval.ms", _HEARTBEAT_MS))
    if _HEARTBEATS * heartbeat_ms > session_ms:
        yield (
            f"heartbeat.interval.ms is {heartbeat_ms}, and session.timeout.ms {session_ms}; "
            f"{_HEARTBEATS} heartbeats have to fit into a session"
        )
    yield from _too_large(writing)


def _too_large(writing: Mapping[str, Any]) -> Iterator[str]:
    largest, held = int(writing["message.max.bytes"]), int(writing["queue.buffering.max.kbytes"]) * _BYTES_PER_KB
    if largest > held:
        yield (
            f"message.max.bytes is {largest}, and the producer's queue has room for {held} bytes; raise "
            "queue.buffering.max.kbytes in [kafka.producer], or lower message.max.bytes"
        )
