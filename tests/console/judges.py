"""What judges articles into a sink that consoles follow, and may be killed: a consumer, or one run after the other."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, cast

from typing_extensions import override

from consumer.model.story import STORY_SCHEMA
from tests.cli.command import FAST, json_lines, start, wait_for
from tests.console.consoles import Place, Running, console_over, consoling
from tests.kafka.running import Running as Consuming
from tests.kafka.running import running
from tests.kafka.topics import Topics, read_all, send

SETTLE_S: Final = 180
UNDO_S: Final = 0.5
ASSIGNED_S: Final = 120
SESSION: Final = ("--set", "kafka.group_protocol=consumer")
BROKER: Final = MappingProxyType(
    dict.fromkeys(("group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms"), "1500")
)
"""Who was killed is a member of its group until its session ends: longer ones would leave no time to read."""
Process = TypeVar("Process")


class Told(NamedTuple):
    """What a sink says: the versions that are flagged, and how often each was released."""

    flags: set[tuple[str, str]]
    releases: Counter[tuple[str, str]]


def flags_of(topics: Topics) -> Told:
    """What the topic says is flagged, and how often it says that each was released."""
    return told(message.content for message in read_all(topics, topics.sink("duplicates")))


def told(events: Iterable[dict[str, Any]]) -> Told:
    """The versions that events flag, and how often each is released; floods say neither."""
    flags: set[tuple[str, str]] = set()
    releases: Counter[tuple[str, str]] = Counter()
    for event in events:
        if event.get("outcome") == "duplicate":
            flags.add((event["id"], event["version"]))
        elif event.get("released"):
            releases[event["id"], event["version"]] += 1
    return Told(flags, releases)


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """The events in a file to which somebody may be writing."""
    data = path.read_bytes()
    return json_lines(data[: data.rfind(b"\n") + 1])


class Member(Generic[Process]):
    """A process that is killed, and started again."""

    def __init__(self, begin: Callable[[], AbstractContextManager[Process]]) -> None:
        self._begin = begin
        self._held = ExitStack()
        self.process = self._held.enter_context(begin())

    def restart(self) -> None:
        """Kill it, and start it again."""
        self._held.close()
        self.process = self._held.enter_context(self._begin())

    def close(self) -> None:
        """Kill it, where it is still there."""
        self._held.close()


class Judge(Protocol):
    """What judges articles into a sink, and may be killed; and consoles over this sink."""

    def console(self, place: Place, cookies: dict[str, str]) -> AbstractContextManager[Running]:
        """Start a console."""
        ...

    def wait_begun(self, console: Running) -> None:
        """Wait until there is something to kill: otherwise nothing would come in that a kill could lose."""
        ...

    def add(self, records: list[tuple[str, object]]) -> None:
        """Have articles judged."""
        ...

    def restart(self) -> None:
        """Kill it, and start it again."""
        ...

    def settle(self) -> None:
        """Wait until everything is judged."""
        ...

    def said(self) -> Told:
        """What the sink says, and what the console has said there or beside it."""
        ...

    def near_misses(self) -> set[tuple[str, str]]:
        """The versions of which the sink has a near miss."""
        ...

    def story_events(self) -> list[dict[str, Any]]:
        """The events of stories that consoles have sent; those of one story in order."""
        ...

    def close(self) -> None:
        """Kill it, where it is still there."""
        ...


class TopicJudge(Judge):
    """A consumer between topics, with a store of its own in LMDB unless another one is given."""

    def __init__(self, topics: Topics, folder: Path, store: str | None = None) -> None:
        self._topics, self._folder = topics, folder
        self._store = store or f"lmdb:{folder / 'store'}"
        self._consumer = Member(self._begun)

    @override
    def console(self, place: Place, cookies: dict[str, str]) -> AbstractContextManager[Running]:
        return consoling(self._topics, self._store, place, self._folder, *SESSION, cookies=cookies, undo_s=UNDO_S)

    @override
    def wait_begun(self, console: Running) -> None:
        wait_for(lambda: console.metric("dupwatch_assigned_partitions") > 0, ASSIGNED_S)
        wait_for(lambda: self._consumer.process.metric("dupwatch_assigned_partitions") > 0, ASSIGNED_S)

    @override
    def add(self, records: list[tuple[str, object]]) -> None:
        send(self._topics, records)

    @override
    def restart(self) -> None:
        self._consumer.restart()

    @override
    def settle(self) -> None:
        consumer = self._consumer.process
        consumer.wait_ready()
        wait_for(lambda: not self._unjudged(), SETTLE_S)
        assert consumer.stop() == 0, consumer.log.read_text()

    @override
    def said(self) -> Told:
        return flags_of(self._topics)

    @override
    def near_misses(self) -> set[tuple[str, str]]:
        # However often: a consumer that was killed may repeat itself.
        events = [message.content for message in read_all(self._topics, self._topics.sink("near-misses"))]
        return {(event["id"], event["version"]) for event in events}

    @override
    def story_events(self) -> list[dict[str, Any]]:
        return [message.content for message in read_all(self._topics, self._topics.sink("stories"))]

    @override
    def close(self) -> None:
        self._consumer.close()

    def _begun(self) -> AbstractContextManager[Consuming]:
        settings = ("--set", "kafka.near_miss_share=1", "--set", "kafka.unique=true", *SESSION)
        return running(self._topics, self._store, self._folder, *settings)

    def _unjudged(self) -> set[bytes | None]:
        judged = {message.key for message in read_all(self._topics, self._topics.sink("verdicts"))}
        return {message.key for message in read_all(self._topics, self._topics.source)} - judged


class FileJudge(Judge):
    """Runs between files: one after the other, as articles are added to the feed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._feed, self._sink = folder / "feed.jsonl", folder / "v.jsonl"
        self._store = f"lmdb:{folder / 'store'}"
        self._run: subprocess.Popen[bytes] | None = None

    @override
    def console(self, place: Place, cookies: dict[str, str]) -> AbstractContextManager[Running]:
        return console_over(self._sink, self._store, place, self._folder, cookies=cookies, undo_s=UNDO_S)

    @override
    def wait_begun(self, console: Running) -> None:
        """Return at once: runs begin with what is added."""

    @override
    def add(self, records: list[tuple[str, object]]) -> None:
        self.settle()
        with self._feed.open("a") as feed:
            feed.writelines(json.dumps({"id": name, **cast("dict[str, object]", of)}) + "\n" for name, of in records)
        self._begin()

    @override
    def restart(self) -> None:
        self.close()
        self._begin()

    @override
    def settle(self) -> None:
        if self._run is not None:
            assert self._run.wait(SETTLE_S) == 0, (self._folder / "run.log").read_text()

    @override
    def said(self) -> Told:
        return told([*(whole_lines(self._sink) if self._sink.exists() else []), *self._own()])

    @override
    def near_misses(self) -> set[tuple[str, str]]:
        return set()

    @override
    def story_events(self) -> list[dict[str, Any]]:
        return [event for event in self._own() if event["schema"] == STORY_SCHEMA]

    @override
    def close(self) -> None:
        if self._run is not None:
            self._run.kill()
            self._run.wait(SETTLE_S)

    def _own(self) -> list[dict[str, Any]]:
        own = self._sink.with_name(f"{self._sink.name}.console.jsonl")
        return whole_lines(own) if own.exists() else []

    def _begin(self) -> None:
        # Small batches: more of them can be half done.
        given = ("run", "--source", self._feed, "--sink", self._sink, "--store", self._store, *FAST)
        with (self._folder / "run.log").open("ab") as log:
            self._run = start(*given, "--set", "source.batch_records_max=5", stdout=log, stderr=log)
