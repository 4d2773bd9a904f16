"""Releases of the console: in the store, then to the topics of the sink; and events of floods."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from consumer.config.config import Config
from consumer.console.intake.sending import ReleasePort
from consumer.kafka.client_settings import admin_settings, parse_prefix
from consumer.kafka.opening import topic_sink
from consumer.kafka.sink.topic_sink import KafkaSink
from consumer.kafka.topics import missing
from consumer.model.errors import SinkError, SourceError
from consumer.model.flood import FloodEvent
from consumer.model.hooks import Hooks
from consumer.service.answering import AnsweringSink
from consumer.store_tools.released_record import Origins
from consumer.store_tools.releases import Attribution, releasable
from consumer.wiring import components
from consumer.wiring.console_store import StoreAccess, reference_of
from consumer.wiring.feeds import sink_opening
from consumer.wiring.kafka_parts import sink_topics
from consumer.wiring.release_run import Releasing, known_origins
from storage.clock import Clock

log = logging.getLogger("dupwatch")

BROKERS_S: Final = 20.0
"""How long brokers may take to accept an event, before its release is tried again from the beginning."""


class TopicReleases(ReleasePort):
    """Sends through one producer, which is made when it is needed, and made anew after an error. For one thread.

    ``proceed`` is called while brokers are waited for. ``has_times``: they find an offset by its time.
    """

    def __init__(  # what it takes to release
        self,
        config: Config,
        access: StoreAccess,
        clock: Clock,
        hooks: Hooks,
        proceed: Callable[[], None],
        *,
        has_times: bool = True,
    ) -> None:
        self._has_times = has_times
        self._config = config
        self._access = access
        self._clock = clock
        self._hooks = hooks
        self._proceed = proceed
        self._place = parse_prefix(config.sink.url)
        self._topics = sink_topics(config)
        self._sink: KafkaSink | None = None
        self._until_s = 0.0
        self._known: Origins | None = None

    def prepare(self, versions: Sequence[tuple[str, str]]) -> None:
        """Find out where the records of these versions are, for all at once."""
        references = [reference for reference in map(reference_of, versions) if reference is not None]
        stored = [version for version in self._access().read(references) if version is not None]
        try:
            self._known = known_origins(self._config, stored, self._proceed, has_times=self._has_times)
        except SourceError as error:
            # Each release looks for its own then, and says what became of it.
            log.warning(
                "The records of released articles could not be found all at once, so each is looked for alone: %s",
                error,
            )
            self._known = None

    def release(self, article_id: str, version: str, attribution: Attribution, *, is_patient: bool) -> None:
        """Release a version, and send what readers have to know."""
        store = self._access()
        releasable(store, article_id, version)
        sink = self._opened()
        try:
            releasing = Releasing(
                self._config, store, AnsweringSink(sink), self._clock, self._has_times, is_patient, self._known
            )
            releasing.release(article_id, version, attribution)
        except SinkError:
            self.close()
            raise

    def announce(self, flood: FloodEvent) -> None:
        """Send the event of a flood."""
        sink = self._opened(self._topics.floods_topic)
        try:
            sink.announce(flood)
            sink.flush()
        except SinkError:
            self.close()
            raise

    def close(self) -> None:
        """Release the client."""
        if self._sink is not None:
            self._sink.close()
            self._sink = None

    def _opened(self, *also: str) -> KafkaSink:
        """Return the producer. Raises ``SinkError`` where a topic is missing, which would be waited for silently."""
        self._until_s = time.monotonic() + BROKERS_S
        if self._sink is None or also:
            options = components.kafka_options(self._config)
            gone = missing(admin_settings(self._place.brokers, options), also or self._topics.written)
            if gone:
                raise SinkError(
                    f"there is no topic {', '.join(gone)}: create it with dupwatch topics init "
                    f"--sink {self._config.sink.url}"
                )
        if self._sink is None:
            url = self._config.sink.url
            self._sink = topic_sink(url, replace(sink_opening(self._config, self._hooks, url), proceed=self._waited))
        return self._sink

    def _waited(self) -> None:
        self._proceed()
        if time.monotonic() > self._until_s:
            raise SinkError(f"{self._config.sink.url} did not accept an event within {BROKERS_S:g} s")
