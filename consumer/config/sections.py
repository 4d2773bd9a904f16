"""The sections of the configuration, each with its settings, their defaults and what is checked of them alone."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from consumer.config.values import dotted
from consumer.decode.published_at import Unit
from consumer.decode.registry import SCHEMA_BYTES_MAX
from consumer.decode.registry import URL_PATTERN as REGISTRY_URL_PATTERN
from consumer.fingerprint import BlockPlan, Scheme
from consumer.judge.settings import JudgeSettings
from consumer.kafka.client_settings import is_kafka
from consumer.model.limits import DecodeLimits, ReadLimits
from consumer.sinks.file import Emit
from consumer.text.timestamps import parse_zone
from storage.files import FILE_MODE
from storage.hbase import HbaseOptions
from storage.kinds import kind_of
from storage.lmdb import LmdbOptions

_SCHEME = Scheme()


_LMDB = LmdbOptions()


_HBASE = HbaseOptions()


_READ = ReadLimits()


_DECODE = DecodeLimits()


_JUDGE = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="")


Count = Annotated[int, Field(ge=1)]


Seconds = Annotated[float, Field(gt=0, le=86_400)]


Share = Annotated[float, Field(ge=0, le=1)]


Path_ = Annotated[str, Field(min_length=1)]


ClientSettings = Annotated[dict[str, str | int | float | bool], BeforeValidator(dotted)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


def _store_url(url: str) -> str:
    kind_of(url)
    return url


def _file_or_topic(url: str) -> str:
    if "://" in url and not is_kafka(url):
        raise ValueError("write it as a file, - or kafka://HOST:PORT/TOPIC")
    return url


def _file_mode(mode: str) -> str:
    if not re.fullmatch("06[046][046]", mode):
        raise ValueError(
            'write it in octal: "0600", or "0640" to let the group read; the owner reads and writes, others read, or '
            "read and write, or neither"
        )
    return mode


def _zone(name: str) -> str:
    parse_zone(name)
    return name


class FieldsSection(_Section):
    """Where in a record each field of an article stands: dotted paths."""

    id: Path_ = "id"
    body: Path_ = "body"
    title: Path_ = "title"
    source: Path_ = "source"
    url: Path_ = "url"
    lang: Path_ = "lang"
    published_at: Path_ = "published_at"


class SourceSection(_Section):
    """Where articles come from and how they are read."""

    url: Annotated[Path_, AfterValidator(_file_or_topic)] = "-"
    """A file of JSON lines, plain or gzip, - for standard input, or kafka://HOST:PORT[,HOST:PORT]/TOPIC[,TOPIC]."""
    fields: FieldsSection = FieldsSection()
    body_format: Literal["text", "html"] = "text"
    published_at_unit: Unit = "auto"
    """What numbers in published_at count since 1970: s, ms, us or ns; auto recognises those that fit one unit only."""
    published_at_zone: Annotated[Path_, AfterValidator(_zone)] | None = None
    """The zone of times that name none: +08:00, UTC or Asia/Shanghai. When left out such times are not read."""
    record_bytes_max: Count = _READ.record_bytes_max
    body_chars_max: Count = _DECODE.body_chars_max
    folded_chars_max: Count = _DECODE.folded_chars_max
    """How many characters a body may become when it is folded: one character can become eighteen."""
    fold_growth_max: Annotated[int, Field(ge=1, le=18)] = _DECODE.fold_growth_max
    """By what factor a body may grow when it is folded, where it becomes more than 10,000 characters."""
    values_max: Count = _DECODE.values_max
    """How many objects, lists, members and items a record may have."""
    attributes_max: Annotated[int, Field(ge=1, le=20_000)] = _DECODE.attributes_max
    """How many different attributes one tag of HTML may have."""
    depth_max: Annotated[int, Field(ge=1, le=500)] = _DECODE.depth_max
    poison_share_max: Share = 0.5
    """End a run over a file or a stream when more than this share of its last records cannot be judged; 1 for never."""
    poison_records_min: Count = 100
    """Of how many records that share is taken; fewer count where they are all of a feed and none can be judged."""
    batch_records_max: Annotated[int, Field(ge=1, le=10_000)] = _READ.batch_records_max
    batch_bytes_max: Count = _READ.batch_bytes_max


