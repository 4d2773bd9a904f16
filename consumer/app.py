"""The one place where things are built and wired together."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, NamedTuple

import msgspec

from consumer import checkpoint as checkpoints
from consumer.article import Article, DecodeLimits, FieldMap, Parse, decode, parse_json
from consumer.backfill_state import store_identity
from consumer.clients import KafkaOptions
from consumer.config import Config, is_kafka
from consumer.dead_letter import DeadLetter, LetterPosition, dead_letter
from consumer.detector import Detector, Tally
from consumer.errors import BadRecord, ConfigError, Fatal, StoreBroken, StoreMismatch
from consumer.feed import ArchiveFeed, Feed, FileFeed, StreamFeed
from consumer.feed_gate import FeedGate
from consumer.fingerprint import BlockPlan, Fingerprinter, Lexicon, Scheme, SketchLayout
from consumer.fingerprinting import Fingerprinting, InProcess, OnWorkers
from consumer.interruptible_store import InterruptibleStore
from consumer.journal import FileJournal, Journal, NoJournal
from consumer.lexicon import WordFiles, load_lexicon
from consumer.messages import DecodeValue
from consumer.moments import parse_zone
from consumer.patience import Drain
from consumer.pipeline import Observer, Patience, Pipeline
from consumer.poison import PoisonLimit
from consumer.ports import Marks, Position, RawRecord, Sink
from consumer.published import TimeForm
from consumer.settings import JudgeSettings, SourceRule, differences
from consumer.sinks.apart import check_apart, check_streams_apart
from consumer.sinks.file import UNEXPLAINED, FileSink, StreamSink, check_file_sink
from consumer.sinks.line_file import check_suffix
from consumer.sources.file import FileSource, ReadLimits
from consumer.stopping import Stopping
from consumer.telemetry.store_probe import ANSWER_S
from consumer.values.outages import Briefly
from consumer.values.registry import RegistryOptions
from consumer.values.written import schema_parser
from consumer.versions import VersionBuilder
from consumer.waiting import tell_store_wait
from storage.clock import now_ms
from storage.errors import StoreError, StoreRefused
from storage.files import FileWriting
from storage.hbase import HbaseOptions, TlsOptions, parse_place
from storage.hbase.options import ROW_POSTINGS_MAX as HBASE_ROW_POSTINGS_MAX
from storage.interface import Store
from storage.lmdb import LmdbOptions, LmdbStore
from storage.memory import ROW_POSTINGS_MAX, MemoryStore
from storage.watched import StoreWatcher, WatchedStore

STREAM = "-"
_LMDB = "lmdb:"
_HBASE = "hbase://"
_FIRST_LINE_BYTES_MAX = 4096
_MS_PER_S = 1000


class Streams(NamedTuple):
    """Where ``-`` goes: verdicts to ``out``, dead letters to ``err``."""

    out: BinaryIO
    err: BinaryIO


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is ready to go, and what can be told of it while it does."""

    pipeline: Pipeline
    source: FileSource
    store: Store
    tally: Tally
    resumed_at: Position
    resumable: bool


def scheme_of(config: Config) -> Scheme:
    """The scheme that is configured; ConfigError where there is none such."""
    section = config.fingerprint
    try:
        layout = SketchLayout(bands=section.bands, band_minima=section.band_minima)
        return Scheme(
            name=section.scheme,
            keywords_max=section.keywords_max,
            short_keywords_max=section.short_keywords_max,
            sketch=layout,
            facts=config.guards_facts,
        )
    except ValueError as error:
        raise ConfigError(f"fingerprint: {error}") from error


def word_files(config: Config) -> WordFiles:
    """The user's own word files, as configured."""
    section = config.fingerprint
    named = (section.dictionary, section.stop_words, section.idf)
    return WordFiles(*(None if name is None else Path(name) for name in named))


def lexicon_of(config: Config) -> Lexicon:
    """The words as configured; ConfigError where a file of the user's is not as it has to be."""
    try:
        return load_lexicon(*word_files(config))
    except ValueError as error:
        raise ConfigError(f"fingerprint: {error}") from error
    except OSError as error:
        raise ConfigError(f"fingerprint: {error.filename} cannot be read: {error.strerror}") from error


