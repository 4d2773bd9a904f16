"""The service as it is wired: which threads have to make progress, and when."""

import gc
import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from consumer.config.config import Config
from consumer.lifecycle.stopping import StopSignal
from consumer.model.hooks import Hooks
from consumer.pipeline.feed_kind import Streams
from consumer.service.answering import AnsweringSink
from consumer.wiring.service import prepared_service
from tests.unit.service.kept_sink import KeptSink
from tests.unit.service.serving import WAIT_S, Client, article, stays_alive, wait_until_ready

STUCK_S = 0.5


class AwaySink(KeptSink):
    """Its brokers are away for a moment at every flush; it waits for them as one that writes to topics does."""

    def __init__(self, proceed: Callable[[], None]) -> None:
        super().__init__()
        self._proceed = proceed

    @override
    def flush(self) -> None:
        self._proceed()
        super().flush()


def test_a_thread_without_work_need_not_make_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the one that has loaded, nor one that has released: both have reported some, and have no work left."""

    def build(_config: Config, _streams: Streams, _hooks: Hooks, proceed: Callable[[], None]) -> AnsweringSink:
        return AnsweringSink(AwaySink(proceed))

    monkeypatch.setattr("consumer.wiring.service_loading.build_sink", build)
    sections: dict[str, Any] = {
        "store": {"url": f"lmdb:{tmp_path / 'store'}", "durability": "process"},
        "service": {"listen": "127.0.0.1:0"},
        "http": {"stuck_s": STUCK_S},
    }
    streams = Streams(io.BytesIO(), io.BytesIO())
    gc.unfreeze()
    with prepared_service(Config(**sections), streams, Hooks(), StopSignal(interrupts=False)) as service:
        running = threading.Thread(target=service.run)
        running.start()
        try:
            client = Client(service.url)
            wait_until_ready(client)
            assert gc.get_freeze_count() > 0, "the collector goes through all that was loaded"
            stays_alive(client, STUCK_S)
            assert client.store(article(1), article(1, "copy")).status == 200
            assert client.release("copy").status == 200
            stays_alive(client, STUCK_S)
        finally:
            service.stop()
            running.join(WAIT_S)
        assert not running.is_alive()
