"""What is sent to webhooks, by one process or several, to real receivers that are slow, away, broken and back."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from consumer.console.intake import webhook_sender
from consumer.console.intake.webhook_sender import (
    ATTEMPTS_MAX,
    LEASE_S,
    WebhookParts,
    WebhookSender,
    count_webhooks,
    webhook_background,
)
from consumer.model.hooks import Hooks
from consumer.reviews import audit
from consumer.reviews.audit import AuditFilters
from consumer.reviews.database import Database, DatabaseUnavailable, identity
from consumer.reviews.outbox import webhooks
from consumer.telemetry.metrics.webhooks import DeliveryEnded, WebhooksCounted
from consumer.webhooks.courier import Courier
from tests.unit.console.serving import Clock
from tests.unit.reviews.made import at_once, read, write
from tests.unit.reviews.webhooks_made import add_webhook, found, happened, outbox, settings, tell, waiting
from tests.unit.webhooks.receivers import WAIT_S, Reaction, Received, Receiver, courier, serving

HOUR_S = 3_600.0


class Post:
    """A sender over a database, with a clock that the test moves, and what it has reported."""

    def __init__(self, database: Database, clock: Clock | None = None, sends: Courier | None = None) -> None:
        self.database = database
        self.clock = clock or Clock()
        self.ended = threading.Semaphore(0)
        hooks = Hooks()
        self.reported: list[str] = []
        hooks.on(DeliveryEnded, lambda ended: self.reported.append(ended.outcome))
        parts = WebhookParts(database, sends or courier(), self.clock, hooks, self.ended.release, lambda: 0.0)
        self.sender = WebhookSender(parts)

    def settle(self) -> None:
        """Send all that is due now, and note what came of it."""
        self.sender.work()
        while self.sender._in_flight.total():
            self.wait()
            self.sender.work()

    def wait(self) -> None:
        """Wait until every attempt has ended."""
        while self.sender._in_flight.total() > len(self.sender._ended):
            assert self.ended.acquire(timeout=WAIT_S)

    def work_until(self, holds: Callable[[], bool]) -> None:
        """Work on as attempts end, until something holds."""
        self.sender.work()
        while not holds():
            assert self.ended.acquire(timeout=WAIT_S)
            self.sender.work()

    def pass_time(self, seconds: float, step_s: float = 5.0) -> None:
        """Let time pass in small steps, and send what becomes due."""
        for _ in range(round(seconds / step_s)):
            self.clock.pass_s(step_s)
            self.settle()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that accepts everything."""
    with serving(Receiver(0)) as started:
        yield started


def status(number: int, **headers: str) -> Callable[[Received], Reaction]:
    """Answer everything with a status."""
    return lambda _: Reaction(number, [(name.replace("_", "-"), value) for name, value in headers.items()])


def texts(receiver: Receiver) -> list[str]:
    """What came, in order."""
    return [json.loads(received.body)["text"] for received in receiver.received]


def numbered(count: int, *stories: int | None) -> list[str]:
    """Names of events: so many of each story."""
    return [f"{story}-{number}" for number in range(count) for story in stories]


def of_story(found: list[str], story: int) -> list[str]:
    """Those of one story, each once."""
    return [text for text in dict.fromkeys(found) if text.startswith(f"{story}-")]


def tell_all(post: Post, *names: str) -> None:
    """Append events that are named for their story."""
    made = [happened(name, int(name.partition("-")[0]) if name[0].isdigit() else None) for name in names]
    tell(post.database, *made, now_ms=post.clock())


def test_events_arrive_signed_and_in_order(database: Database, receiver: Receiver) -> None:
    """With a number of the database and the event; nothing is left of them but the latest number."""
    post = Post(database)
    post.clock.at_ms = round(time.time() * 1_000)
    hook = add_webhook(database, settings(url=receiver.url()))
    tell_all(post, *numbered(5, 1, 2, 3))
    post.settle()
    assert len(texts(receiver)) == 15
    for story in (1, 2, 3):
        assert of_story(texts(receiver), story) == numbered(5, story)
    name, at_ms = read(database, identity), post.clock()
    assert {each.message_id for each in receiver.received} == {f"{name}-{n}-{at_ms}" for n in range(1, 16)}
    assert all(each.verify() == json.loads(each.body) for each in receiver.received)
    assert (waiting(database, hook), outbox(database)) == ([], [15])
    assert post.reported == ["accepted"] * 15
    webhook = found(database, hook)
    assert (webhook.last_status, webhook.last_why, webhook.last_ms) == (204, "", post.clock())