def judge_settings(config: Config, lexicon: Lexicon) -> JudgeSettings:
    """What decides verdicts, as configured; ConfigError where it cannot hold."""
    scheme = scheme_of(config)
    judge = config.judge
    rules = {name: SourceRule(**rule.model_dump()) for name, rule in config.rules.items()}
    try:
        settings = JudgeSettings(
            plan=BlockPlan.named(judge.plan, scheme.bits),
            scheme_digest=scheme.digest(lexicon),
            scheme=scheme,
            max_distance=judge.max_distance,
            reach=judge.reach,
            verify=judge.verify,
            similarity_min=judge.similarity_min,
            lane1=judge.lane1,
            window_ms=judge.window_s * _MS_PER_S,
            verifications_max=judge.verifications_max,
            sources=MappingProxyType(rules),
            facts_shared_min=judge.facts_shared_min,
        )
    except ValueError as error:
        raise ConfigError(f"judge: {error}") from error
    return settings


def fingerprinter(settings: JudgeSettings, lexicon: Lexicon) -> Fingerprinter:
    """Makes fingerprints as these settings judge them."""
    return Fingerprinter(settings.scheme, lexicon, sketched=settings.sketched)


def version_builder(settings: JudgeSettings) -> VersionBuilder:
    """Builds versions as these settings judge them."""
    return VersionBuilder(settings.scheme.name, settings.plan, settings.lane1)


@contextmanager
def opened_store(
    config: Config, *, readonly: bool = False, watcher: StoreWatcher | None = None, quiet: bool = False
) -> Iterator[Store]:
    """The store that is configured, closed afterwards; ``watcher`` is told how it does.

    A wait for its answer is announced after two seconds unless it is to be ``quiet``.
    """
    section = config.store
    store: Store
    if section.url.startswith(_LMDB):
        options = LmdbOptions(
            durability=section.durability,
            keep_bodies=section.keep_bodies,
            row_postings_max=section.row_postings_max or LmdbOptions().row_postings_max,
            map_bytes=min(LmdbOptions().map_bytes, section.map_bytes_max),
            map_bytes_max=section.map_bytes_max,
            readonly=readonly,
            file_mode=config.files.bits,
        )
        store = LmdbStore.open(Path(section.url.removeprefix(_LMDB)), options)
    elif section.url.startswith(_HBASE):
        from storage.hbase.store import HbaseStore  # noqa: PLC0415  # 0.1 s that other stores must not cost

        tell_wait = None if quiet else tell_store_wait
        store = HbaseStore.open(parse_place(section.url), _hbase_options(config, readonly=readonly), watcher, tell_wait)
    elif readonly:
        raise ConfigError(
            "a store in memory ends with its run; name the one to look into: --store lmdb:PATH or hbase://HOST:PORT/NAMESPACE"
        )
    else:
        store = MemoryStore(row_postings_max=section.row_postings_max or ROW_POSTINGS_MAX)
    try:
        yield store if watcher is None else WatchedStore(store, watcher)
    finally:
        store.close()


def is_empty(config: Config) -> bool:
    """Whether the store that is configured holds nothing, or is yet to be made."""
    url = config.store.url
    if url.startswith(_LMDB) and not Path(url.removeprefix(_LMDB)).exists():
        return True
    with opened_store(config, readonly=True) as store:
        return next(store.scan(), None) is None


def is_remote(config: Config) -> bool:
    """Whether the store is behind a network, and may be out of reach."""
    return config.store.url.startswith(_HBASE)


def impatient(config: Config) -> Config:
    """The same configuration for one who asks whether the store answers, and does not wait for it."""
    hbase = config.store.hbase.model_copy(update={"deadline_s": ANSWER_S, "call_s": ANSWER_S})
    return config.model_copy(update={"store": config.store.model_copy(update={"hbase": hbase})})


def outlives_run(config: Config) -> bool:
    """Whether what is judged can be looked into, and gone on with, after the run."""
    return config.store.url.startswith((_LMDB, _HBASE))


def _hbase_options(config: Config, *, readonly: bool) -> HbaseOptions:
    section = config.store.hbase
    tls = TlsOptions(section.tls_ca, section.tls_certificate, section.tls_key) if section.tls else None
    # Who only looks does not write what could expire too early.
    ttl_min_s = HbaseOptions().ttl_min_s if readonly else config.judge.window_s + config.store.slack_s
    return HbaseOptions(
        keep_bodies=config.store.keep_bodies,
        row_postings_max=config.store.row_postings_max
        or HBASE_ROW_POSTINGS_MAX.get(config.judge.plan, HbaseOptions().row_postings_max),
        deadline_s=section.deadline_s,
        call_s=section.call_s,
        connect_s=section.connect_s,
        connections_max=section.connections_max,
        retire_s=section.retire_s,
        tls=tls,
        ttl_min_s=ttl_min_s,
        readonly=readonly,
    )


