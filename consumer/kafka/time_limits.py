"""Checks that the configured limits are consistent with each other; pure functions.

::

    kafka.revoke_s + CLOSE_S           <  max.poll.interval.ms    or the group removes the consumer
    kafka.drain_s + ENDING_S           <= kafka.grace_s           or a supervisor kills a run that is still ending
    3 · heartbeat.interval.ms          <= session.timeout.ms      or one late heartbeat loses the partitions
    message.max.bytes                  <= queue.buffering.max.kbytes
"""

from collections.abc import Mapping
from typing import Any, Final

from consumer.kafka.client_settings import TopicsOptions
from consumer.kafka.source.client_thread import CLOSE_S
from consumer.model.errors import ConfigError
from storage.clock import MS_PER_S

ENDING_S: Final = 2 * CLOSE_S
"""A stopping run that hangs ends itself this many seconds after its ``drain_s`` has passed."""
_BYTES_PER_KB: Final = 1_024
_HEARTBEATS: Final = 3
_SESSION_MS: Final = 45_000
"""librdkafka's default of ``session.timeout.ms``."""
_HEARTBEAT_MS: Final = 3_000
"""librdkafka's default of ``heartbeat.interval.ms``."""


def check_limits(options: TopicsOptions, consumer: Mapping[str, Any], producer: Mapping[str, Any]) -> None:
    """Raise ``ConfigError`` for the first inconsistent limit, with what to change.

    ``consumer`` and ``producer`` are the settings of these clients.
    """
    poll_s = int(consumer["max.poll.interval.ms"]) / MS_PER_S
    if options.reading.revoke_s + CLOSE_S >= poll_s:
        raise ConfigError(
            f"kafka.revoke_s is {options.reading.revoke_s:g}, but the group removes a consumer that does not poll for "
            f"{poll_s:g} s (max.poll.interval.ms); set kafka.revoke_s below {poll_s - CLOSE_S:g}, or raise "
            "max.poll.interval.ms in [kafka.consumer]"
        )
    if options.drain_s + ENDING_S > options.grace_s:
        raise ConfigError(
            f"kafka.drain_s is {options.drain_s:g} and ending takes up to {ENDING_S:g} s more, which is more than "
            f"kafka.grace_s ({options.grace_s:g}); lower kafka.drain_s, or raise kafka.grace_s together with the time "
            "that the supervisor gives (terminationGracePeriodSeconds, stop_grace_period, TimeoutStopSec)"
        )
    session_ms = int(consumer.get("session.timeout.ms", _SESSION_MS))
    heartbeat_ms = int(consumer.get("heartbeat.interval.ms", _HEARTBEAT_MS))
    if _HEARTBEATS * heartbeat_ms > session_ms:
        raise ConfigError(
            f"heartbeat.interval.ms is {heartbeat_ms}, but session.timeout.ms is {session_ms}; set "
            f"heartbeat.interval.ms to at most {session_ms // _HEARTBEATS}, a third of session.timeout.ms"
        )
    largest, queue_bytes = (
        int(producer["message.max.bytes"]),
        int(producer["queue.buffering.max.kbytes"]) * _BYTES_PER_KB,
    )
    if largest > queue_bytes:
        raise ConfigError(
            f"message.max.bytes is {largest}, but the producer's queue has room for {queue_bytes} bytes; raise "
            "queue.buffering.max.kbytes in [kafka.producer], or lower message.max.bytes"
        )