def test_a_receiver_that_was_away_gets_everything(database: Database) -> None:
    """In order for each story, and nothing twice that it had accepted."""
    post, receiver = Post(database), Receiver(0)
    with serving(receiver):
        hook = add_webhook(database, settings(url=receiver.url()))
        tell_all(post, *numbered(2, 1, 2))
        post.settle()
    tell_all(post, *numbered(3, 3, 4), "free", *numbered(1, 1))
    post.settle()
    assert {*post.reported[4:]} == {"unreachable"}
    post.pass_time(600)
    webhook = found(database, hook)
    assert (webhook.waiting, webhook.off_ms, webhook.last_status) == (8, None, None)
    assert webhook.failure is not None
    assert webhook.failure.error.startswith("connection ")
    assert len(receiver.received) == 4
    with serving(receiver):
        post.pass_time(HOUR_S, 60)
    assert len(texts(receiver)) == 12
    assert of_story(texts(receiver)[4:], 3) == numbered(3, 3)
    assert of_story(texts(receiver)[4:], 4) == numbered(3, 4)
    assert (waiting(database, hook), found(database, hook).failure) == ([], None)


def test_a_slow_receiver_holds_up_no_other(database: Database, receiver: Receiver) -> None:
    """Nor is it asked for more than a few things at once, and for one of each story."""
    is_over, most, now = threading.Event(), [0], [0]

    def slow(received: Received) -> Reaction:
        now[0] += 1
        most[0] = max(most[0], now[0])
        is_over.wait(WAIT_S)
        now[0] -= 1
        return Reaction()

    with serving(Receiver(0, slow)) as stuck:
        add_webhook(database, settings("stuck", stuck.url()))
        add_webhook(database, settings("quick", receiver.url()))
        post = Post(database)
        tell_all(post, *numbered(4, 1, 2), "a", "b", "c", "d")
        post.work_until(lambda: len(receiver.received) == 12)
        assert stuck.received == []
        is_over.set()
        post.settle()
        assert 2 <= most[0] <= ATTEMPTS_MAX
        assert sorted(texts(stuck)) == sorted(texts(receiver))
        assert of_story(texts(stuck), 1) == numbered(4, 1)


def test_a_story_that_fails_holds_up_no_other(database: Database, receiver: Receiver) -> None:
    """Its later events wait behind it."""
    receiver.react = lambda received: Reaction(500 if b'"1-' in received.body else 204)
    hook = add_webhook(database, settings(url=receiver.url()))
    post = Post(database)
    tell_all(post, *numbered(3, 1, 2), "free")
    post.pass_time(300)
    assert {*texts(receiver)} == {"1-0", "2-0", "2-1", "2-2", "free"}
    assert waiting(database, hook) == [1, 3, 5]
    receiver.react = status(204)
    post.pass_time(HOUR_S, 60)
    assert of_story(texts(receiver), 1) == numbered(3, 1)
    assert waiting(database, hook) == []


def test_a_receiver_that_fails_is_asked_for_little(database: Database, receiver: Receiver) -> None:
    """One thing at a time, with a pause that grows to half a minute, however many stories wait."""
    receiver.react = status(503)
    add_webhook(database, settings(url=receiver.url()))
    post = Post(database)
    tell_all(post, *numbered(1, *range(1, 200)))
    post.settle()
    assert len(receiver.received) <= ATTEMPTS_MAX
    post.settle()
    before = len(receiver.received)
    post.pass_time(900)
    assert 28 <= len(receiver.received) - before <= 36


def test_a_receiver_says_when_to_come_back(database: Database, receiver: Receiver) -> None:
    """Nothing is sent before, whatever is due; up to an hour."""
    receiver.react = status(429, retry_after="600")
    add_webhook(database, settings(url=receiver.url()))
    post = Post(database)
    tell_all(post, "1-0")
    post.settle()
    tell_all(post, "2-0")
    post.pass_time(595)
    assert texts(receiver) == ["1-0"]
    receiver.react = status(204)
    post.pass_time(10)
    assert sorted(texts(receiver)) == ["1-0", "1-0", "2-0"]


