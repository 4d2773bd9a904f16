"""Lists the checks that a configuration needs: of the settings and this machine, of the servers, and of the store.

The first check finds settings that are valid one by one, but contradict each other or do not suit this machine.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Final

from consumer.banks.bank import BankError
from consumer.banks.bank_log import READ_S
from consumer.config.config import Config
from consumer.decode.schemas.registry import ConfluentRegistry, SchemaFormat, UnusableSchema
from consumer.doctor.brokers import Brokers
from consumer.doctor.console import configures_only_console, console_checks
from consumer.doctor.finding import DEADLINE_S, DoctorCheck, Finding, ok, warning, wrong
from consumer.doctor.kafka import (
    STALE_SHARE,
    clock_findings,
    cluster_findings,
    group_findings,
    progress_findings,
    source_findings,
    topic_findings,
)
from consumer.doctor.machine import check_address, check_descriptors, check_output_file, check_tls
from consumer.doctor.service import has_no_run, service_checks
from consumer.doctor.stores import finding_of, store_checks
from consumer.files.kind import FILE, NOWHERE, NOWHERE_URL
from consumer.judge.settings import JudgeSettings
from consumer.kafka import topics
from consumer.kafka.client_settings import TopicsAddress, admin_settings, parse_kafka
from consumer.kafka.kind import KAFKA
from consumer.kafka.planned_topics import topic_plan
from consumer.kafka.topics import ExistingTopic, SinkTopics
from consumer.model.errors import ConfigError, Fatal, SinkError, SourceError
from consumer.text.counts import counted
from consumer.wiring import components, feeds, kafka_parts, stores
from consumer.wiring.banks import read_banks
from storage.clock import MS_PER_S
from storage.errors import StoreError
from storage.files import may_write
from storage.kinds import kind_of, lasting_examples

CONFIGURATION: Final = "configuration"
_BROKERS: Final = "brokers"
_SINK_BROKERS: Final = "brokers of the sink"
_ANY_SCHEMA: Final = 1
"""An arbitrary schema id. It need not exist: an error about it also shows that the registry answers."""


def checks_of(config: Config) -> list[DoctorCheck]:
    """Return all checks, in the order in which to run them."""
    # The check of the store reports its faults.
    with suppress(StoreError, ConfigError):
        config = stores.completed_config(config, answer_s=DEADLINE_S)
    # The cache keeps results, but not errors.
    settings = cache(lambda: components.judge_settings(config, components.lexicon_of(config)))
    checks = [
        DoctorCheck(CONFIGURATION, lambda: check_settings(config, settings), deadline_s=2 * DEADLINE_S),
        DoctorCheck("open files", lambda: check_descriptors(config)),
        DoctorCheck("TLS files", lambda: check_tls(config)),
    ]
    source, value_format = feeds.source_side(config), config.kafka.value_format
    if source.is_lasting:
        checks.append(DoctorCheck("address of the pages", lambda: check_address(config)))
        if KAFKA.matches(config.source.url):
            with suppress(ConfigError):  # the first check reports it
                checks += _Kafka(config).checks()
        if source.is_keyed and value_format != "json":
            wait_s = config.registry.request_s * len(config.registry.url.split(",")) + DEADLINE_S
            check = partial(_check_registry, config, value_format)
            checks.append(DoctorCheck("schema registry", check, deadline_s=wait_s))
    if config.banks.url is not None:
        checks.append(DoctorCheck("banks", partial(_check_banks, config), deadline_s=READ_S + DEADLINE_S))
    checks += service_checks(config)
    checks += console_checks(config)
    return checks + list(store_checks(config, settings, CONFIGURATION))


def _check_banks(config: Config) -> Iterator[Finding]:
    """Read the banks as a run does, and check their cache."""
    try:
        banks = read_banks(config)
    except BankError as error:
        remedy = "Correct banks.url, or the banks that it names."
        yield wrong(ConfigError, f"The banks cannot be used: {error}.", remedy)
    else:
        yield ok(f"{counted(len(banks.banks), 'bank')}, {counted(len(banks.items), 'item')}.")
    if config.banks.cache is not None:
        yield _cache_finding(Path(config.banks.cache))


def _cache_finding(folder: Path) -> Finding:
    """Return a finding on whether the cache can be written. Without a cache, a run works but starts slowly."""
    slow = "each start fingerprints all items"
    if folder.exists() and not folder.is_dir():
        return warning(
            f"The cache of banks {folder} is not a directory, so {slow}.", "Name a directory in banks.cache."
        )
    if not may_write(folder):
        remedy = "Give the user of the run write permission, or correct banks.cache."
        return warning(f"This user may not write the cache of banks {folder}, so {slow}.", remedy)
    return ok(f"The cache of banks {folder} can be written.")


class _Kafka:
    """The checks of brokers, with one client per cluster."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._source = parse_kafka(config.source.url)
        self._sink = parse_kafka(config.sink.url) if KAFKA.matches(config.sink.url) else None
        self._keep_ms = config.lifetime_s * MS_PER_S
        self._clients: dict[str, Callable[[], Brokers]] = {}
        if self._sink is not None:
            self._clients[self._sink.brokers] = cache(partial(self._client, self._sink, SinkError))
        self._clients[self._source.brokers] = cache(partial(self._client, self._source, SourceError))

    def checks(self) -> Iterator[DoctorCheck]:
        """Yield the checks in order. The checks of topics, the group and clocks need the check of their brokers."""
        yield DoctorCheck(_BROKERS, self._check_source_brokers)
        yield DoctorCheck("topics of articles", self._check_sources, _BROKERS)
        yield DoctorCheck("group", self._check_group, _BROKERS)
        yield DoctorCheck("clocks", self._check_clocks, _BROKERS)
        if self._sink is not None:
            needed = _BROKERS
            if self._sink.brokers != self._source.brokers:
                needed = _SINK_BROKERS
                check = partial(self._check_sink_brokers, self._sink)
                yield DoctorCheck(_SINK_BROKERS, check, silent_error=SinkError)
            check = partial(self._check_sink, self._sink)
            yield DoctorCheck("topics of verdicts", check, needed, silent_error=SinkError)

    def _client(self, place: TopicsAddress, silent_error: type[Fatal]) -> Brokers:
        settings = admin_settings(place.brokers, components.kafka_options(self._config))
        return Brokers(place.brokers, settings, silent_error)

    @property
    def _source_client(self) -> Brokers:
        return self._clients[self._source.brokers]()

    def _check_source_brokers(self) -> Iterator[Finding]:
        yield from cluster_findings(
            self._source_client.cluster(), self._config.kafka, transactional=self._transactional
        )

    def _check_sink_brokers(self, sink: TopicsAddress) -> Iterator[Finding]:
        cluster = self._clients[sink.brokers]().cluster()
        yield from cluster_findings(cluster, self._config.kafka, transactional=self._transactional)
        if self._transactional and cluster.id != self._source_client.cluster().id:
            yield wrong(
                ConfigError,
                "Source and sink are in different clusters, and a Kafka transaction cannot span clusters.",
                'Use one cluster, or set kafka.delivery = "at-least-once".',
            )

    def _check_sources(self) -> Iterator[Finding]:
        plans = topic_plan(SinkTopics(""), self._source.names, self._keep_ms)[-len(self._source.names) :]
        yield from source_findings(plans, self._source_topics(), self._keep_ms)

    def _check_group(self) -> Iterator[Finding]:
        section = self._config.kafka
        found = self._source_topics()
        partitions = sum(topic.partitions for topic in found.values())
        group = self._source_client.group(section.group)
        yield from group_findings(group, section, partitions, own_addresses())
        if group is None:
            return

        def stale_ms(topic: str) -> int | None:
            keep_ms = int(found[topic].settings.get("retention.ms", "-1"))
            return int(STALE_SHARE * keep_ms) if keep_ms >= 0 else None

        yield from progress_findings(self._source_client.progress(section.group, self._source.names, stale_ms), section)

    def _check_clocks(self) -> Iterator[Finding]:
        found = self._source_topics()
        by_broker = {name for name, topic in found.items() if not topics.dated_by_producers(topic)}
        ahead_ms = int(self._config.kafka.ahead_s_max * MS_PER_S)
        yield from clock_findings(self._source_client.newest_messages(self._source.names), by_broker, ahead_ms)

    def _check_sink(self, sink: TopicsAddress) -> Iterator[Finding]:
        sink_topics = kafka_parts.sink_topics(self._config)
        plans = [plan for plan in topic_plan(sink_topics) if plan.name in sink_topics.written_topics]
        found = self._clients[sink.brokers]().topics(sink_topics.written_topics)
        yield from topic_findings(plans, found, f"dupwatch topics init --sink {self._config.sink.url}")

    def _source_topics(self) -> dict[str, ExistingTopic]:
        return self._source_client.topics(self._source.names)

    @property
    def _transactional(self) -> bool:
        return self._config.kafka.delivery == "exactly-once"


