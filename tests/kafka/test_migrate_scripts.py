"""``dupwatch migrate`` from a scheme that knows few scripts to one that knows every one, while articles come."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from consumer.workers.word_files import load_lexicon
from storage.records import StoredVersion
from tests.cli.command import text, wait_for
from tests.kafka.running import running
from tests.kafka.test_migrate import (
    RATES,
    Places,
    Sending,
    chains_end_at_kept,
    looked_into,
    migrating,
    new_group,
    places,
    posted_in,
    stored_events,
    unanswered,
)
from tests.kafka.topics import Topics, make_topics, read_all, wait_for_count

__all__ = ["places"]

pytestmark = pytest.mark.servers

WINDOW: Final = ("--set", "judge.window_s=3600")
OLD: Final = ("--set", "fingerprint.scheme=jieba-tfidf/1", *WINDOW)
NEW: Final = WINDOW
"""What a new store is made with, where nobody names another scheme, is the one for every script."""
EMOJI: Final = "😀😀😀 🎉"
CYRILLIC: Final = "абвгдежзиклмнопрстуфхцчшщыэюя"
TABLES: Final = load_lexicon().chinese()
PHRASES: Final = sorted(
    phrase
    for phrase, form in TABLES.steps[-1].phrases.items()
    if not TABLES.steps[-1].characters.keys() & set(form) and phrase != form
)


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own, two partitions each."""
    return make_topics(kafka_address)


def traditional(number: int) -> str:
    """A Chinese text, unlike that of any other number."""
    return "，".join(random.Random(number).choices(PHRASES, k=40))


def russian(number: int, *, edited: bool = False) -> str:
    """A text in Russian letters, unlike that of any other number, or an edit of it."""
    chance = random.Random(number)
    words = ["".join(chance.choices(CYRILLIC, k=chance.randint(4, 9))) for _ in range(60)]
    return " ".join([*words[:-1], "правка"] if edited else words)


def body(number: int) -> str:
    """Of six: the same post each time, a text and its copy in the other script, another and its edit, and one more."""
    bodies = (
        EMOJI,
        TABLES.fold([traditional(number)])[0],
        traditional(number - 1),
        russian(number),
        russian(number - 1, edited=True),
        text(number),
    )
    return json.dumps({"body": bodies[number % 6]}, ensure_ascii=False)


@pytest.mark.parametrize(
    ("old_engine", "new_engine"),
    [
        pytest.param("lmdb", "hbase"),
        *(
            pytest.param(*pair, marks=pytest.mark.load)
            for pair in (("lmdb", "lmdb"), ("hbase", "lmdb"), ("hbase", "hbase"))
        ),
    ],
)
def test_to_every_script_under_load(
    topics: Topics, places: Places, tmp_path: Path, old_engine: str, new_engine: str
) -> None:
    """Verdicts stay, none is missed; copies in other scripts are flagged from the switch on, and no row is crowded."""
    old, new = places(old_engine, "old"), places(new_engine, "new")
    with Sending(topics, min(RATES[old_engine], RATES[new_engine]), body) as sending:
        with running(topics, old, tmp_path, *OLD) as old_one:
            old_one.wait_ready()
            wait_for_count(topics, ["verdicts"], 150)
            with migrating(topics, old, new, tmp_path, settings=NEW) as migration:
                wait_for(lambda: migration.says("Stop the consumers of that group"), 120)
                assert old_one.stop() == 0, old_one.log.read_text()
                report = migration.end()
        by_old = {(message.key or b"").decode() for message in read_all(topics, topics.sink("verdicts"))}
        with running(topics, new, tmp_path, *NEW, *new_group(topics)) as new_one:
            wait_for_count(topics, ["verdicts"], len(by_old) + 150)
            sending.stop()
            wait_for(lambda: not unanswered(topics))
            assert new_one.stop() == 0, new_one.log.read_text()
    assert report["switched"]
    # Equal posts, copies in the other script and edits, which only the new scheme can compare.
    assert report["taken_over"]["would_be_flagged"] > len(by_old) // 3
    check_sent(topics, new, sending.count, by_old)


def check_sent(topics: Topics, new: str, count: int, by_old: set[str]) -> None:
    """What the old ones said of any article stays; of what is near and came to the new ones, one is kept."""
    sent = read_all(topics, topics.sink("verdicts"))
    assert len({(message.key, message.value) for message in sent}) == len({message.key for message in sent}) == count
    events = {(message.key or b"").decode(): message.value for message in sent}
    assert events == stored_events(new)
    assert chains_end_at_kept(events)
    verdicts: Mapping[str, dict[str, Any]] = {name: json.loads(event or b"") for name, event in events.items()}
    assert {verdict["scheme"] for name, verdict in verdicts.items() if name in by_old} == {"jieba-tfidf/1"}
    assert {verdicts[name]["outcome"] for name in by_old} == {"unique"}
    posts = {f"a{number}" for number in range(0, count, 6)}
    assert len(posts - by_old) > 20
    assert {verdicts[name]["outcome"] for name in posts - by_old} == {"duplicate"}
    pairs = [{f"a{number}", f"a{number - 1}"} for number in range(count) if number % 6 in {2, 4}]
    for pair in pairs:
        outcomes = sorted(verdicts[name]["outcome"] for name in pair)
        assert outcomes == (["unique"] * 2 if pair <= by_old else ["duplicate", "unique"]), pair
    assert not any(verdict["truncated"] for verdict in verdicts.values())
    # All came in less than a part of the window.
    with looked_into(new) as store:
        keyed = {entry.record.id for entry in store.scan() if isinstance(entry, StoredVersion) and entry.record.keys}
        assert store.stats().crowded_rows == 0
    assert len(posts & keyed & by_old) == 2 < len(posts & by_old)
    kept = {name for name, verdict in verdicts.items() if verdict["outcome"] == "unique"}
    assert posted_in(new) & keyed == kept & keyed