def bind(store: Store, settings: JudgeSettings) -> None:
    """Bind the store to these settings, or find that it is bound to others: StoreMismatch says which."""
    stored = store.agree(settings.encode())
    if stored == settings.encode():
        return
    try:
        found = list(differences(stored, settings))
        # It follows from the scheme's settings, and says something only where they are the same.
        differing = "; ".join([one for one in found if not one.startswith("scheme_digest ")] or found)
    except (ValueError, AttributeError) as error:
        raise StoreMismatch(
            f"the store is damaged: the settings that it was made with cannot be read ({error}). Restore it from a "
            "copy, or name another store."
        ) from error
    raise StoreMismatch(f"the store was made with other settings: {differing}. Use those, or name another store.")


def stored_settings(store: Store, lexicon: Lexicon) -> JudgeSettings:
    """The settings that the store is bound to, for commands that look into it."""
    stored = store.settings()
    if stored is None:
        raise StoreMismatch("the store is empty: nothing was ever judged into it")
    try:
        settings = JudgeSettings.decode(stored)
    except (ValueError, TypeError, KeyError) as error:
        raise StoreMismatch(f"the store was made by another version of dupwatch: {error}") from error
    if settings.scheme.digest(lexicon) != settings.scheme_digest:
        raise StoreMismatch("the store was made with another dictionary or another version of the scheme")
    return settings


def fatal(error: StoreError) -> Fatal:
    """What a store's error means for a run."""
    return StoreMismatch(str(error)) if isinstance(error, StoreRefused) else StoreBroken(str(error))


@contextmanager
def prepared_run(
    config: Config,
    streams: Streams,
    observer: Observer,
    stopping: Stopping,
    undated: Callable[[], None] | None = None,
) -> Iterator[Run]:
    """Build a run over a file or a stream from its configuration; what it holds is let go of afterwards.

    With ``undated`` the file is an archive: its articles came when they were published, and ``undated`` is told of each
    that does not say when.
    """
    if is_kafka(config.sink.url):
        raise ConfigError("a kafka:// sink needs a kafka:// source; a file is judged into a file, or to -")
    with ExitStack() as held:
        lexicon = lexicon_of(config)
        settings = judge_settings(config, lexicon)
        before = _checkpoint(config)
        start = Position() if before is None else before.position
        source = FileSource(_path(config.source.url), read_limits(config), start)
        held.callback(source.close)
        # Whatever can be refused is refused before a store or a sink is made.
        _check_places(config, before, source, streams)
        if before is not None:
            _check_resumable(before, source, settings, config)
        store = held.enter_context(opened_store(config))
        bind(store, settings)
        if before is not None:
            # The store says which settings differ, so it is asked first.
            checkpoints.check_settings(before, settings.digest())
            _check_remembered(before, is_empty=next(store.scan(), None) is None)
        check = Drain(stopping, config.kafka.drain_s).check
        making = fingerprinting(config, settings, lexicon, check)
        held.callback(making.close)
        sink = _sink(config, before, source, streams)
        held.callback(sink.close)
        try:
            feed, journal = _feed_and_journal(config, settings, before, source, sink)
        except Fatal:
            if isinstance(sink, FileSink):
                sink.discard()
            raise
        if undated is not None:
            feed = _archive(feed, undated)
        detector = Detector(InterruptibleStore(store, check), settings, now_ms)
        pipeline = Pipeline(
            source=source,
            decode=record_decoder(config),
            bury=_burier(config.source.url),
            fingerprinting=making,
            builder=version_builder(settings),
            feed=feed,
            detector=detector,
            sink=sink,
            journal=journal,
            observer=observer,
            stopping=stopping,
            keep_ms=settings.window_ms + config.store.slack_s * _MS_PER_S,
            postings_watch=config.judge.postings_watch,
            turn=check,
            check=check,
            poison=_gate(config, source, before),
        )
        yield Run(pipeline, source, store, detector.tally, start, isinstance(journal, FileJournal))


def _gate(config: Config, source: FileSource, before: checkpoints.Checkpoint | None) -> FeedGate:
    """What ends the run where too many records cannot be judged."""
    limit = PoisonLimit(config.source.poison_share_max, config.source.poison_records_min)
    good_before = 0 if before is None else before.counts.articles
    return FeedGate(limit, field_map(config), source.name, streams=source.streams, good_before=good_before)


