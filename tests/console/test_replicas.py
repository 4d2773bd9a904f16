"""Two consoles of one group over one PostgreSQL, as Kubernetes runs them."""

from collections import Counter
from pathlib import Path

import pytest

from tests.cli.command import text, wait_for
from tests.console.consoles import add_person, consoling, postgres_place
from tests.console.judges import flags_of
from tests.console.test_whole_way import judged
from tests.kafka.test_run import article
from tests.kafka.topics import Topics
from tests.postgres_server import PostgresDatabase

pytestmark = pytest.mark.servers

COPIES = 30


def test_two_begin_together_and_either_does_for_both(
    topics: Topics, postgres_database: PostgresDatabase, tmp_path: Path
) -> None:
    """A session of one counts at the other; each flag comes once, and each release is sent once."""
    place = postgres_place(postgres_database.url, postgres_database.password, tmp_path)
    store = f"lmdb:{tmp_path / 'store'}"
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    with consoling(topics, store, place, folders[0]) as one, consoling(topics, store, place, folders[1]) as other:
        one.wait_ready()
        other.wait_ready()
        both = (one, other)
        # Two partitions.
        wait_for(lambda: [each.metric("dupwatch_assigned_partitions") for each in both] == [1, 1])
        judged(topics, store, tmp_path, [(f"a{n}", article(text(n % 3))) for n in range(COPIES)], COPIES)
        assert one.sign_in("Ann", add_person(place, "Ann")).status == 303
        other.cookies = one.cookies
        wait_for(lambda: len(other.open_flags()) == COPIES - 3)
        assert sum(each.metric('dupwatch_console_events_total{kind="flag"}') for each in both) == COPIES - 3
        assert min(each.metric('dupwatch_console_events_total{kind="flag"}') for each in both) > 0
        wrong = other.open_flags()[:10]
        assert [(one, other)[n % 2].decide(flag_id, "wrong") for n, flag_id in enumerate(wrong)] == [303] * 10
        wait_for(lambda: sum(each.metric('dupwatch_console_releases_total{outcome="sent"}') for each in both) == 10)
        assert Counter(flags_of(topics)[1].values()) == {1: 10}
        one.kill()
        # The other one has the queue, and the people.
        assert len(other.open_flags()) == COPIES - 3 - 10
        assert other.decide(other.open_flags()[0], "right") == 303
        assert other.stop() == 0, other.log.read_text()
