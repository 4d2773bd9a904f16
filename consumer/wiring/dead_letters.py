"""Where the dead letters of a run go, and where they are read back: the one place that decides it.

They go beside the verdicts: into a file whose name begins with that of the verdicts, to standard error, or into a topic
of the same prefix. A run whose verdicts are discarded discards its dead letters too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consumer.config.config import Config
from consumer.files.letters import DEAD_LETTERS_SUFFIX, FileDeadLetters, FileLetters, dead_letters_path
from consumer.files.line_file import check_line_file
from consumer.files.sinks import Nowhere, StreamDeadLetters
from consumer.kafka.client_settings import is_kafka, parse_prefix
from consumer.kafka.sink.topic_letters import TopicDeadLetters, TopicLetters
from consumer.kafka.topics import SinkTopics
from consumer.model.errors import ConfigError, SourceError
from consumer.model.letter import Letters
from consumer.model.ports import DeadLetterSink
from consumer.wiring.components import STREAM, file_writing, kafka_options
from consumer.wiring.outputs import FileOutput, Output, StreamOutput, TopicOutput


def dead_letter_sink(config: Config, verdicts: Output) -> DeadLetterSink:
    """Build the sink of dead letters for a run whose verdicts go there. Raises ``SinkError``."""
    if isinstance(verdicts, FileOutput):
        return FileDeadLetters(
            dead_letters_path(verdicts.path),
            verdicts.dead_letters_bytes,
            file_writing(config),
            why_not_append=verdicts.why_not_append,
        )
    if isinstance(verdicts, StreamOutput):
        return StreamDeadLetters(verdicts.streams.err)
    if isinstance(verdicts, TopicOutput):
        # Letters share the outbox of the verdicts, and so its transactions.
        return TopicDeadLetters(verdicts.outbox, verdicts.topics.dead_letters_topic)
    return Nowhere()


def check_dead_letter_sink(verdicts: FileOutput) -> None:
    """Raise the ``SinkError`` that ``dead_letter_sink`` would raise. Creates and changes nothing."""
    check_line_file(dead_letters_path(verdicts.path), verdicts.dead_letters_bytes, verdicts.why_not_append)


def dead_letters_file(verdicts: Path) -> Path:
    """Return the file that gets the dead letters of a run whose verdicts go to this file."""
    return dead_letters_path(verdicts)


@contextmanager
def written_letters(config: Config) -> Iterator[Letters]:
    """Open the letters of the configured sink, or of a file of letters that is named itself."""
    if config.sink.url == STREAM:
        raise ConfigError("name the dead letters: --sink FILE or --sink kafka://HOST:PORT/PREFIX")
    if is_kafka(config.sink.url):
        brokers, topic = letters_topic(config)
        with TopicLetters(brokers, topic, kafka_options(config)) as letters:
            yield letters
    else:
        yield FileLetters(_letters_path(Path(config.sink.url)))


def letters_topic(config: Config) -> tuple[str, str]:
    """Return the brokers and the topic of the letters of a prefix; ``ConfigError`` where the sink is not one prefix."""
    if not is_kafka(config.sink.url):
        raise ConfigError(f"{config.sink.url} is not a topic; name one with --sink kafka://HOST:PORT/PREFIX")
    brokers, prefix = parse_prefix(config.sink.url)
    return brokers, SinkTopics(prefix).dead_letters_topic


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
