"""How topics are read and written in a run: what ``[kafka]`` says, apart from the formats of values."""

from typing import Literal, NamedTuple

from consumer.kafka.client_settings import KafkaOptions
from consumer.pipeline.poison_limit import PoisonLimit


class TopicsOptions(NamedTuple):
    """The options of ``kafka://`` URLs.

    ``clients`` are settings of clients. ``start``, ``on_gap``, ``linger_s`` and ``revoke_s`` are as in
    ``SourceOptions``. A batch gets ``drain_s`` to finish when the run is stopped, and the supervisor waits for
    ``grace_s``. A time of a record may be ``ahead_ms_max`` ahead of the clock, and ``behind_ms_max`` behind its
    partition. ``limit`` holds partitions. ``transactional``: positions are committed with what the sink wrote.
    ``unique`` and ``near_misses`` say whether these topics are written, ``cloud_events`` which headers events have.
    """

    clients: KafkaOptions = KafkaOptions()
    start: Literal["earliest", "latest"] = "earliest"
    on_gap: Literal["stop", "continue"] = "stop"
    linger_s: float = 0.002
    revoke_s: float = 20.0
    drain_s: float = 20.0
    grace_s: float = 60.0
    ahead_ms_max: int = 300_000
    behind_ms_max: int = 60_000
    limit: PoisonLimit = PoisonLimit(0.5, 1_000)
    transactional: bool = False
    unique: bool = False
    near_misses: bool = False
    cloud_events: bool = False
