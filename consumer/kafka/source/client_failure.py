"""The failure that ends the client's thread: an error of the client, or an exception in one of its callbacks."""

from collections.abc import Callable, Mapping
from typing import Any, Final, ParamSpec

from confluent_kafka import KafkaError

from consumer.kafka.errors import describe
from consumer.model.errors import SourceError

Arguments = ParamSpec("Arguments")

_PROTOCOL_HINT: Final = '; kafka.group_protocol = "consumer" needs brokers of Kafka 4.0 or later'


class ClientFailure:
    """The error that ends the run, kept until the client's call returns; for the client's thread only."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.error: BaseException | None = None
        self._is_new_protocol = settings.get("group.protocol") == "consumer"

    def guard(self, callback: Callable[Arguments, None]) -> Callable[Arguments, None]:
        """Return a callback that keeps its exception in ``error``; the client would replace it with a vaguer error."""

        def guarded(*args: Arguments.args, **named: Arguments.kwargs) -> None:
            try:
                callback(*args, **named)
            except BaseException as error:  # noqa: BLE001  # raised when the client's call returns
                self.error = error

        return guarded

    def check(self) -> None:
        """Raise the error, if there is one."""
        if self.error is not None:
            raise self.error

    def source_error(self, error: KafkaError) -> SourceError:
        """Return the error with which the run ends after this error of the client."""
        # Some brokers refuse the new group protocol in these words; others do not answer at all.
        hint = self.protocol_hint if "API version not supported" in error.str() else ""
        return SourceError(f"the Kafka client cannot continue: {describe(error)}{hint}")

    @property
    def protocol_hint(self) -> str:
        """The requirement of the group protocol, as the end of a sentence; empty for the classic protocol."""
        return _PROTOCOL_HINT if self._is_new_protocol else ""
