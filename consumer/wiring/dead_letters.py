"""Where dead letters go and where they are read back: the one place that decides it.

They go beside the verdicts: into a file whose name begins with that of the verdicts, to standard error, or into a topic
of the same prefix.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consumer.config.config import Config
from consumer.dead_letters.file_letters import DEAD_LETTERS_SUFFIX, FileDeadLetters, FileLetters, dead_letters_path
from consumer.dead_letters.letter import Letters
from consumer.dead_letters.stream_letters import StreamDeadLetters
from consumer.dead_letters.topic_dead_letters import TopicDeadLetters
from consumer.dead_letters.topic_letters import TopicLetters
from consumer.kafka.client_settings import KafkaPlace, is_kafka, parse_kafka
from consumer.kafka.topics import SinkTopics
from consumer.model.errors import ConfigError, SourceError
from consumer.model.ports import DeadLetterSink, Marks
from consumer.sinks.line_file import check_line_file
from consumer.sinks.outbox import Outbox
from consumer.wiring.parts import STREAM, Streams, file_writing, kafka_options


def beside_file(config: Config, verdicts: Path, marks: Marks | None, unexplained: str) -> DeadLetterSink:
    """Build the sink of a run that writes verdicts to a file; the parameters are those of ``FileSink``."""
    keep_bytes = None if marks is None else marks.dead_letters_bytes
    return FileDeadLetters(dead_letters_path(verdicts), keep_bytes, file_writing(config), unexplained=unexplained)


def check_beside_file(verdicts: Path, marks: Marks | None, unexplained: str) -> None:
    """Raise the ``SinkError`` that ``beside_file`` would raise. Creates and changes nothing."""
    keep_bytes = None if marks is None else marks.dead_letters_bytes
    check_line_file(dead_letters_path(verdicts), keep_bytes, unexplained)


def beside_stream(streams: Streams) -> DeadLetterSink:
    """Build the sink of a run that writes verdicts to standard output."""
    return StreamDeadLetters(streams.err)


def beside_topics(topics: SinkTopics, outbox: Outbox) -> DeadLetterSink:
    """Build the sink of a run that sends verdicts through this outbox: letters share its transactions."""
    return TopicDeadLetters(outbox, topics.dead_letters_topic)


@contextmanager
def written_letters(config: Config) -> Iterator[Letters]:
    """Open the letters of the configured sink, or of a file of letters that is named itself."""
    if config.sink.url == STREAM:
        raise ConfigError("name the dead letters: --sink FILE or --sink kafka://HOST:PORT/PREFIX")
    if is_kafka(config.sink.url):
        place, topic = letters_topic(config)
        with TopicLetters(place.brokers, topic, kafka_options(config)) as letters:
            yield letters
    else:
        yield FileLetters(_letters_path(Path(config.sink.url)))


def letters_topic(config: Config) -> tuple[KafkaPlace, str]:
    """Return the brokers and the topic of the letters of a prefix; ``ConfigError`` where the sink is not one prefix."""
    if not is_kafka(config.sink.url):
        raise ConfigError(f"{config.sink.url} is not a topic; name one with --sink kafka://HOST:PORT/PREFIX")
    place = parse_kafka(config.sink.url)
    if len(place.names) != 1:
        raise ConfigError(f"{config.sink.url} names several prefixes; name one")
    return place, SinkTopics(place.names[0]).dead_letters_topic


def _letters_path(path: Path) -> Path:
    if path.name.endswith(DEAD_LETTERS_SUFFIX):
        return path
    beside = dead_letters_path(path)
    try:
        has_none = path.exists() and not beside.exists()
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from error
    if has_none:
        raise ConfigError(f"{path} has no dead letters: there is no {beside.name} beside it")
    return beside
