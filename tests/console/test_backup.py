"""Back up by the commands of docs/use/console.md while people decide, and restore into an empty place.

The group of the console has gone on since the backup, which is what makes a restored database differ from a lost one.
"""

import random
import re
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from sqlalchemy import select
from sqlalchemy.engine import make_url

from consumer.reviews.tables import AUDIT
from deploy.local.packages import check
from tests.cli.command import text, wait_for
from tests.console.consoles import Place, Running, consoling
from tests.console.judges import flags_of
from tests.console.test_kills import Kept, Reviewer, kept
from tests.console.test_whole_way import clean, judged, signed_in
from tests.hbase_server import servers_or_skip
from tests.kafka.test_run import article
from tests.kafka.topics import Topics, read_all

pytestmark = pytest.mark.servers

ROOT: Final = Path(__file__).parents[2]
SETTLE_S: Final = 180
COPIES: Final = 40
LATER: Final = 8
MEANWHILE: Final = 4
"""Decisions before a backup, and again after it."""
UNDO_S: Final = 20
"""Time enough for a backup in between, however busy the machine is."""
OVER: Final = frozenset({"wrong", "released"})
"""The states of flags that are in force no more."""


class Backups(NamedTuple):
    """How a database is backed up and restored; both raise ``CalledProcessError``."""

    save: Callable[[], object]
    restore: Callable[[], object]


def documented() -> tuple[list[str], list[str]]:
    """The commands of the page: for SQLite, and for PostgreSQL."""
    section = (ROOT / "docs" / "use" / "console.md").read_text().split("## Backup and restore\n")[1].split("\n## ")[0]
    blocks = re.findall(r"(?:^ {4}.+\n)+", section, re.MULTILINE)
    sqlite, postgresql = ([line.strip() for line in block.splitlines()] for block in blocks)
    assert [len(sqlite), len(postgresql)] == [2, 4]
    return sqlite, postgresql


@pytest.fixture
def backups(place: Place, tmp_path: Path) -> Backups:
    """The documented commands, with the address of the test's database for the one that they name."""
    sqlite, postgresql = documented()
    environment = {"PATH": "/usr/bin:/bin"}

    def run(*lines: str) -> None:
        for line in lines:
            subprocess.run(["bash", "-euc", line], cwd=tmp_path, env=environment, check=True, timeout=SETTLE_S)

    if place.password is None:
        with servers_or_skip():
            check({"sqlite3": "sqlite3"})
        return Backups(lambda: run(sqlite[0]), lambda: run(sqlite[1]))
    url = make_url(place.url)
    passwords = tmp_path / "pgpass"
    passwords.touch(mode=0o600)
    passwords.write_text(f"{url.host}:{url.port}:*:{url.username}:{place.password}\n")
    environment["PGPASSFILE"] = str(passwords)
    names = {"USER@HOST:PORT": f"{url.username}@{url.host}:{url.port}", "NAME": str(url.database)}
    lines = [re.sub("|".join(names), lambda found: names[found[0]], line) for line in postgresql]
    return Backups(lambda: run(lines[0]), lambda: run(*lines[1:]))


def held(place: Place) -> Kept:
    """What is in the database."""
    with closing(place.opened()) as database:
        return kept(database)


def rested(console: Running, topics: Topics, place: Place) -> None:
    """Return when all of the topic is taken in, and nothing is due; then the console ends."""

    def has_all() -> bool:
        flags, releases = flags_of(topics)
        states = held(place).flags
        return states.keys() == flags and all(states[copy] in OVER for copy in releases)

    wait_for(has_all, SETTLE_S)
    wait_for(lambda: held(place).unsent == 0, SETTLE_S)
    assert console.stop() == 0, console.log.read_text()


def unwritten(folder: Path) -> Callable[[], object]:
    """Keep what SQLite has beside its file, to put it there again: a console that was killed leaves it."""
    beside = {path: path.read_bytes() for path in folder.glob("console.db-*")}
    return lambda: [path.write_bytes(content) for path, content in beside.items()]


def copies(name: str, count: int) -> list[tuple[str, object]]:
    """Articles of two stories."""
    return [(f"{name}{number}", article(text(number % 2), source="wire")) for number in range(count)]