def _path(url: str) -> Path | None:
    """The file that is named; None for a standard stream."""
    return None if url == STREAM else Path(url)


def _checkpoint_path(config: Config) -> Path | None:
    """Where a run keeps how far it came: only files can be gone on with, and only a store that outlives the run."""
    source, sink = _path(config.source.url), _path(config.sink.url)
    if source is None or sink is None or not outlives_run(config):
        return None
    return checkpoints.checkpoint_path(sink)


def _checkpoint(config: Config) -> checkpoints.Checkpoint | None:
    path = _checkpoint_path(config)
    return None if path is None else checkpoints.load(path)


def _sink(config: Config, before: checkpoints.Checkpoint | None, source: FileSource, streams: Streams) -> Sink:
    path = _path(config.sink.url)
    if path is None:
        return StreamSink(streams.out, streams.err, emit=config.sink.emit)
    marks, unexplained = _start_of_sink(config, before, source, path)
    return FileSink(path, marks, file_writing(config), emit=config.sink.emit, unexplained=unexplained)


def _start_of_sink(
    config: Config, before: checkpoints.Checkpoint | None, source: FileSource, path: Path
) -> tuple[Marks | None, str]:
    """What a sink has of earlier runs, None for nothing, and why a run may not append to it then."""
    if source.streams:
        return None, f"a run that reads {source.name} always needs a new sink, since it cannot be resumed"
    if not outlives_run(config):
        return None, "a run with a memory: store always needs a new sink, since it cannot be resumed"
    if before is None:
        return None, f"there is no checkpoint {checkpoints.checkpoint_path(path)} that says what wrote it"
    return before.marks, UNEXPLAINED


def file_writing(config: Config) -> FileWriting:
    """How files are written, as configured."""
    return FileWriting(durable=config.store.durability == "power", mode=config.files.bits)


def _feed_and_journal(
    config: Config,
    settings: JudgeSettings,
    before: checkpoints.Checkpoint | None,
    source: FileSource,
    sink: Sink,
) -> tuple[Feed, Journal]:
    """When the records of this run came, and where it is kept how far it got."""
    if source.streams:
        return StreamFeed(now_ms), NoJournal()
    identity = _identity(config.source.url, source)
    path = _checkpoint_path(config)
    if path is None:
        return FileFeed(now_ms(), identity), NoJournal()
    began_ms = checkpoints.began_ms(before, now_ms())
    if before is None:
        before = checkpoints.Checkpoint(source=config.source.url, began_ms=began_ms, settings=settings.digest())
    now = msgspec.structs.replace(
        before,
        source=config.source.url,
        began_ms=began_ms,
        finished=False,
        emit=config.sink.emit,
        store=store_identity(config.store.url),
    )
    return FileFeed(began_ms, identity), FileJournal(path, now, source.beginning, sink, file_writing(config))


def _archive(feed: Feed, undated: Callable[[], None]) -> Feed:
    if not isinstance(feed, FileFeed):
        raise ConfigError("an archive is a file that can be read again; name one instead of a stream")
    return ArchiveFeed(feed.began_ms, feed.identity, undated)


def _check_places(config: Config, before: checkpoints.Checkpoint | None, source: FileSource, streams: Streams) -> None:
    """Refuse a sink that the run must not write to. Makes and changes nothing."""
    path = _path(config.sink.url)
    if path is None:
        check_streams_apart(source, streams)
        return
    check_suffix(path, "verdicts")
    store = Path(config.store.url.removeprefix(_LMDB)) if config.store.url.startswith(_LMDB) else None
    check_apart(source, path, store)
    check_file_sink(path, *_start_of_sink(config, before, source, path))


def _check_resumable(
    before: checkpoints.Checkpoint, source: FileSource, settings: JudgeSettings, config: Config
) -> None:
    checkpoints.check_source(before, source.name, source.beginning)
    checkpoints.check_emit(before, config.sink.emit, config.sink.url)
    is_lmdb = config.store.url.startswith(_LMDB)
    if is_lmdb and not Path(config.store.url.removeprefix(_LMDB)).exists():
        # Opening it would make it.
        checkpoints.check_settings(before, settings.digest())
        _check_remembered(before, is_empty=True)


def _check_remembered(before: checkpoints.Checkpoint, *, is_empty: bool) -> None:
    if is_empty and before.counts.unique:
        raise ConfigError(
            "the store is empty, but this run has judged articles before: name the store it used, "
            "or begin anew with another --sink (a backfill: with another --state)"
        )


