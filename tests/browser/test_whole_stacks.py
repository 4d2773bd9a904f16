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
from tests.kafka.running import running
from tests.kafka.topics import make_topics, send
from tests.postgres_server import PostgresDatabase

# A journey has some five hundred steps of the browser, which may be busy.
pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

UNDO_S: Final = 600
"""So long that no decision becomes final before it is undone, however busy the machine is."""
LONG: Final = pytest.mark.load
ON_FILES: Final = [
    Manner("en", is_narrow=False, has_scripts=True, has_pointer=False),
    pytest.param(Manner("en", is_narrow=False, has_scripts=False, has_pointer=False), marks=LONG),
    pytest.param(Manner("zh", is_narrow=True, has_scripts=True, has_pointer=True), marks=LONG),
]
ON_SERVERS: Final = [
    Manner("zh", is_narrow=True, has_scripts=False, has_pointer=False),
    pytest.param(Manner("en", is_narrow=True, has_scripts=True, has_pointer=True), marks=LONG),
    pytest.param(Manner("zh", is_narrow=False, has_scripts=False, has_pointer=True), marks=LONG),
]


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


@pytest.mark.parametrize("manner", ON_FILES, ids=str)
def test_the_whole_way_on_files_and_lmdb(browser: Chrome, tmp_path: Path, manner: Manner) -> None:
    """A run judges a file into a file and an LMDB store; the console beside it has a database in SQLite."""
    feed, sink, store = tmp_path / "feed.jsonl", tmp_path / "v.jsonl", f"lmdb:{tmp_path / 'store'}"
    place = sqlite_place(tmp_path)
    password = prepared(place)

    def judge(articles: Sequence[dict[str, str]]) -> None:
        feed.write_text("".join(json.dumps(article) + "\n" for article in articles))
        judged(feed, sink, store)

    with console_over(sink, store, place, tmp_path, undo_s=UNDO_S) as console, stopping(console):
        walk(browser, Stack(console.url, password, judge), manner)


@pytest.fixture
def hbase_store(hbase_address: str, hbase_namespace: str) -> str:
    """An empty store in HBase."""
    return f"hbase://{hbase_address}/{hbase_namespace}"


@pytest.mark.parametrize("manner", ON_SERVERS, ids=str)
def test_the_whole_way_on_kafka_and_hbase(
    browser: Chrome,
    kafka_address: str,
    hbase_store: str,
    postgres_database: PostgresDatabase,
    tmp_path: Path,
    manner: Manner,
) -> None:
    """A consumer judges topics into topics and an HBase store; the console has a database in PostgreSQL."""
    # With one partition what is sent first is the original.
    topics, store = make_topics(kafka_address, partitions=1), hbase_store
    place = postgres_place(*postgres_database, tmp_path)
    password = prepared(place)

    def judge(articles: Sequence[dict[str, str]]) -> None:
        records: list[tuple[str, dict[str, Any]]] = [(article["id"], {**article}) for article in articles]
        send(topics, records)

    with (
        running(topics, store, tmp_path) as consumer,
        consoling(topics, store, place, tmp_path, undo_s=UNDO_S) as console,
        stopping(console),
    ):
        walk(browser, Stack(console.url, password, judge), manner)
        assert consumer.stop() == 0, consumer.log.read_text()
