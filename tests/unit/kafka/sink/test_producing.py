"""A producer that is let go leaves no thread behind."""

from pathlib import Path

import pytest

from consumer.kafka.sink.producing import BrokerWait, Producing
from consumer.model.hooks import Hooks
from deploy.local.process import wait_until

NOBODY = {"bootstrap.servers": "127.0.0.1:1"}


def threads() -> set[str]:
    """Those of this process, those of librdkafka too."""
    return {path.name for path in Path("/proc/self/task").iterdir()}


def test_a_producer_that_is_closed_is_gone() -> None:
    """A transactional sink makes another for each that it drops; its threads and what they hold end at once."""
    before = threads()
    producing = Producing(NOBODY, BrokerWait(Hooks(), lambda: None))
    own = threads() - before
    assert own
    producing.close()
    # The kernel may list a thread for a moment after it was joined.
    assert wait_until(lambda: not own & threads(), 5)
    producing.close()
    with pytest.raises(ValueError, match="closed"):
        _ = producing.client