class SinkSection(_Section):
    """Where verdicts go."""

    url: Annotated[Path_, AfterValidator(_file_or_topic)] = "-"
    """A file of JSON lines, - for standard output, or kafka://HOST:PORT[,HOST:PORT]/PREFIX for topics."""
    emit: Emit = "duplicates"
    """duplicates, all or none."""


class KafkaSection(_Section):
    """How topics are read and written."""

    group: Path_ = "dupwatch"
    """The consumer group: its members share the partitions."""
    instance_id: Path_ | None = None
    """This member's own name, for static membership: no rebalance when it is gone for less than a session."""
    group_protocol: Literal["classic", "consumer"] = "classic"
    delivery: Literal["at-least-once", "exactly-once"] = "at-least-once"
    id_from: Literal["key", "value"] = "key"
    """Whether the key of a message is its article's id; with value nothing can be retracted."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where a group begins that has never committed."""
    on_gap: Literal["stop", "continue"] = "stop"
    """What to do when messages were deleted before they were read."""
    value_format: Literal["json", "avro", "protobuf"] = "json"
    """How values are written; avro and protobuf with the schemas of a [registry]."""
    unique: bool = False
    """Send articles that repeat nothing on to PREFIX.unique, as they came."""
    events: Literal["plain", "cloudevents"] = "plain"
    """How the headers of events are written."""
    linger_s: Annotated[float, Field(ge=0, le=60)] = 0.002
    """How long a first message waits for more when there is nothing else to do."""
    revoke_s: Seconds = 20.0
    """How long a batch may go on being finished when its partitions are taken away."""
    drain_s: Seconds = 20.0
    """How long a batch may go on being finished when the run is to stop."""
    grace_s: Seconds = 60.0
    """How long whoever stops a consumer waits before killing it; drain_s and 20 s for closing have to fit into it."""
    ahead_s_max: Seconds = 300.0
    """How far ahead of the clock a message's timestamp may be; beyond it the time of reading stands for it."""
    behind_s_max: Seconds = 60.0
    """How far before the highest arrival of its partition a message may be stamped; beyond it that arrival stands."""
    poison_share_max: Share = 0.5
    """Hold a partition when more than this share of its last messages cannot be judged."""
    poison_records_min: Count = 1_000
    """Of how many messages of a partition that share is taken."""
    client: ClientSettings = {}
    """librdkafka's own settings, for consumer and producer."""
    consumer: ClientSettings = {}
    producer: ClientSettings = {}
    secret_files: Annotated[dict[str, Path_], BeforeValidator(dotted)] = {}
    """Files that hold the values of settings that nobody is to read: {"sasl.password" = "/run/secrets/kafka"}."""


def _registry_url(url: str) -> str:
    if url and not re.fullmatch(REGISTRY_URL_PATTERN, url):
        raise ValueError(
            "write it as http://HOST:PORT or https://HOST:PORT/PATH, several with commas between them; credentials go"
            ' to registry.secret_files or registry.client, as "basic.auth.user.info"'
        )
    return url


class RegistrySection(_Section):
    """Where the schemas of avro and protobuf values are."""

    url: Annotated[str, AfterValidator(_registry_url)] = ""
    """http://HOST:PORT[,http://HOST:PORT] of a schema registry with Confluent's API."""
    request_s: Seconds = 10.0
    """How long one answer is waited for."""
    schema_bytes_max: Annotated[int, Field(ge=1_000, le=1 << 30)] = SCHEMA_BYTES_MAX
    """How many bytes the registry may send for one schema and all that it refers to."""
    client: ClientSettings = {}
    """Further settings of confluent-kafka's SchemaRegistryClient, "ssl.ca.location" for one."""
    secret_files: Annotated[dict[str, Path_], BeforeValidator(dotted)] = {}
    """Files that hold the values of settings that nobody is to read, "basic.auth.user.info" for one."""