def test_a_backup_brings_back_what_was_acknowledged(
    topics: Topics, place: Place, backups: Backups, tmp_path: Path
) -> None:
    """Accounts, decisions and audit log are those of the moment; what came later comes again from the topic."""
    store = f"lmdb:{tmp_path / 'store'}"
    judged(topics, store, tmp_path, copies("a", COPIES), COPIES)
    with consoling(topics, store, place, tmp_path) as console:
        signed_in(console, place)
        wait_for(lambda: len(held(place).flags) == COPIES - 2)
        with Reviewer(console, random.Random(22)) as reviewer:
            wait_for(lambda: len(reviewer.acknowledged) >= MEANWHILE, SETTLE_S)
            promised = list(reviewer.acknowledged)
            backups.save()
            saved_by = len(reviewer.acknowledged)
            wait_for(lambda: len(reviewer.acknowledged) >= saved_by + MEANWHILE, SETTLE_S)
        judged(topics, store, tmp_path, copies("b", LATER), COPIES + LATER)
        wait_for(lambda: len(held(place).flags) == COPIES - 2 + LATER)
        newest = console.open_flags()[0]
        assert console.decide(newest, "wrong", "after the backup") == 303
        as_if_killed = unwritten(tmp_path)
        rested(console, topics, place)
        later = held(place).ids[newest]
        cookies = console.cookies
    as_if_killed()
    backups.restore()
    flags, releases = flags_of(topics)
    restored = held(place)
    assert newest not in restored.ids
    # Started as always it goes on behind the flags that came after the backup.
    with consoling(topics, store, place, tmp_path, cookies=dict(cookies)) as console:
        console.wait_ready()
        wait_for(lambda: console.metric("dupwatch_assigned_partitions") > 0, SETTLE_S)
        wait_for(lambda: console.get("/").status == 200)
        assert console.stop() == 0, console.log.read_text()
    assert {flag for flag in flags if flag[0].startswith("b")} == flags - held(place).flags.keys() != set()
    with consoling(topics, store, place, tmp_path, "--rebuild", "topic", cookies=dict(cookies)) as console:
        console.wait_ready()
        # With the session and the account of before.
        wait_for(lambda: console.get("/").status == 200)
        rested(console, topics, place)
    found = held(place)
    assert found.flags.keys() == flags
    for flag_id, decision in promised:
        assert decision in found.reviews[flag_id], (flag_id, decision)
    assert found.reviews == restored.reviews
    # One moment: no decision without its line in the log, and no line without its decision.
    assert found.audited == {flag_id: len(reviews) for flag_id, reviews in found.reviews.items()}
    assert found.flags[later] == "released"
    assert {copy for copy, state in found.flags.items() if state in OVER} == releases.keys()


def test_what_was_due_at_the_backup_is_sent_again_alike(
    topics: Topics, place: Place, backups: Backups, tmp_path: Path
) -> None:
    """Readers get the same bytes again and nothing else; and what was undone after the backup counts."""
    store = f"lmdb:{tmp_path / 'store'}"
    records: list[tuple[str, object]] = [
        (name, article(text(1), source="wire")) for name in ("first", "sent", "undone")
    ]
    judged(topics, store, tmp_path, records, 3)
    with consoling(topics, store, place, tmp_path, undo_s=UNDO_S) as console:
        signed_in(console, place)
        wait_for(lambda: len(console.open_flags()) == 2)
        ids = {article_id: flag_id for flag_id, (article_id, _) in held(place).ids.items()}
        ours = sorted(ids)
        assert [console.decide(ids[name], "wrong", "another story") for name in ours] == [303, 303]
        backups.save()
        sent, undone = ours
        page = f"/flags/{ids[undone]}"
        (undo,) = re.findall(r'action="(/reviews/\d+/undo)"', console.get(page).text)
        assert console.send(undo, page).status == 303
        wait_for(lambda: console.metric('dupwatch_console_releases_total{outcome="sent"}') == 1, SETTLE_S)
        rested(console, topics, place)
    assert [key[0] for key in flags_of(topics)[1]] == [sent]
    backups.restore()
    assert held(place).unsent == 2
    with consoling(topics, store, place, tmp_path, "--rebuild", "topic", undo_s=UNDO_S) as console:
        console.wait_ready()
        wait_for(lambda: console.metric('dupwatch_console_releases_total{outcome="sent"}') == 2, SETTLE_S)
        rested(console, topics, place)
    events: dict[str, list[bytes | None]] = {name: [] for name in ours}
    for message in read_all(topics, topics.sink("duplicates")):
        if message.content["outcome"] == "unique":
            events[message.content["id"]].append(message.value)
    assert [len(events[sent]), len(set(events[sent])), len(events[undone])] == [2, 1, 1]
    before, *given = clean(topics, sent)
    assert before is None
    assert [len(given), len(set(given))] == [2, 1]
    found = held(place)
    assert {found.flags[found.ids[ids[name]]] for name in ours} == {"wrong"}
    assert [found.reviews[ids[name]] for name in ours] == [["wrong"], ["wrong"]]
    with closing(place.opened()) as database, database.read_connection() as connection:
        carried_out = (
            connection.execute(select(AUDIT.c.flag_id).where(AUDIT.c.action == "release.sent")).scalars().all()
        )
    assert sorted(carried_out) == sorted(ids.values())


def test_nobody_else_may_read_a_backup(place: Place, backups: Backups, tmp_path: Path) -> None:
    """It has the hashes of passwords."""
    place.opened().close()
    backups.save()
    (file,) = tmp_path.glob("backup.*")
    assert file.stat().st_mode & 0o077 == 0
