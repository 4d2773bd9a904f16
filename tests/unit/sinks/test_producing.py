"""A producer that is let go leaves no thread behind."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from consumer.sinks.producing import Producing, Waiting

NOBODY = {"bootstrap.servers": "127.0.0.1:1"}


def threads() -> set[str]:
    """Those of this process, those of librdkafka too."""
    return {path.name for path in Path("/proc/self/task").iterdir()}


def test_a_producer_that_is_closed_is_gone() -> None:
    """A transactional sink makes another for each that it drops; its threads and what they hold end at once."""
    watcher = SimpleNamespace(sink_trouble=lambda _: None, reconnected=lambda: None, time_moved=lambda: None)
    before = threads()
    producing = Producing(NOBODY, Waiting(watcher, lambda: None))
    own = threads() - before
    assert own
    producing.close()
    assert not own & threads()
    producing.close()
    with pytest.raises(ValueError, match="closed"):
        _ = producing.client
