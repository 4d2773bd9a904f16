"""Samples the memory of processes from outside."""

import json
import subprocess
import sys
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Self

from consumer.clients import KafkaOptions, consumer_settings
from consumer.telemetry.own_memory import own_memory_bytes
from tests.kafka import bare_client
from tests.kafka.topics import Topics

ABOVE_CLIENT_BYTES: Final = 400 << 20
"""How much more memory a consumer may take than a bare client that polls the same topic."""
_SAMPLE_S: Final = 0.02
_BARE: Final = "bare client"


class MemoryWatch(AbstractContextManager["MemoryWatch"]):
    """A thread that samples ``RssAnon`` of processes; ``peaks`` has the maximum of each."""

    def __init__(self) -> None:
        self.peaks: dict[str, float] = {}
        self._watched: dict[str, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory")

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
        while not self._ended.wait(_SAMPLE_S):
            for name, pid in self._watched.items():
                used = own_memory_bytes(Path(f"/proc/{pid}/status"))
                self.peaks[name] = max(used, self.peaks.get(name, 0.0))


def bare_client_peak(topics: Topics, messages: int) -> float:
    """The peak of a client that polls so many messages with the settings of a consumer, and keeps nothing."""
    settings = consumer_settings(topics.address, KafkaOptions(group="bare-client")) | {"auto.offset.reset": "earliest"}
    command = [sys.executable, bare_client.__file__, topics.source, str(messages), json.dumps(settings)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        with MemoryWatch() as watch:
            watch.watch(_BARE, process.pid)
            assert process.stdout is not None
            assert process.stdout.readline() == b"read\n"
        return watch.peaks[_BARE]
    finally:
        process.kill()
        process.communicate()
