"""Warnings of a database that lacks the flags of its topic, and of a store that is not the one of the consumers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.console.context import SetupWarnings, SinkFault
from consumer.console.intake.event_reading import NEWER_EVENT
from consumer.console.intake.event_sending import EVENTS_THREAD
from consumer.console.intake.setup_checks import CHECK_S, FlagTopic, SetupChecks, sink_fault
from consumer.model.errors import SourceError
from consumer.model.hooks import Outage
from storage.errors import StoreUnavailable
from tests.unit.console.desks import CountedArticles, Office, decide, office, page
from tests.unit.console.newsroom import Newsroom, article
from tests.unit.reviews.made import database_in


class Checked:
    """Checks of an empty database, whose topic answers as it is told, at a time that a test moves."""

    def __init__(self, folder: Path) -> None:
        self.database = database_in(folder)
        self.articles = CountedArticles()
        self.room = Newsroom(self.database, self.articles)
        self.now_s = 1_000.0
        self.topic_answers: list[bool | SourceError] = []
        topic = FlagTopic("dupwatch.duplicates", "dupwatch-console", self._answer)
        self.checks = SetupChecks(self.database, self.articles, topic, "lmdb:other", lambda: self.now_s)

    def look_later(self) -> SetupWarnings:
        """Return what is found the next time that the store is looked at."""
        self.now_s += CHECK_S
        self.checks.check_store()
        return self.checks.warnings()

    def _answer(self) -> bool:
        answer = self.topic_answers.pop(0)
        if isinstance(answer, SourceError):
            raise answer
        return answer


@pytest.fixture
def checked(tmp_path: Path) -> Iterator[Checked]:
    """Yield checks of an empty database."""
    made = Checked(tmp_path)
    yield made
    made.database.close()


def test_a_new_database_of_an_old_group_lacks_flags(checked: Checked, caplog: pytest.LogCaptureFixture) -> None:
    """That is said once, with what to do; while the brokers are away it is asked again."""
    checked.topic_answers = [SourceError("away"), True]
    with pytest.raises(SourceError):
        checked.checks.check_topic()
    assert not checked.checks.warnings().was_read_before
    for _ in range(3):
        checked.checks.check_topic()
    assert checked.checks.warnings().was_read_before
    assert caplog.text.count("group dupwatch-console has read flags of dupwatch.duplicates before") == 1
    assert "--rebuild sink" in caplog.text


def test_a_new_group_and_a_known_database_lack_nothing(checked: Checked, caplog: pytest.LogCaptureFixture) -> None:
    """Neither one that has read nothing yet; nor one whose flags are there, of which the brokers are not asked."""
    checked.topic_answers = [False]
    checked.checks.check_topic()
    checked.room.flag(article("b"), article("a"))
    again = SetupChecks(checked.database, checked.articles, FlagTopic("t", "g", pytest.fail), "lmdb:x")
    again.check_topic()
    assert not checked.checks.warnings().was_read_before
    assert not again.warnings().was_read_before
    assert not caplog.text


def test_flags_that_come_in_while_the_brokers_are_asked_are_not_lacking(checked: Checked) -> None:
    """The offsets may be those of the console itself, which has just read its first batch."""

    def read_meanwhile() -> bool:
        checked.room.flag(article("b"), article("a"))
        return True

    checks = SetupChecks(checked.database, checked.articles, FlagTopic("t", "g", read_meanwhile), "lmdb:x")
    checks.check_topic()
    assert not checks.warnings().was_read_before


def test_a_store_with_no_article_of_the_flags_is_another_one(
    checked: Checked, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once, until the store has one; no flags, and a store that does not answer, say nothing of it."""
    assert checked.look_later() == SetupWarnings()
    for number in range(3):
        checked.room.flag(article(f"b{number}"), article("a"), stored=False)
    # The first flags are not waited with.
    checked.checks.check_store()
    assert checked.checks.warnings().missing_articles_of == 3
    assert [checked.look_later().missing_articles_of for _ in range(3)] == [3, 3, 3]
    assert caplog.text.count("The store lmdb:other has none of the articles of the latest 3 flags.") == 1
    checked.articles.error = StoreUnavailable("away")
    with pytest.raises(StoreUnavailable):
        checked.look_later()
    assert checked.checks.warnings().missing_articles_of == 3
    checked.articles.error = None
    checked.room.hold(article("a"))
    assert checked.look_later() == SetupWarnings()


def test_an_intake_that_waits_for_an_update_is_told(checked: Checked) -> None:
    """As long as one of them waits; other outages say nothing of it."""
    for outage, expected in (
        (Outage("source", "intake", "The brokers are away"), False),
        (Outage("source", f"{NEWER_EVENT}, intake", "update the console"), True),
        (Outage("source", f"{NEWER_EVENT}, near misses", "update the console"), True),
        (Outage("source", f"{NEWER_EVENT}, intake", None), True),
        (Outage("source", f"{NEWER_EVENT}, near misses", None), False),
    ):
        checked.checks.note_outage(outage)
        assert checked.checks.warnings().needs_update is expected


def test_events_that_wait_are_told(checked: Checked) -> None:
    """As long as their thread says why; what other threads wait for is told elsewhere."""
    for outage, expected in (
        (Outage("sink", "sending", "no broker"), ""),
        (Outage("sink", EVENTS_THREAD, "there is no topic p.stories"), "there is no topic p.stories"),
        (Outage("database", EVENTS_THREAD, None), "there is no topic p.stories"),
        (Outage("sink", EVENTS_THREAD, None), ""),
    ):
        checked.checks.note_outage(outage)
        assert checked.checks.warnings().unsent_reason == expected


