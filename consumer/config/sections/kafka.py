"""Topics and schemas: ``[kafka]`` and ``[registry]``."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from consumer.config.setting_types import ClientSettings, Count, Seconds, SecretFiles, Section, Share, Text
from consumer.decode.schemas.registry import SCHEMA_BYTES_MAX
from consumer.decode.schemas.registry import URL_PATTERN as REGISTRY_URL_PATTERN


class KafkaSection(Section):
    """How topics are read and written."""

    group: Text = "dupwatch"
    """The consumer group: its members share the partitions."""
    instance_id: Text | None = None
    """The name of this member, for static membership: its absence causes no rebalance until its session times out."""
    group_protocol: Literal["classic", "consumer"] = "classic"
    """The protocol by which the group shares partitions; consumer is KIP-848, and needs brokers 4.0 or newer."""
    delivery: Literal["at-least-once", "exactly-once"] = "at-least-once"
    """With exactly-once, verdicts, dead letters and offsets are written in one transaction."""
    id_from: Literal["key", "value"] = "key"
    """Where the id of an article is: in the key of the message, or in its value. With value, only a null body retracts
    an article, and a message without a value is invalid."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where a group that has never committed starts."""
    on_gap: Literal["stop", "continue"] = "stop"
    """What to do when messages were deleted before they were read."""
    value_format: Literal["json", "avro", "protobuf"] = "json"
    """The format of values; avro and protobuf need the schemas of a [registry]."""
    unique: bool = False
    """Copy each unique article to PREFIX.unique, unchanged."""
    near_miss_share: Share = 0.0
    """The share of unique articles for which a pair just under the threshold is sent to PREFIX.near-misses; 0 for
    none."""
    near_miss_margin: Annotated[float, Field(gt=0, le=0.5)] = 0.15
    """How far under its threshold the similarity of a near miss may be."""
    events: Literal["plain", "cloudevents"] = "plain"
    """The format of the headers of events."""
    linger_s: Annotated[float, Field(ge=0, le=60)] = 0.002
    """How long an idle consumer waits for more messages after the first one."""
    revoke_s: Seconds = 20.0
    """How long a batch may take to finish after its partitions are revoked."""
    drain_s: Seconds = 20.0
    """How long a batch may take to finish after the run is asked to stop."""
    grace_s: Seconds = 60.0
    """How long the supervisor waits before it kills a consumer; drain_s plus 20 s for closing must fit into it."""
    ahead_s_max: Seconds = 300.0
    """How far ahead of the clock a message's timestamp may be; the time of reading replaces later timestamps."""
    behind_s_max: Seconds = 60.0
    """How far a timestamp may be before its partition's highest arrival; that arrival replaces earlier timestamps."""
    poison_share_max: Share = 0.5
    """Hold a partition when more than this share of its last messages is invalid."""
    poison_records_min: Count = 1_000
    """The number of messages of a partition over which poison_share_max is computed."""
    client: ClientSettings = Field(default_factory=dict)
    """librdkafka's own settings, for consumer and producer."""
    consumer: ClientSettings = Field(default_factory=dict)
    """librdkafka's settings for the consumer alone; they override those of client."""
    producer: ClientSettings = Field(default_factory=dict)
    """librdkafka's settings for the producer alone; they override those of client."""
    secret_files: SecretFiles = Field(default_factory=dict)
    """Files that hold the values of secret settings: {"sasl.password" = "/run/secrets/kafka"}."""


def _registry_url(url: str) -> str:
    if url and not re.fullmatch(REGISTRY_URL_PATTERN, url):
        raise ValueError(
            "write it as http://HOST:PORT or https://HOST:PORT/PATH, several with commas between them; put credentials"
            ' into registry.secret_files or registry.client, as "basic.auth.user.info"'
        )
    return url


class RegistrySection(Section):
    """The registry with the schemas of avro and protobuf values."""

    url: Annotated[str, AfterValidator(_registry_url)] = ""
    """The schema registry, with Confluent's API: http://HOST:PORT[,http://HOST:PORT]."""
    request_s: Seconds = 10.0
    """How long to wait for one answer."""
    schema_bytes_max: Annotated[int, Field(ge=1_000, le=1 << 30)] = SCHEMA_BYTES_MAX
    """Maximum bytes of a schema together with all schemas that it refers to."""
    client: ClientSettings = Field(default_factory=dict)
    """More settings of confluent-kafka's SchemaRegistryClient, for example "ssl.ca.location"."""
    secret_files: SecretFiles = Field(default_factory=dict)
    """Files that hold the values of secret settings, for example "basic.auth.user.info"."""