def _identity(url: str, source: FileSource) -> bytes:
    """What tells one feed from another, also after lines were added: where it is, and its first line."""
    first_line = source.beginning(_FIRST_LINE_BYTES_MAX).partition(b"\n")[0]
    return hashlib.sha256(os.fsencode(Path(url).resolve()) + b"\0" + first_line).digest()


def read_limits(config: Config) -> ReadLimits:
    """How much is read at once, as configured."""
    section = config.source
    return ReadLimits(
        record_bytes_max=section.record_bytes_max,
        batch_records_max=section.batch_records_max,
        batch_bytes_max=section.batch_bytes_max,
    )


def fingerprinting(
    config: Config,
    settings: JudgeSettings,
    lexicon: Lexicon,
    turn: Callable[[], None] = lambda: None,
    helped: Callable[[], None] = lambda: None,
) -> Fingerprinting:
    """Where fingerprints are made, as configured; ``turn`` and ``helped`` are as there."""
    if config.workers:
        scheme, words = settings.scheme, word_files(config)
        return OnWorkers(scheme, words, config.workers, sketched=settings.sketched, helped=helped)
    return InProcess(fingerprinter(settings, lexicon), turn)


def record_decoder(config: Config) -> Callable[[RawRecord], Article]:
    """What decodes records as they were read; it raises BadRecord, also what was found wrong while reading."""
    decode_bytes = decoder(config)
    return lambda record: decode_bytes(record.whole())


def kafka_options(config: Config) -> KafkaOptions:
    """What the Kafka clients are told, as configured."""
    section = config.kafka
    return KafkaOptions(
        group=section.group,
        instance_id=section.instance_id,
        group_protocol=section.group_protocol,
        client=section.client,
        consumer=section.consumer,
        producer=section.producer,
        secret_files=section.secret_files,
    )


def decoder(config: Config) -> Callable[[bytes], Article]:
    """What decodes records as configured; it raises BadRecord."""
    decode_value = _json_decoder(config)
    return lambda data: decode_value(data, None)


def value_decoder(config: Config, patience: Patience | None = None) -> DecodeValue:
    """What decodes values of messages, which may be written by a schema; it raises BadRecord.

    ``patience`` is what is done while the schema registry is out of reach; by default it is asked again for some
    seconds, and then ``RegistryUnavailable`` ends the run. ConfigError where the registry's client cannot be made.
    """
    if config.kafka.value_format == "json":
        return _json_decoder(config)
    options = registry_options(config)
    parse = schema_parser(config.kafka.value_format, options, patience or Briefly(), decode_limits(config))
    return _decoder(config, parse)


def registry_options(config: Config) -> RegistryOptions:
    """Where schemas are, as configured."""
    section = config.registry
    return RegistryOptions(
        section.url, section.request_s, section.client, section.secret_files, section.schema_bytes_max
    )


def decode_limits(config: Config) -> DecodeLimits:
    """How much a record may have, and become, as configured."""
    section = config.source
    return DecodeLimits(
        record_bytes_max=section.record_bytes_max,
        body_chars_max=section.body_chars_max,
        folded_chars_max=section.folded_chars_max,
        fold_growth_max=section.fold_growth_max,
        values_max=section.values_max,
        attributes_max=section.attributes_max,
        depth_max=section.depth_max,
    )


def field_map(config: Config) -> FieldMap:
    """Where the fields of an article stand, and what its times mean, as configured."""
    section = config.source
    zone = section.published_at_zone
    times = TimeForm(section.published_at_unit, None if zone is None else parse_zone(zone))
    return FieldMap(**section.fields.model_dump(), times=times)


def _json_decoder(config: Config) -> DecodeValue:
    return _decoder(config, partial(parse_json, values_max=config.source.values_max))


def _decoder(config: Config, parse: Parse) -> DecodeValue:
    section, limits = config.source, decode_limits(config)
    fields = field_map(config)
    return lambda data, key: decode(data, fields, limits, section.body_format, key, parse)


def _burier(source: str) -> Callable[[RawRecord, BadRecord], DeadLetter]:
    def bury(record: RawRecord, fault: BadRecord) -> DeadLetter:
        position = LetterPosition(source=source, line=record.line, offset=record.start)
        return dead_letter(fault, position, record.data, size_bytes=record.size_bytes, sha256=record.sha256)

    return bury
