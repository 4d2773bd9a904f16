"""How many statements the requests execute that people send all day: a decision, and the page of the next flag."""

from typing import Final

import pytest

from consumer.reviews.database import Database
from tests.unit.console.desks import office, page
from tests.unit.console.newsroom import article
from tests.unit.reviews.made import executions

DECISION_MAX: Final = {"sqlite": 20, "postgresql": 17}
PAGE_MAX: Final = {"sqlite": 17, "postgresql": 15}
"""The beginnings of transactions are statements on SQLite, and locks are on PostgreSQL."""


@pytest.mark.parametrize("decision", ["right", "wrong", "skip"])
def test_a_decision_and_the_next_page(database: Database, decision: str) -> None:
    """With PostgreSQL on the machine of the console, each costs processor time twice."""
    kind = database._engine.dialect.name
    with office(database) as desk:
        for number in range(9):
            desk.room.flag(article(f"copy-{number}", "Copy", "Text."), article("original", "Original", "Text."))
        path = desk.ann.get("/flags/1/next").header("location")
        form = {**page(desk.ann, path).form(f"{path}/decide"), "decision": decision, "note": "seen"}
        with executions(database) as deciding:
            following = desk.ann.post(f"{path}/decide", form).header("location")
        with executions(database) as showing:
            assert desk.ann.get(following).status == 200
    assert following.startswith("/flags/")
    assert len(deciding) <= DECISION_MAX[kind]
    assert len(showing) <= PAGE_MAX[kind]
