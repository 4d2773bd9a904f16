"""Builds the parts that several kinds of run share."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Lock

from consumer.banks.known_texts import KnownTexts
from consumer.config.config import Config
from consumer.config.judging import configured_scheme, configured_settings
from consumer.decode.article import ArticleDecoder, FieldMap, Parse
from consumer.decode.html.page import load_extractor
from consumer.decode.json_value import parse_json
from consumer.decode.message import DecodeValue, decode_message
from consumer.decode.published_at import TimeForm
from consumer.decode.schemas.registry import BriefRetry, RegistryOptions
from consumer.decode.schemas.schema_value import schema_parser
from consumer.feeds.kinds import source_of
from consumer.files.lines import Position
from consumer.files.source import STREAM, FileSource
from consumer.files.tables import FileForm
from consumer.fingerprint import Engine, Lexicon, Scheme, default_tokenizer
from consumer.judge.binding import Binding
from consumer.judge.common_hashes import CommonHashes
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import VersionBuilder
from consumer.kafka.client_settings import KafkaOptions
from consumer.lifecycle.interruption import UNINTERRUPTED, Interruption
from consumer.lifecycle.retry import RetryPolicy
from consumer.model.article import Article, BodyForm
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks
from consumer.model.limits import DecodeLimits, ReadLimits
from consumer.model.record import RawRecord
from consumer.reviews.word_index.words import WordCutter
from consumer.text.timestamps import parse_zone
from consumer.workers.engines import COMPILED, BankAwareEngine, ChosenEngine, chosen_engine, new_engine
from consumer.workers.pool import Fingerprinting, InlineFingerprinting, ProcessFingerprinting, ThreadedFingerprinting
from consumer.workers.word_files import WordFiles, load_lexicon
from storage.files import WriteOptions


def scheme_of(config: Config) -> Scheme:
    """Return the configured scheme. Raises ``ConfigError`` if it does not exist."""
    try:
        return configured_scheme(config)
    except ValueError as error:
        raise ConfigError(f"fingerprint: {error}") from error


def word_files(config: Config) -> WordFiles:
    """Return the user's own word files."""
    section = config.fingerprint
    named = (section.dictionary, section.stop_words, section.idf)
    return WordFiles(*(None if name is None else Path(name) for name in named))


def lexicon_of(config: Config) -> Lexicon:
    """Load the configured words. Raises ``ConfigError`` if one of the user's files cannot be used."""
    try:
        return load_lexicon(*word_files(config))
    except ValueError as error:
        raise ConfigError(f"fingerprint: {error}") from error
    except OSError as error:
        raise ConfigError(f"fingerprint: {error.filename} cannot be read: {error.strerror}") from error


def word_cutter(lexicon: Lexicon) -> WordCutter:
    """Build the cutter of words for the console's search.

    It ignores the user's own words, because consoles that share a database must cut texts in the same way.
    """
    tokenizer, lock = default_tokenizer(), Lock()

    def cut(text: str) -> list[str]:
        with lock:
            return tokenizer.cut(text)

    simplified: dict[int, str] = {}
    for step in lexicon.chinese().steps:
        one_by_one = {ord(char): form for char, form in step.characters.items() if len(form) == 1}
        simplified = {**one_by_one, **{code: form.translate(one_by_one) for code, form in simplified.items()}}
    return WordCutter(cut, simplified)


def judge_settings(config: Config, lexicon: Lexicon) -> JudgeSettings:
    """Return the judge's settings. Raises ``ConfigError`` if they contradict each other."""
    scheme = scheme_of(config)
    try:
        return configured_settings(config, scheme, scheme.digest(lexicon))
    except ValueError as error:
        raise ConfigError(f"judge: {error}") from error


def engine_choice(config: Config, settings: JudgeSettings, lexicon: Lexicon) -> ChosenEngine:
    """Return the engine for fingerprints. Raises ``ConfigError`` if the configured one is not available."""
    return chosen_engine(config.fingerprint.engine, settings.scheme, lexicon)


def engine(
    config: Config, bound: Binding, lexicon: Lexicon, *, sketched: bool = False, known: KnownTexts | None = None
) -> Engine:
    """Build the engine of fingerprints for this process.

    It computes sketches if ``sketched`` is set or the judge needs sketches. It also finds the shingles of ``known``
    texts.
    """
    name = engine_choice(config, bound.settings, lexicon).name
    sketched = sketched or bound.settings.sketched
    scheme, parts = bound.settings.scheme, config.judge.parts
    built = new_engine(name, scheme, lexicon, sketched=sketched, parts=parts, secret=bound.secret)
    return built if known is None else BankAwareEngine(built, lambda: known.known_shingles)


def version_builder(bound: Binding) -> VersionBuilder:
    """Build the builder of versions."""
    return VersionBuilder(bound.scheme, bound.settings.plan, bound.settings.lane1)


def common_hashes(config: Config) -> CommonHashes | None:
    """Return the counter of hashes that many articles have; None if parts are not compared."""
    return CommonHashes() if config.judge.parts else None


def write_options(config: Config) -> WriteOptions:
    """Return the durability and the mode of written files."""
    return WriteOptions(durable=config.store.durability == "power", mode=config.files.bits)


