"""How much memory a consumer has taken for itself at most, watched from outside, and how much it may take."""

import json
import subprocess
import sys
import threading
import uuid
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Self

from consumer.kafka.client_settings import KafkaOptions, consumer_settings
from consumer.telemetry.metrics.run import own_memory_bytes
from tests.kafka import bare_client
from tests.kafka.topics import Topics

MB: Final = 1 << 20
ABOVE_BARE_MB_MAX: Final = 400
"""The memory a consumer may take above a bare client that polls the same topic; see docs/contributing/load_tests.md."""
_BARE: Final = "bare client"


class MemoryWatch(AbstractContextManager["MemoryWatch"]):
    """A thread that samples ``RssAnon`` of processes; ``peaks_mb`` has the maximum of each."""

    def __init__(self, every_s: float = 0.002) -> None:
        self.peaks_mb: dict[str, float] = {}
        self._every_s = every_s
        self._watched: dict[str, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory", daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._ended.set()
        self._thread.join()

    def watch(self, name: str, pid: int) -> None:
        """Sample this process too."""
        self._watched = {**self._watched, name: pid}

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            for name, pid in self._watched.items():
                used_mb = own_memory_bytes(Path(f"/proc/{pid}/status")) / MB
                self.peaks_mb[name] = max(used_mb, self.peaks_mb.get(name, 0.0))


def bare_peak_mb(topics: Topics, messages: int) -> float:
    """The peak of a client that polls this many messages with a consumer's settings, and keeps nothing."""
    options = KafkaOptions(group=uuid.uuid4().hex)
    settings = consumer_settings(topics.address, options) | {"auto.offset.reset": "earliest"}
    command = [sys.executable, bare_client.__file__, topics.source, str(messages), json.dumps(settings)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        with MemoryWatch() as watch:
            watch.watch(_BARE, process.pid)
            assert process.stdout is not None
            assert process.stdout.readline() == b"read\n"
        return watch.peaks_mb[_BARE]
    finally:
        process.kill()
        process.communicate()