class HttpSection(_Section):
    """Health, metrics and the page of the latest flags."""

    listen: Annotated[str, Field(pattern=r"^$|^.+:\d{1,5}$")] = "127.0.0.1:9464"
    """HOST:PORT of /healthz, /readyz, /metrics and the page of flags while topics are read; empty for none."""
    open: bool = False
    """Listen on an address that other machines reach without asking for a password."""
    user: Annotated[str, Field(pattern=r"^[^:]+$")] | None = None
    """Ask for this user and a password, but for the status of /healthz and /readyz."""
    password: Path_ | None = None
    """The password itself: in the environment, as DUPWATCH_HTTP__PASSWORD."""
    password_file: Path_ | None = None
    """The file where the password stands."""
    tls_certificate: Path_ | None = None
    """Serve HTTPS with this certificate, as PEM; with its key in tls_key or in the same file."""
    tls_key: Path_ | None = None
    names: tuple[Path_, ...] = ()
    """Names of this machine under which articles are shown without a password; addresses and localhost always are.

    Where listen is a loopback address, metrics and health answer under these names only, too.
    """
    flags: Annotated[int, Field(ge=0, le=500)] = 50
    """How many of the latest flags are held for their page; 0 for no page."""
    stuck_s: Seconds = 60.0
    """After how long without a turn of the loop /healthz fails."""
    sources_max: Annotated[int, Field(ge=0, le=1_000)] = 50
    """How many sources /metrics tells apart: those with rules, and the first that come; the others are one."""

    @model_validator(mode="after")
    def _credentials_are_whole(self) -> "HttpSection":
        if self.password and self.password_file:
            raise ValueError("password and password_file are both set; leave one out")
        if bool(self.user) != bool(self.password or self.password_file):
            raise ValueError("user goes with password or password_file; set both or none")
        if self.tls_key and not self.tls_certificate:
            raise ValueError("tls_key has no effect without tls_certificate")
        return self


class LogSection(_Section):
    """What is told on standard error while it runs."""

    format: Literal["auto", "json", "text"] = "auto"
    """json: a line of JSON each. auto: text on a terminal, else json."""
    level: Literal["debug", "info", "warning", "error"] | None = None
    """From which level on; when left out info while topics are read, else warning."""


class HbaseSection(_Section):
    """How the gateways of an hbase:// store are used."""

    connections_max: Annotated[int, Field(ge=1, le=64)] = _HBASE.connections_max
    """Connections of this process to all gateways together."""
    deadline_s: Seconds = _HBASE.deadline_s
    """How long one call of the store is tried again before the run gives up."""
    call_s: Seconds = _HBASE.call_s
    """How long one answer is waited for."""
    connect_s: Seconds = _HBASE.connect_s
    retire_s: Seconds = _HBASE.retire_s
    """After how long an idle connection is not used again; less than the gateway's own limit, which is 60."""
    tls: bool = False
    tls_ca: Path_ | None = None
    """The authorities to be trusted, as PEM; those of the system when left out."""
    tls_certificate: Path_ | None = None
    """What this client shows, as PEM; with its key in tls_key or in the same file."""
    tls_key: Path_ | None = None

    @model_validator(mode="after")
    def _tls_files_have_effect(self) -> "HbaseSection":
        if not self.tls and any((self.tls_ca, self.tls_certificate, self.tls_key)):
            raise ValueError("tls_ca, tls_certificate and tls_key have no effect without tls = true")
        if self.tls_key and not self.tls_certificate:
            raise ValueError("tls_key has no effect without tls_certificate")
        return self


class TracingSection(_Section):
    """Spans to an OpenTelemetry collector, while topics are read. Its own variables (OTEL_...) hold beside these."""

    enabled: bool = False
    endpoint: Annotated[str, Field(pattern=r"^https?://.+")] | None = None
    """The collector, http://HOST:4318; OTEL_EXPORTER_OTLP_ENDPOINT when left out."""
    links_max: Annotated[int, Field(ge=0, le=10_000)] = 256
    """How many different traces of its articles the span of a batch links to."""
    close_s: Seconds = 5.0
    """How long the end of a run may wait for the last spans to be taken."""


