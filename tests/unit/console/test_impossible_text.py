"""Text that a database cannot hold: it is refused wherever somebody sends it, before it gets that far."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.console.app import ROUTES
from consumer.reviews.database import open_database
from tests.unit.console.desks import Office, decide, office
from tests.unit.console.newsroom import article
from tests.unit.console.serving import Answer
from tests.unit.reviews.made import database_in

SAID = "contains a NUL character"
# As a form of the console carries the part of the queue that somebody looks at.
QUEUES = ["source=%00", "source=wire%00", "original_source=a%00b", "%00=a", "state=open%00", "from=%00", "source=%ff",
          "source=%ed%a0%80"]  # fmt: skip
STORABLE = "wire\x1b[31m\t\u202e"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Office]:
    """A console with a flag, over each kind of database."""
    if request.param == "postgresql":
        database = open_database(*request.getfixturevalue("postgres_database"))
    else:
        database = database_in(tmp_path)
    with office(database) as opened:
        original = article("original", "First report", "Text.", source=STORABLE)
        opened.room.flag(article("one", "One", "Text.", source=STORABLE), original, 0.8)
        yield opened


def check_refused(answer: Answer) -> None:
    """A page says what is wrong with what was sent."""
    assert (answer.status, SAID in answer.shown) == (400, True), answer.shown


def test_a_filter_that_no_database_can_hold_is_refused(desk: Office) -> None:
    """In the query of a page, and in the query that a form carries; nothing is changed."""
    for queue in QUEUES:
        check_refused(desk.ann.get(f"/?{queue}"))
        for action, form in (("decide", {"decision": "right"}), ("note", {"text": "Look."})):
            check_refused(desk.ann.send(f"/flags/1/{action}", "/flags/1", queue=queue, **form))
    assert desk.room.state("one") == "open"
    assert desk.audited() == []
    decide(desk.ann, 1, "skip")
    check_refused(desk.ann.send("/reviews/1/undo", "/me", queue=QUEUES[0]))
    assert desk.room.state("one") == "skipped"


def test_every_page_and_form_refuses_it(desk: Office) -> None:
    """Whatever the field is called."""
    for route in ROUTES:
        path = route.path.replace("{side}", "copy").replace("{bank}", "spam").replace("{item}", "offer")
        rows = ("flag_id", "review_id", "report_id", "story_id", "person_id", "reason_id", "webhook_id", "source_id")
        for name in (*rows, "standing_id"):
            path = path.replace(f"{{{name}:int}}", "1")
        if route.method == "POST":
            check_refused(desk.ann.post(path, {"field": "a\0b"}))
            check_refused(desk.ann.post(path, {"a\0b": ""}))
            check_refused(desk.ann.post(f"{path}?field=a%00b", {}))
        else:
            check_refused(desk.ann.ask(route.method, f"{path}?field=a%00b"))


def test_other_control_characters_find_their_source(desk: Office) -> None:
    """A feed may have them, and databases hold them."""
    answer = desk.ann.get("/?source=wire%1B%5B31m%09%E2%80%AE")
    assert answer.status == 200
    assert "One" in answer.shown
    assert "One" not in desk.ann.get("/?source=wire%1B").shown
