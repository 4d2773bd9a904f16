"""``dupwatch reviews``: what people decided, as lines that ``dupwatch evaluate --reviews`` reads."""

import json
from pathlib import Path

from consumer.reviews.database import open_database
from consumer.reviews.decisions import decide
from consumer.reviews.flag_events import add_events
from consumer.reviews.pairs import reports
from consumer.reviews.people import add_person
from tests.cli.command import run_process
from tests.unit.reviews.made import NOW_MS, flagged
from tests.unit.reviews.test_reports import PAIR


def test_decisions_are_written_and_can_be_evaluated(tmp_path: Path) -> None:
    """A line for each flag, by the schema that evaluation reads, with a decision or without."""
    url = f"sqlite:///{tmp_path / 'console.db'}"
    database = open_database(url)
    events = [flagged(f"a{n}", "o", similarity=0.8 + n / 100) for n in range(6)]

    def filled(connection: object) -> None:
        add_events(connection, events)  # type: ignore[arg-type]  # it is one
        person = add_person(connection, "An Na", "reviewer", NOW_MS)  # type: ignore[arg-type]  # as above
        decide(connection, [1, 2, 3, 4], person.person_id, "right", "", NOW_MS, 0)  # type: ignore[arg-type]  # as above
        decide(connection, [5], person.person_id, "wrong", "", NOW_MS, 0)  # type: ignore[arg-type]  # as above
        reports.add(connection, PAIR, person.person_id, "", NOW_MS, 0)  # type: ignore[arg-type]  # as above

    database.write(filled)
    database.close()
    ended = run_process("reviews", "--set", f"console.database={url}")
    assert ended.code == 0, ended.err
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert [line["decision"] for line in lines] == ["right"] * 4 + ["wrong", None, "right"]
    assert [line["person"] for line in lines] == ["An Na"] * 5 + [None, "An Na"]
    assert [line["kind"] for line in lines] == ["flag"] * 6 + ["report"]
    (tmp_path / "reviews.jsonl").write_bytes(ended.out)
    evaluated = run_process("evaluate", "--reviews", tmp_path / "reviews.jsonl")
    assert evaluated.code == 0, evaluated.err
    assert b"Reviewed flags: 4 right, 1 wrong" in evaluated.out
    assert b"Reported as missed: 1 copy." in evaluated.out


def test_without_a_database_there_is_nothing_to_write(tmp_path: Path) -> None:
    """It is not made by reading."""
    ended = run_process("reviews", "--set", f"console.database=sqlite:///{tmp_path / 'none.db'}")
    assert ended.code != 0
    assert ended.out == b""
    assert not (tmp_path / "none.db").exists()
