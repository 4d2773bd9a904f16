"""A run over the requests of the HTTP service, built and wired: articles from its inbox, verdicts to any sink."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from consumer.config.config import Config
from consumer.feeds.kinds import sink_of
from consumer.lifecycle.interruption import Interruption
from consumer.lifecycle.retry import UntilStoreReachable
from consumer.lifecycle.stopping import Stopping
from consumer.model.article import Article, Reason
from consumer.model.errors import BadRecord, ConfigError
from consumer.model.hooks import Hooks
from consumer.model.record import RawRecord
from consumer.model.submission import submitted
from consumer.pipeline.arrivals import SubmittedArrivals
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.feed_kind import Streams
from consumer.pipeline.journal import NoJournal
from consumer.pipeline.loop import Pipeline
from consumer.service.answering import AnsweringSink, Refusals
from consumer.service.inbox import Inbox
from consumer.wiring import components
from consumer.wiring.feeds import is_exactly_once, sink_opening
from consumer.wiring.pipeline_factory import Control, Judging, Route, build_pipeline
from storage.clock import now_ms

FEED: Final = "/v1/articles"
"""What events and letters call the feed."""


def build_sink(config: Config, streams: Streams, hooks: Hooks, proceed: Callable[[], None]) -> AnsweringSink:
    """Build the sink, which the caller closes. ``proceed`` is called while brokers are away, and may raise.

    Raises ``ConfigError``, and ``SinkError`` where it cannot be written.
    """
    kind = sink_of(config.sink.url)
    if kind.has_transactions and is_exactly_once(config):
        raise ConfigError('dupwatch serve delivers verdicts at least once: set kafka.delivery = "at-least-once" for it')
    opening = replace(sink_opening(config, hooks, FEED), streams=streams, what="verdicts on requests", proceed=proceed)
    kind.check_there(config.sink.url, opening)
    return AnsweringSink(kind.open(config.sink.url, opening).sink)


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
