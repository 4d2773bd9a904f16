"""A producer that is let go leaves no thread behind."""

import pytest

from consumer.kafka.sink.producing import BrokerWait, MessageProducer
from consumer.model.hooks import Hooks
from tests.cli.command import wait_for
from tests.kafka.sink_parts import client_threads

NOBODY = {"bootstrap.servers": "127.0.0.1:1"}


def test_a_producer_that_is_closed_is_gone() -> None:
    """A transactional sink makes another for each that it drops; its threads and what they hold end at once."""
    before = client_threads()
    producing = MessageProducer(NOBODY, BrokerWait(Hooks(), lambda: None))
    own = client_threads() - before
    assert own
    producing.close()
    # The kernel may list a thread for a moment after it was joined.
    wait_for(lambda: not own & client_threads())
    producing.close()
    with pytest.raises(ValueError, match="closed"):
        _ = producing.client