class StoreSection(_Section):
    """Where versions, postings and verdicts are kept."""

    url: Annotated[str, AfterValidator(_store_url)] = "memory:"
    """memory:, lmdb:PATH or hbase://HOST:PORT[,HOST:PORT]/NAMESPACE."""
    durability: Literal["power", "process"] = _LMDB.durability
    """What an acknowledged write survives: a power loss, or only the end of the process."""
    keep_bodies: bool = _LMDB.keep_bodies
    """Keep the texts, for show and explain."""
    slack_s: Annotated[int, Field(ge=0)] = 86_400
    """How long past the window a version is kept."""
    row_postings_max: Count | None = None
    """How wide a row may be to be read whole. When left out: on HBase 4,000 (1,000 with 16x28), else 10,000."""
    map_bytes_max: Count = _LMDB.map_bytes_max
    hbase: HbaseSection = HbaseSection()


class FilesSection(_Section):
    """Who may read what is written to disk: stores, verdicts, dead letters, checkpoints, tables of words."""

    mode: Annotated[str, AfterValidator(_file_mode)] = f"{FILE_MODE:04o}"
    """The mode of files that are made, in octal; folders have it with leave to enter. What exists keeps its mode."""

    @property
    def bits(self) -> int:
        """The mode as the system takes it."""
        return int(self.mode, 8)


class FingerprintSection(_Section):
    """The scheme."""

    scheme: Path_ = _SCHEME.name
    keywords_max: Count | None = None
    """How many of the weightiest keywords count; all when left out."""
    dictionary: Path_ | None = None
    """A file of words that jieba is to know beside its own."""
    stop_words: Path_ | None = None
    """A file of words that are no keywords, in place of jieba's list."""
    idf: Path_ | None = None
    """A table of inverse document frequencies, in place of jieba's; dupwatch idf build makes one."""
    short_keywords_max: Annotated[int, Field(ge=0)] = _SCHEME.short_keywords_max
    bands: Annotated[int, Field(ge=1, le=16)] = _SCHEME.sketch.bands
    band_minima: Annotated[int, Field(ge=1, le=8)] = _SCHEME.sketch.band_minima


class JudgeSection(_Section):
    """What is near. Everything here changes verdicts, and a store is bound to it."""

    plan: Path_ = _JUDGE.plan.name
    max_distance: Annotated[int, Field(ge=0, le=128)] = _JUDGE.max_distance
    reach: Annotated[int, Field(ge=0, le=128)] = _JUDGE.reach
    verify: bool = _JUDGE.verify
    similarity_min: Share = _JUDGE.similarity_min
    facts_shared_min: Share = _JUDGE.facts_shared_min
    """The fact guard: how much of their numbers, dates and names similar articles have to share; 0 asks for none."""
    lane1: bool = _JUDGE.lane1
    window_s: Count = _JUDGE.window_ms // 1000
    verifications_max: Count = _JUDGE.verifications_max
    postings_watch: Count = 20_000
    """Warn when an article reads more postings than this on average; changes no verdict."""

    @model_validator(mode="after")
    def _consistent(self) -> "JudgeSection":
        if self.verify and self.reach < self.max_distance:
            raise ValueError(
                f"reach {self.reach} is less than max_distance {self.max_distance}; raise it to that at least"
            )
        if not self.verify and self.lane1:
            raise ValueError(
                "lane1 finds by the sketch, so it needs verify = true; set lane1 = false for plain SimHash"
            )
        if not self.verify and self.facts_shared_min:
            raise ValueError("facts_shared_min has no effect with verify = false; plain SimHash asks for no facts")
        return self


class RuleSection(_Section):
    """What is different for the articles of one source."""

    similarity_min: Share | None = None
    max_distance: Annotated[int, Field(ge=0, le=128)] | None = None
    flag: Literal["duplicates", "never"] = "duplicates"
    within_source: bool = True
    facts_shared_min: Share | None = None
