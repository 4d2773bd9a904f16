"""A run over the requests of the HTTP service, built and wired: articles from its inbox, verdicts to any sink."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from consumer.config.config import Config
from consumer.files.distinct_files import check_apart
from consumer.files.line_file import check_suffix
from consumer.files.sinks import WHOLE_VERDICTS, FileSink, Nowhere, StreamSink
from consumer.kafka.client_settings import is_kafka, parse_prefix, producer_settings
from consumer.kafka.sink.at_least_once import AtLeastOnceOutbox
from consumer.kafka.sink.topic_sink import KafkaSink
from consumer.lifecycle.interruption import Interruption
from consumer.lifecycle.retry import UntilStoreReachable
from consumer.lifecycle.stopping import Stopping
from consumer.model.article import Article, Reason
from consumer.model.errors import BadRecord, ConfigError
from consumer.model.hooks import Hooks
from consumer.model.ports import ReleasingSink
from consumer.model.record import RawRecord
from consumer.model.submission import submitted
from consumer.pipeline.arrivals import SubmittedArrivals
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.journal import NoJournal
from consumer.pipeline.loop import Pipeline
from consumer.service.answering import AnsweringSink, Refusals
from consumer.service.inbox import Inbox
from consumer.wiring import components
from consumer.wiring.kafka_parts import check_topics, messages_of, record_times, sink_topics
from consumer.wiring.pipeline_factory import Control, Judging, Route, build_pipeline
from storage.clock import now_ms
from storage.kinds import kind_of

FEED: Final = "/v1/articles"
"""What events and letters call the feed."""


def build_sink(config: Config, streams: components.Streams, hooks: Hooks, proceed: Callable[[], None]) -> AnsweringSink:
    """Build the sink, which the caller closes. ``proceed`` is called while brokers are away, and may raise.

    Raises ``ConfigError``, and ``SinkError`` where it cannot be written.
    """
    return AnsweringSink(_sink(config, streams, hooks, proceed))


def build_requests_pipeline(
    config: Config, judging: Judging, inbox: Inbox, sink: AnsweringSink, interruption: Interruption, hooks: Hooks
) -> Pipeline:
    """Build what judges the articles in the inbox until that is closed and empty; then ``run`` returns.

    It waits for its store, as long as ``interruption`` lets it.
    """
    return build_pipeline(
        config,
        judging,
        Route(
            source=inbox,
            decode=partial(_decoded, decode=components.file_decoder(config)),
            arrivals=SubmittedArrivals(now_ms),
            sink=sink,
            dead_letters=DeadLetterPolicy(FEED, Refusals(sink.replies)),
            journal=NoJournal(),
            reply=sink.replies.send,
        ),
        # Signals close the inbox: what it has got is finished.
        Control(Stopping(interrupts=False), interruption, UntilStoreReachable(interruption.while_judging, hooks)),
        hooks,
    )


def _decoded(record: RawRecord, decode: Callable[[RawRecord], Article]) -> Article:
    """Decode a record as of a feed. Raises ``BadRecord``; only a retraction may be without a body."""
    retraction = submitted(record).retraction
    if retraction is not None:
        return Article(retraction.article_id, None)
    try:
        article = decode(record)
    except BadRecord as error:
        if error.reason != Reason.MISSING_BODY:
            raise
        raise _no_body() from error
    if article.body is None:
        raise _no_body()
    return article


def _no_body() -> BadRecord:
    return BadRecord(Reason.MISSING_BODY, "the article has no body; DELETE /v1/articles/{id} retracts one")


def _sink(config: Config, streams: components.Streams, hooks: Hooks, proceed: Callable[[], None]) -> ReleasingSink:
    url, emit = config.sink.url, config.sink.emit
    if url == components.NOWHERE:
        return Nowhere()
    if url == components.STREAM:
        return StreamSink(streams.out, emit=emit)
    if is_kafka(url):
        return _topics(config, hooks, proceed)
    path = Path(url)
    check_suffix(path, "verdicts on requests", gzip=False)
    check_apart(None, {path: "the verdicts"}, kind_of(config.store.url).on_disk(config.store.url))
    return FileSink(path, WHOLE_VERDICTS, components.file_writing(config), emit=emit)


def _topics(config: Config, hooks: Hooks, proceed: Callable[[], None]) -> KafkaSink:
    if config.kafka.delivery == "exactly-once":
        raise ConfigError('dupwatch serve delivers verdicts at least once: set kafka.delivery = "at-least-once" for it')
    brokers, topics = parse_prefix(config.sink.url).brokers, sink_topics(config)
    check_topics(config, brokers, topics)
    settings = producer_settings(brokers, components.kafka_options(config), transactional=False)
    outbox = AtLeastOnceOutbox(settings, record_times(config, hooks), hooks, proceed)
    return KafkaSink(outbox, messages_of(config, topics, FEED))
