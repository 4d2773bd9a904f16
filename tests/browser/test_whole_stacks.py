"""A moderator's whole way in Chromium, over everything that a console stands on: ``journey.py`` says what is done.

Any two properties of a journey come together in one of the six: what it runs on, language, width, scripts, and hand.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from selenium.webdriver import Chrome

from consumer.reviews.moderation.reasons import add_reason
from tests.browser.journey import PERSON, REASON, Manner, Stack, walk
from tests.console.consoles import Place, Running, add_person, console_over, consoling, postgres_place, sqlite_place
from tests.console.test_file_sink import judged
from tests.examples import drawn
from tests.kafka.running import running
from tests.kafka.topics import make_topics, send
from tests.postgres_server import PostgresDatabase

# A journey has some five hundred steps of the browser, which may be busy.
pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

UNDO_S: Final = 600
"""So long that no decision becomes final before it is undone, however busy the machine is."""
SHORT: Final = (
    ("files", Manner("en", is_narrow=False, has_scripts=True, has_pointer=False)),
    ("servers", Manner("zh", is_narrow=True, has_scripts=False, has_pointer=False)),
)
LONG: Final = (
    ("files", Manner("en", is_narrow=False, has_scripts=False, has_pointer=False)),
    ("files", Manner("zh", is_narrow=True, has_scripts=True, has_pointer=True)),
    ("servers", Manner("en", is_narrow=True, has_scripts=True, has_pointer=True)),
    ("servers", Manner("zh", is_narrow=False, has_scripts=False, has_pointer=True)),
)


def prepared(place: Place) -> str:
    """Add Ann and a reason; return her password."""
    password = add_person(place, PERSON)
    database = place.opened()
    database.write(partial(add_reason, name=REASON))
    database.close()
    return password


@contextmanager
def stopping(console: Running) -> Iterator[None]:
    """Wait until it is ready, and see in the end that it stops without complaint."""
    console.wait_ready()
    yield
    assert console.stop() == 0, console.log.read_text()


@contextmanager
def on_files(tmp_path: Path, _: pytest.FixtureRequest) -> Iterator[Stack]:
    """A run judges a file into a file and an LMDB store; the console beside it has a database in SQLite."""
    feed, sink, store = tmp_path / "feed.jsonl", tmp_path / "v.jsonl", f"lmdb:{tmp_path / 'store'}"
    place = sqlite_place(tmp_path)
    password = prepared(place)

    def judge(articles: Sequence[dict[str, str]]) -> None:
        feed.write_text("".join(json.dumps(article) + "\n" for article in articles))
        judged(feed, sink, store)

    with console_over(sink, store, place, tmp_path, undo_s=UNDO_S) as console, stopping(console):
        yield Stack(console.url, password, judge)


@contextmanager
def on_servers(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stack]:
    """A consumer judges topics into topics and an HBase store; the console has a database in PostgreSQL."""
    # With one partition what is sent first is the original.
    topics = make_topics(request.getfixturevalue("kafka_address"), partitions=1)
    store = f"hbase://{request.getfixturevalue('hbase_address')}/{request.getfixturevalue('hbase_namespace')}"
    database: PostgresDatabase = request.getfixturevalue("postgres_database")
    place = postgres_place(*database, tmp_path)
    password = prepared(place)

    def judge(articles: Sequence[dict[str, str]]) -> None:
        records: list[tuple[str, dict[str, Any]]] = [(article["id"], {**article}) for article in articles]
        send(topics, records)

    with (
        running(topics, store, tmp_path) as consumer,
        consoling(topics, store, place, tmp_path, undo_s=UNDO_S) as console,
        stopping(console),
    ):
        yield Stack(console.url, password, judge)
        assert consumer.stop() == 0, consumer.log.read_text()


STACKS: Final = {"files": on_files, "servers": on_servers}


@pytest.mark.parametrize(
    ("stack", "manner"),
    [*drawn(SHORT, 2), *(pytest.param(*journey, marks=pytest.mark.load) for journey in LONG)],
    ids=str,
)
def test_the_whole_way(
    browser: Chrome, tmp_path: Path, request: pytest.FixtureRequest, stack: str, manner: Manner
) -> None:
    """Sign in, read, search, decide, undo, split, merge and report, on one of the stacks in each run."""
    with STACKS[stack](tmp_path, request) as opened:
        walk(browser, opened, manner)