def _check_registry(config: Config, value_format: SchemaFormat) -> Iterator[Finding]:
    """Request a schema as a consumer does. Raises the error that a consumer would get."""
    # A schema in another format also shows that the registry answers.
    with suppress(UnusableSchema):
        ConfluentRegistry(components.registry_options(config), value_format).schema(_ANY_SCHEMA)
    yield ok(f"The schema registry at {config.registry.url} answers.")


def own_addresses() -> set[str]:
    """Return this machine's addresses, as far as the system reveals them, including loopback."""
    addresses = {"127.0.0.1", "::1"}
    with suppress(OSError):
        addresses |= {str(address[4][0]) for address in socket.getaddrinfo(socket.gethostname(), None)}
    for family, unused in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        # Connecting a datagram socket sends nothing: the system only picks the address it would send from.
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((unused, 9))
            addresses.add(probe.getsockname()[0])
    return addresses


def check_settings(config: Config, settings: Callable[[], JudgeSettings]) -> Iterator[Finding]:
    """Check that a run could be built from this configuration. Some faults raise ``ConfigError`` instead."""
    judge = settings()
    scheme, plan, digest = judge.scheme.name, judge.plan.name, judge.short_digest()
    yield ok(f"The scheme is {scheme}, the plan {plan}, the digest {digest}.")
    chosen = components.engine_choice(config, judge, components.lexicon_of(config))
    yield ok(f"Fingerprints are computed by the engine {chosen.description}.")
    if feeds.source_side(config).is_lasting:
        yield from _check_lasting(config)
    else:
        yield from _check_file(config)
    yield from map(finding_of, kind_of(config.store.url).needs(stores.configured_opening(config)).advice)