def test_a_day_of_failures_turns_a_webhook_off(
    database: Database, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """Not before; nothing is dropped, the log and the audit log say it, and a button sends everything."""
    receiver.react = status(500)
    hook = add_webhook(database, settings("ops", receiver.url("/secret-path")))
    post = Post(database)
    tell_all(post, *numbered(2, 1, 2))
    post.settle()
    post.pass_time(23 * HOUR_S, 900)
    assert found(database, hook).off_ms is None
    attempts = len(receiver.received)
    assert 40 < attempts < 120
    post.pass_time(3 * HOUR_S, 900)
    webhook = found(database, hook)
    assert (webhook.off_why, webhook.waiting) == ("day", 4)
    with database.read_connection() as connection:
        (entry,) = audit.search(connection, AuditFilters(action="webhook.off"), None, 10).rows
    assert (entry.subject, entry.person, entry.why) == ("ops", "", "a delivery has failed for a day")
    assert "The webhook 'ops' is off" in caplog.text
    tell_all(post, "3-0")
    attempts = len(receiver.received)
    post.pass_time(24 * HOUR_S, 3_600)
    assert len(receiver.received) == attempts
    receiver.react = status(204)
    write(database, webhooks.send_waiting, hook, post.clock())
    post.settle()
    assert sorted(texts(receiver)[attempts:]) == ["1-0", "1-1", "2-0", "2-1", "3-0"]
    assert of_story(texts(receiver)[attempts:], 1) == numbered(2, 1)
    assert (found(database, hook).off_ms, waiting(database, hook)) == (None, [])
    # Neither what signs, nor where it is sent, nor what was answered.
    assert not any(word in caplog.text for word in ("whsec_", "secret-path", "127.0.0.1"))


def test_a_receiver_has_a_day_again_after_it_was_turned_on(database: Database, receiver: Receiver) -> None:
    """What has failed for a day before does not count."""
    receiver.react = status(500)
    hook = add_webhook(database, settings(url=receiver.url()))
    post = Post(database)
    tell_all(post, "1-0")
    post.settle()
    post.pass_time(26 * HOUR_S, 1_800)
    assert found(database, hook).off_why == "day"
    write(database, webhooks.send_waiting, hook, post.clock())
    post.pass_time(20 * HOUR_S, 1_800)
    assert found(database, hook).off_ms is None


def test_a_receiver_that_is_gone_is_left_alone(database: Database, receiver: Receiver) -> None:
    """It said so; its events are kept all the same."""
    receiver.react = status(410)
    hook = add_webhook(database, settings(url=receiver.url()))
    post = Post(database)
    tell_all(post, "1-0", "1-1")
    post.settle()
    post.pass_time(2 * HOUR_S, 600)
    assert len(receiver.received) == 1
    assert (found(database, hook).off_why, found(database, hook).waiting) == ("gone", 2)


def test_a_process_that_was_killed_leaves_nothing_undone(
    database: Database, second: Database, receiver: Receiver
) -> None:
    """Between the acceptance and its note: another process sends it again, under the same number, and goes on."""
    hook = add_webhook(database, settings(url=receiver.url()))
    killed = Post(database)
    tell_all(killed, "1-0", "1-1")
    killed.sender.work()
    killed.wait()
    assert texts(receiver) == ["1-0"]
    other = Post(second, killed.clock)
    other.settle()
    assert texts(receiver) == ["1-0"]
    other.clock.pass_s(LEASE_S)
    other.settle()
    assert texts(receiver) == ["1-0", "1-0", "1-1"]
    first, again, last = receiver.received
    assert first.message_id == again.message_id != last.message_id
    assert waiting(database, hook) == []
    # It was only slow, and notes now what it knows.
    killed.settle()
    assert len(receiver.received) == 3


def test_two_processes_send_everything_once(database: Database, second: Database, receiver: Receiver) -> None:
    """And the events of a story in order, whichever of them sends which."""
    hook = add_webhook(database, settings(url=receiver.url()))
    mine = Post(database)
    yours = Post(second, mine.clock)
    tell_all(mine, *numbered(6, *range(1, 8)))
    while waiting(database, hook):
        at_once([mine.settle, yours.settle])
    assert len(texts(receiver)) == len({*texts(receiver)}) == 42
    for story in range(1, 8):
        assert of_story(texts(receiver), story) == numbered(6, story)


def test_what_is_accepted_is_noted_once_the_database_is_back(
    database: Database, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not sent again by the process that knows."""
    hook = add_webhook(database, settings(url=receiver.url()))
    post = Post(database)
    tell_all(post, "1-0", "1-1")
    post.sender.work()
    post.wait()

    def away(work: object) -> None:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(database, "write", away)
        for _ in range(3):
            with pytest.raises(DatabaseUnavailable):
                post.sender.work()
    post.clock.pass_s(2 * LEASE_S)
    post.settle()
    assert texts(receiver) == ["1-0", "1-1"]
    assert waiting(database, hook) == []


def test_a_webhook_may_go_while_something_is_sent_to_it(database: Database, receiver: Receiver) -> None:
    """Nothing is left to note."""
    hook = add_webhook(database, settings(url=receiver.url()))
    receiver.react = status(500)
    post = Post(database)
    tell_all(post, "1-0", "1-1")
    post.sender.work()
    post.wait()
    write(database, webhooks.remove, hook)
    post.settle()
    assert read(database, webhooks.webhooks) == []
    assert len(receiver.received) == 1


def test_addresses_that_are_not_allowed_are_failures(database: Database, receiver: Receiver) -> None:
    """That are retried: names change, and so do settings."""
    hook = add_webhook(database, settings(url=receiver.url()))
    post = Post(database, sends=Courier(allows_http=True))
    tell_all(post, "1-0")
    post.settle()
    post.pass_time(60)
    assert set(post.reported) == {"refused_address"}
    assert len(post.reported) >= 3
    assert found(database, hook).last_why == "address 127.0.0.1 loopback"
    assert receiver.received == []


def test_a_defect_of_an_attempt_is_a_failure(
    database: Database, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """And leaves no thread and no place behind."""

    def broken(host: str, port: int) -> list[str]:
        raise ZeroDivisionError

    add_webhook(database, settings(url=receiver.url()))
    post = Post(database, sends=Courier(resolve=broken, allows_http=True))
    tell_all(post, "1-0")
    post.settle()
    assert post.reported == ["unreachable"]
    assert "An attempt to send to the webhook 'ops' failed" in caplog.text


def test_former_secrets_are_forgotten(database: Database, receiver: Receiver) -> None:
    """After a day, by the process that sends."""
    hook = add_webhook(database, settings(url=receiver.url()))
    post = Post(database)
    write(database, webhooks.rotate, hook, "whsec_bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3", post.clock())
    post.settle()
    assert found(database, hook).former_until_ms is not None
    post.clock.pass_s(24 * HOUR_S)
    post.settle()
    assert found(database, hook).former_until_ms is None


def test_a_clock_that_was_ahead_holds_nothing_up(database: Database, receiver: Receiver) -> None:
    """Neither what came then, nor what failed then and paused."""
    hook = add_webhook(database, settings(url=receiver.url()))
    post = Post(database)
    post.settle()
    post.clock.pass_s(24 * HOUR_S)
    receiver.react = status(500)
    tell_all(post, "1-0", "1-1")
    post.settle()
    tell_all(post, "2-0")
    receiver.react = status(204)
    post.clock.pass_s(-24 * HOUR_S)
    post.settle()
    assert sorted(texts(receiver)) == ["1-0", "1-0", "1-1", "2-0"]
    assert waiting(database, hook) == []


def test_the_end_waits_a_little(database: Database, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """For attempts that are being made, which are noted; one that takes longer is left to another process."""
    is_over = threading.Event()
    hook = add_webhook(database, settings(url=receiver.url()))
    post = Post(database)
    tell_all(post, "1-0")
    post.sender.work()
    post.sender.close()
    assert waiting(database, hook) == []
    receiver.react = lambda _: Reaction() if is_over.wait(WAIT_S) else Reaction(500)
    tell_all(post, "2-0")
    post.sender.work()
    monkeypatch.setattr(webhook_sender, "_END_S", 0.0)
    post.sender.close()
    assert waiting(database, hook) == [2]
    is_over.set()
    post.wait()


def test_a_thread_sends_by_itself(database: Database, receiver: Receiver) -> None:
    """It wakes where an attempt has ended, and ends with its console."""
    hook = add_webhook(database, settings(url=receiver.url()))
    clock = Clock()
    parts = WebhookParts(database, courier(), clock, Hooks())
    with ExitStack() as running:
        running.enter_context(webhook_background(parts, threading.Event(), running))
        tell(database, *(happened(name, 1) for name in numbered(20, 1)), now_ms=clock())
        receiver.wait_for(20)
    assert texts(receiver) == numbered(20, 1)
    assert waiting(database, hook) == []


def test_what_waits_is_reported(database: Database, receiver: Receiver) -> None:
    """For metrics."""
    reported: list[object] = []
    count_webhooks(database, 5_000, reported.append)
    hook = add_webhook(database, settings(url=receiver.url()))
    tell(database, happened("a"), now_ms=1_000)
    count_webhooks(database, 5_000, reported.append)
    write(database, webhooks.turn_off, hook, "gone", 2_000)
    count_webhooks(database, 5_000, reported.append)
    assert reported == [WebhooksCounted(0.0, 0), WebhooksCounted(4.0, 0), WebhooksCounted(0.0, 1)]
