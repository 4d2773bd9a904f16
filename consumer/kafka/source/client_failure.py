"""What ends a Kafka client's run: an error of the client, or an exception in one of its callbacks."""

from collections.abc import Callable, Mapping
from typing import Any, Final, ParamSpec

from confluent_kafka import KafkaError

from consumer.kafka.errors import describe
from consumer.model.errors import SourceError

Arguments = ParamSpec("Arguments")

_NEEDS: Final = '; kafka.group_protocol = "consumer" needs brokers of Kafka 4.0 or later'


class ClientFailure:
    """Keeps the error that ends the run until the client's call returns; for the client's thread only."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.error: BaseException | None = None
        self._is_new_protocol = settings.get("group.protocol") == "consumer"

    def guarded(self, callback: Callable[Arguments, None]) -> Callable[Arguments, None]:
        """Keep what a callback raises; the client would replace it by an error that does not name the cause."""

        def guarded(*args: Arguments.args, **named: Arguments.kwargs) -> None:
            try:
                callback(*args, **named)
            except BaseException as error:  # noqa: BLE001  # it is raised when the client's call returns
                self.error = error

        return guarded

    def check(self) -> None:
        """Raise what was kept."""
        if self.error is not None:
            raise self.error

    def describe(self, error: KafkaError) -> SourceError:
        """Return the error of a run that the client's error ends."""
        # Some brokers refuse the new group protocol in these words; others do not answer it at all.
        needs = self.needs if "API version not supported" in error.str() else ""
        return SourceError(f"the Kafka client cannot go on: {describe(error)}{needs}")

    @property
    def needs(self) -> str:
        """What the group protocol needs, as the end of a sentence; empty for the classic one."""
        return _NEEDS if self._is_new_protocol else ""