def read_limits(config: Config) -> ReadLimits:
    """Return the size limits of records and batches."""
    section = config.source
    return ReadLimits(
        record_bytes_max=section.record_bytes_max,
        batch_records_max=section.batch_records_max,
        batch_bytes_max=section.batch_bytes_max,
    )


def file_form(config: Config) -> FileForm:
    """Return the format of files of articles."""
    section = config.source
    return FileForm(section.format, section.encoding, section.fields)


def feed_file(config: Config, feed: str | Path) -> FileSource:
    """Open a file of articles, or standard input, to be read from its beginning. Raises ``SourceError``."""
    path = None if feed == STREAM else Path(feed)
    return FileSource(path, read_limits(config), Position(), file_form(config))


def fingerprinting(
    config: Config,
    bound: Binding,
    lexicon: Lexicon,
    interruption: Interruption = UNINTERRUPTED,
    hooks: Hooks | None = None,
    known: KnownTexts | None = None,
) -> Fingerprinting:
    """Build the fingerprinting: in this thread, calling ``interruption``, or in workers, which report to ``hooks``.

    It also finds the shingles of ``known`` texts. Raises ``ConfigError`` if worker processes would have to find them.
    """
    if not config.workers:
        return InlineFingerprinting(engine(config, bound, lexicon, known=known), interruption.while_preparing)
    if engine_choice(config, bound.settings, lexicon).name == COMPILED:
        return ThreadedFingerprinting(engine(config, bound, lexicon, known=known), config.workers, hooks)
    if known is not None:
        raise ConfigError(
            "worker processes do not know the texts of banks: set workers = 0, or use the compiled engine"
        )
    return ProcessFingerprinting(
        bound.settings.scheme,
        word_files(config),
        config.workers,
        secret=bound.secret,
        sketched=bound.settings.sketched,
        parts=config.judge.parts,
        hooks=hooks,
    )


def file_decoder(config: Config) -> Callable[[RawRecord], Article]:
    """Return the decoder of records of files. It raises ``BadRecord``, including for a fault found while reading."""
    return decoder(config).record


def record_decoder(config: Config, retry: RetryPolicy | None = None) -> Callable[[RawRecord], Article]:
    """Return the decoder of the configured source, which raises ``BadRecord``; ``retry`` as in ``value_decoder``."""
    if not source_of(config.source.url).is_keyed:
        return file_decoder(config)
    return message_decoder(config, retry)


def message_decoder(config: Config, retry: RetryPolicy | None = None) -> Callable[[RawRecord], Article]:
    """Return the decoder of messages, which raises ``BadRecord``; ``retry`` as in ``value_decoder``."""
    decode_value = value_decoder(config, retry)
    id_bytes_max = DecodeLimits().id_bytes_max
    id_from = config.kafka.id_from
    return partial(decode_message, decode_value=decode_value, id_from=id_from, id_bytes_max=id_bytes_max)


def kafka_options(config: Config) -> KafkaOptions:
    """Return the configured options of Kafka clients."""
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


def decoder(config: Config) -> ArticleDecoder:
    """Return the decoder of JSON records, which raises ``BadRecord``."""
    return _decoder(config, partial(parse_json, values_max=config.source.values_max))


def value_decoder(config: Config, retry: RetryPolicy | None = None) -> DecodeValue:
    """Return the decoder of messages' values, which may need a schema; it raises ``BadRecord``.

    ``retry`` is the policy while the schema registry is out of reach. By default requests are retried for some
    seconds, and then ``RegistryUnavailable`` ends the run. Raises ``ConfigError`` if the registry's client cannot be
    created.
    """
    if config.kafka.value_format == "json":
        return decoder(config)
    options = registry_options(config)
    parse = schema_parser(config.kafka.value_format, options, retry or BriefRetry(), decode_limits(config))
    return _decoder(config, parse)


def registry_options(config: Config) -> RegistryOptions:
    """Return the options of the schema registry."""
    section = config.registry
    return RegistryOptions(
        section.url, section.request_s, section.client, section.secret_files, section.schema_bytes_max
    )


def decode_limits(config: Config) -> DecodeLimits:
    """Return the limits of a record, before and after decoding."""
    section = config.source
    return DecodeLimits(
        record_bytes_max=section.record_bytes_max,
        body_chars_max=section.body_chars_max,
        page_chars_max=section.page_chars_max,
        folded_chars_max=section.folded_chars_max,
        fold_growth_max=section.fold_growth_max,
        values_max=section.values_max,
        attributes_max=section.attributes_max,
        depth_max=section.depth_max,
    )


def field_map(config: Config) -> FieldMap:
    """Return the places of an article's fields in a record, and the unit and zone of its times."""
    section = config.source
    zone = section.published_at_zone
    times = TimeForm(section.published_at_unit, None if zone is None else parse_zone(zone))
    return FieldMap(**asdict(section.fields), times=times)


def body_form(config: Config) -> BodyForm:
    """Return the form of bodies, and load its extractor. Raises ``ConfigError`` if its package is not installed."""
    form = config.source.body_form
    load_extractor(form)
    return form


def _decoder(config: Config, parse: Parse) -> ArticleDecoder:
    return ArticleDecoder(field_map(config), decode_limits(config), body_form(config), parse)