def _check_file(config: Config) -> Iterator[Finding]:
    if feeds.is_followed(config) and not has_no_run(config):
        yield wrong(
            ConfigError,
            "The source is a file, but the sink is a topic.",
            "Send the file to a topic with dupwatch produce, or name a file as the sink.",
        )
    if FILE.matches(config.source.url) and not Path(config.source.url).is_file():
        yield wrong(SourceError, f"The source {config.source.url} is not a file.", "Correct source.url or --source.")
    if NOWHERE.matches(config.sink.url) and not has_no_run(config):
        yield wrong(
            ConfigError,
            f"The sink {NOWHERE_URL} is only for dupwatch serve.",
            "Name a file in sink.url, or - for standard output.",
        )
    if FILE.matches(config.sink.url) and not configures_only_console(config):
        yield from check_output_file(Path(config.sink.url), "sink", "sink.url")


def _check_lasting(config: Config) -> Iterator[Finding]:
    # The functions of feeds raise ConfigError with a message that says what to do.
    feeds.check_pair(config)
    for name, path in config.kafka.secret_files.items():
        if not Path(path).read_bytes().strip():
            yield wrong(
                ConfigError, f"kafka.secret_files: the file for {name} is empty.", f"Put the value into {path}."
            )
    feeds.check_settings(config)
    if not stores.outlives_run(config):
        yield warning(
            "The store is in memory: every restart loses it, and consumers do not share it.",
            f"Name a persistent store: {lasting_examples()}.",
        )