def test_pages_say_why_events_wait(tmp_path: Path) -> None:
    """To those who are signed in."""
    with office(tmp_path, warnings=lambda: SetupWarnings(unsent_reason="there is no topic <p.stories>")) as opened:
        assert "are waiting to be sent: there is no topic <p.stories>" in opened.ann.get("/").shown
        assert "are waiting to be sent" not in opened.served.browser().get("/sign-in").shown


def test_a_filled_queue_says_that_no_flags_come_in(tmp_path: Path) -> None:
    """Reviewers cannot read the log of the console, and would wait for flags."""
    with office(tmp_path, warnings=lambda: SetupWarnings(needs_update=True)) as opened:
        opened.room.flag(article("b"), article("a"))
        assert "No new flags are coming in" in opened.ann.get("/").shown
        assert "update it" in opened.ann.get("/?state=wrong").shown


def test_the_store_is_not_looked_at_all_the_time(checked: Checked) -> None:
    """Its probe comes every few seconds, and texts are never read."""
    checked.room.flag(article("b"), article("a"))
    checked.look_later()
    for _ in range(5):
        checked.checks.check_store()
    assert checked.articles.asked[-1] == (2, False)
    assert len(checked.articles.asked) == 1


@pytest.fixture
def warned(tmp_path: Path) -> Iterator[Office]:
    """Yield a console with both warnings."""
    with office(tmp_path, warnings=lambda: SetupWarnings(was_read_before=True, missing_articles_of=2)) as opened:
        yield opened


def test_pages_say_what_is_wrong(warned: Office) -> None:
    """The empty queue offers to read the topic again, until there are flags; no page says that articles left."""
    offer, missing = "start one once with --rebuild sink", "The store has none of the articles of the latest 2 flags."
    assert offer in warned.ann.get("/").shown
    flag = warned.room.flag(article("b"), article("a"), stored=False)
    for path in ("/", f"/flags/{flag.flag_id}", f"/stories/{flag.story_id}", "/stories"):
        opened = page(warned.ann, path).answer.shown
        assert missing in opened, path
        assert offer not in opened, path
        assert "left the window." not in opened.replace("Either all have left the window", ""), path
    assert opened.count("none of the articles of the latest") == 1
    assert missing not in warned.served.browser().get("/sign-in").shown
    assert missing not in warned.served.browser().get("/nowhere").shown


def test_a_console_that_may_not_write_says_so(tmp_path: Path) -> None:
    """On each page to those who are signed in, and beside a decision; it is kept, and can be undone."""
    with office(tmp_path, warnings=lambda: SetupWarnings(unwritable=Path("/data/feed.store"))) as desk:
        flag = desk.room.flag(article("b"), article("a"))
        said = "This console is read-only: it cannot write to /data/feed.store."
        assert decide(desk.ann, flag.flag_id, "wrong").status == 303
        for path in ("/", f"/flags/{flag.flag_id}", "/me"):
            assert said in desk.ann.get(path).shown, path
        waits = "the release is waiting: this console cannot write to /data/feed.store"
        assert waits in desk.ann.get(f"/flags/{flag.flag_id}").shown
        assert "will be released" not in desk.ann.get(f"/flags/{flag.flag_id}").shown
        assert said not in desk.served.browser().get("/sign-in").shown, "strangers learn where the store is"


def test_checks_pass_on_what_may_not_be_written(checked: Checked, tmp_path: Path) -> None:
    """And ask no topic where there is none."""
    path, sink = Path("store"), tmp_path / "v.jsonl"
    sink.touch()
    checks = SetupChecks(checked.database, checked.articles, sink, "lmdb:store", unwritable=lambda: path)
    assert not checks.check_topic()
    assert checks.warnings() == SetupWarnings(unwritable=path)


_EVENT = b'{"schema":"dupwatch.verdict/1","id":"a"}'


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (None, "missing"),
        (b"", None),
        (b"{", None),
        (_EVENT, None),
        (_EVENT + b"\nnonsense\n", None),
        (b'\n { "schema": "dupwatch.flood/1" }\n', None),
        (b'{"id":"a","body":"An article."}\n', "foreign"),
        (b"\n", "foreign"),
        (b"\0" * 300, "foreign"),
        ("folder", "unreadable"),
    ],
)
def test_a_file_that_is_no_sink_is_noticed(
    checked: Checked, tmp_path: Path, content: bytes | str | None, kind: str | None
) -> None:
    """Whoever names the feed, or mistypes the name, would otherwise wait at an empty queue."""
    path = tmp_path / "v.jsonl"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.mkdir()
    found = sink_fault(path)
    assert (found and found.kind) == kind
    checks = SetupChecks(checked.database, checked.articles, path, "lmdb:store")
    assert checks.warnings() == SetupWarnings(sink=found)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (SinkFault("missing", Path("/data/<v>.jsonl")), "The file /data/<v>.jsonl does not exist yet."),
        (SinkFault("unreadable", Path("/data/v.jsonl")), "cannot read the file /data/v.jsonl"),
        (SinkFault("foreign", Path("/data/v.jsonl")), "/data/v.jsonl does not begin with a verdict"),
    ],
)
def test_an_empty_queue_says_why_no_flags_come(tmp_path: Path, fault: SinkFault, said: str) -> None:
    """Until there are flags: what happens to a file later does not concern those who decide."""
    with office(tmp_path, warnings=lambda: SetupWarnings(sink=fault)) as desk:
        assert said in desk.ann.get("/").shown
        assert said not in desk.ann.get("/?q=word").shown
        desk.room.flag(article("b"), article("a"))
        assert said not in desk.ann.get("/").shown
        assert said not in desk.ann.get("/?state=wrong").shown
