"""A new kind of source takes one folder and one line in the registry: a toy queue, from its messages to verdicts."""

import io
import json
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.feeds import kinds
from consumer.lifecycle.stopping import StopSignal
from consumer.model.errors import Abandoned, ConfigError, SourceError
from consumer.model.hooks import Hooks
from consumer.pipeline.batches import BatchCommitted
from consumer.pipeline.feed_kind import Streams
from consumer.wiring.lasting_run import prepared_lasting_run
from deploy.local.ports import free_ports
from tests.cli.command import text
from tests.toy_queue.kind import ANSWERED, QUEUE


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line."""
    monkeypatch.setattr(kinds, "KINDS", (*kinds.KINDS, QUEUE))


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    """An empty queue."""
    folder = tmp_path / "queue"
    folder.mkdir()
    return folder


def send(queue: Path, *messages: bytes) -> None:
    """Put messages into the queue, behind those that are there."""
    first = 1 + len(list(queue.glob("*.json")))
    for number, message in enumerate(messages, first):
        (queue / f"{number:06}.json").write_bytes(message)


def article(name: str, body: str) -> bytes:
    """An article as JSON."""
    return json.dumps({"id": name, "body": body}).encode()


def config_of(queue: Path, sink: str, **sections: Any) -> Config:  # noqa: ANN401  # sections as in a file
    """The configuration of a run over the queue."""
    return load_config(
        None,
        {
            "source": {"url": f"queue://{queue}", "batch_records_max": 2},
            "sink": {"url": sink, "emit": "all"},
            "store": {"url": f"lmdb:{queue.parent / 'store'}"},
            "http": {"listen": ""},
            **sections,
        },
    )


class Run:
    """A run that is stopped once so many records have an answer; what went to the standard streams."""

    def __init__(
        self, config: Config, records: int, committed: Callable[[BatchCommitted], None] = lambda _: None
    ) -> None:
        self._left, self._stopping = records, StopSignal(interrupts=False)
        self.out, self.err = io.BytesIO(), io.BytesIO()
        hooks = Hooks()
        hooks.on(BatchCommitted, committed)
        hooks.on(BatchCommitted, self._committed)
        with prepared_lasting_run(config, Streams(self.out, self.err), hooks, self._stopping) as run:
            run.pipeline.run()

    def _committed(self, batch: BatchCommitted) -> None:
        self._left -= len(batch.verdicts) + len(batch.letters)
        if self._left <= 0:
            self._stopping.requested_by, self._stopping.requested_at_s = 15, time.monotonic()


def outcomes(lines: bytes) -> Sequence[tuple[str, str]]:
    """Id and outcome of each verdict."""
    return [(event["id"], event["outcome"]) for event in map(json.loads, lines.splitlines())]


def test_messages_are_judged_until_the_run_is_stopped(queue: Path) -> None:
    """Verdicts go to standard output, and the dead letter of a bad message to standard error."""
    send(queue, article("a", text(1)), b"{", article("b", text(1)), article("c", text(2)))
    run = Run(config_of(queue, "-"), 4)
    assert outcomes(run.out.getvalue()) == [("a", "unique"), ("b", "duplicate"), ("c", "unique")]
    (letter,) = map(json.loads, run.err.getvalue().splitlines())
    assert (letter["reason"], letter["position"]["line"]) == ("invalid_json", 2)


def test_a_later_run_goes_on_behind_what_was_answered(queue: Path) -> None:
    """It appends to the file of the one before, and finds its articles in the store."""
    verdicts = queue.parent / "verdicts.jsonl"
    config = config_of(queue, str(verdicts))
    send(queue, article("a", text(1)), b"{")
    Run(config, 2)
    assert (queue / ANSWERED).read_text() == "2"
    send(queue, article("b", text(1)), b"}")
    Run(config, 2)
    assert outcomes(verdicts.read_bytes()) == [("a", "unique"), ("b", "duplicate")]
    letters = verdicts.with_name("verdicts.jsonl.dead-letters.jsonl").read_bytes().splitlines()
    assert [json.loads(letter)["position"]["line"] for letter in letters] == [2, 4]


def test_a_batch_that_was_given_up_is_read_again(queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its journal has the source deliver it again, and each message gets one verdict."""
    failing = [Abandoned("a test")]

    def give_up(*_: object) -> None:
        if failing:
            raise failing.pop()

    monkeypatch.setattr("tests.toy_queue.kind.QueueJournal.begin", give_up)
    send(queue, article("a", text(1)), article("b", text(2)))
    run = Run(config_of(queue, "-"), 2)
    assert outcomes(run.out.getvalue()) == [("a", "unique"), ("b", "unique")]


def test_what_is_wrong_with_a_queue_is_said(queue: Path) -> None:
    """By its kind, before the run and when it is opened; and by the registry."""
    with pytest.raises(ConfigError, match="does not name a queue: write queue://FOLDER"):
        Run(load_config(None, {"source": {"url": "queue://"}, "http": {"listen": ""}}), 0)
    with pytest.raises(SourceError, match="there is no such folder"):
        Run(config_of(queue / "gone", "-", store={"url": "memory:"}), 0)
    with pytest.raises(ConfigError, match=r"write it as a file, -, kafka://HOST:PORT/TOPIC or queue://FOLDER"):
        load_config(None, {"source": {"url": "tcp://127.0.0.1:1"}})


def test_it_has_no_transactions(queue: Path) -> None:
    """With topics as the sink, too, its positions cannot be in one."""
    for sink, needs in (("-", "needs a kafka:// sink"), ("kafka://127.0.0.1:1/judged", "needs a kafka:// source")):
        with pytest.raises(ConfigError, match=needs):
            Run(config_of(queue, sink, kafka={"delivery": "exactly-once"}), 0)


def test_a_queue_is_not_written(queue: Path) -> None:
    """Its kind has no such side."""
    with pytest.raises(ConfigError, match=r"sink\.url: write it as a file, - or kafka://HOST:PORT/PREFIX"):
        config_of(queue, f"queue://{queue}")


def test_a_run_over_it_is_ready(queue: Path) -> None:
    """It has no partitions to wait for."""
    send(queue, article("a", text(1)))
    (port,) = free_ports(1)
    answers: list[int] = []

    def ask(_: BatchCommitted) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60) as answer:
            answers.append(answer.status)

    Run(config_of(queue, "-", http={"listen": f"127.0.0.1:{port}"}), 1, ask)
    assert answers == [200]
