"""Admins keep webhooks, see what receivers say, and learn why a URL cannot be used; reviewers see the status."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from consumer.console.pages.webhooks import webhook_pages
from consumer.reviews import audit
from consumer.reviews.audit import AuditFilters
from consumer.reviews.outbox import deliveries, limits, webhooks
from consumer.reviews.outbox.deliveries import Failure, LastAttempt
from consumer.webhooks.courier import Courier
from tests.unit.console.desks import Office, office, page
from tests.unit.console.serving import Answer, Browser
from tests.unit.console.test_foreign_text import HOSTILE, check_text
from tests.unit.reviews.made import write
from tests.unit.reviews.webhooks_made import found, happened, outbox, tell, waiting
from tests.unit.webhooks.receivers import LOCAL, Reaction, Receiver, serving

_SECRET: Final = re.compile(r"whsec_[A-Za-z0-9+/]{43}=")
ALL: Final = [("kind", kind) for kind in ("flag", "bank_match", "story", "flood", "decision")]


@contextmanager
def newsroom(folder: Path, **settings: Any) -> Iterator[tuple[Office, Browser]]:  # noqa: ANN401  # of a served console
    """A console whose webhooks may go to this machine, and the browser of an admin."""
    given = {"webhooks": {"networks": LOCAL, "http": True}} | settings
    with office(folder, **given) as desk:
        yield desk, desk.served.signed_in("Wei", "admin")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that accepts everything."""
    with serving(Receiver(0)) as started:
        yield started


def fill_in(browser: Browser, path: str, *more: tuple[str, str], **fields: str) -> Answer:
    """Send the form of a webhook, with all kinds unless it names some."""
    kinds = [pair for pair in more if pair[0] == "kind"] or ALL
    token = ("token", browser.get("/webhooks").token)
    given = {"name": "ops", "url": "https://hooks.example/", "sources": ""} | fields
    return browser.post(path, [token, *given.items(), *kinds])


def created(wei: Browser, **fields: str) -> str:
    """Create a webhook and return its secret."""
    answer = fill_in(wei, "/webhooks", **fields)
    assert answer.status == 200, answer.shown
    secret = _SECRET.search(answer.text)
    assert secret is not None
    return secret[0]


def noted(desk: Office) -> list[tuple[str, str, str, str]]:
    """What the audit log has of webhooks, the first entry first."""
    with desk.served.database.read_connection() as connection:
        entries = audit.search(connection, AuditFilters(), None, 1_000).rows
    kept = [entry for entry in entries if entry.action.startswith("webhook.")]
    return [(entry.person, entry.action, entry.subject, entry.why) for entry in reversed(kept)]


def test_a_webhook_is_kept(tmp_path: Path, receiver: Receiver) -> None:
    """Created, changed, tested, turned off and on, given a new secret, and removed; each is in the audit log."""
    with newsroom(tmp_path) as (desk, _):
        # Receivers check when a message was signed; sessions of the time before have ended.
        desk.served.clock.at_ms = round(time.time() * 1_000)
        wei = desk.served.in_session_of("Wei")
        assert "There are no webhooks yet." in page(wei, "/webhooks").answer.shown
        secret = created(wei, url=receiver.url("/in"))
        shown = page(wei, "/webhooks/1")
        assert secret not in shown.answer.text
        assert (shown.texts("h1"), receiver.url("/in") in shown.answer.shown) == (["ops"], True)
        tested = wei.send("/webhooks/1/test")
        assert "Accepted: 204." in tested.shown
        (received,) = receiver.received
        said = received.verify(secret)
        assert isinstance(said, dict)
        assert (said["schema"], said["webhook"]) == (webhook_pages.TEST_SCHEMA, "ops")
        answer = fill_in(
            wei, "/webhooks/1", ("kind", "flag"), name="Ops", url=receiver.url("/x"), sources=" a \n\nb\na"
        )
        assert "Webhook changed." in page(wei, answer.header("location")).answer.shown
        wanted = found(desk.served.database, 1).settings
        assert (wanted.name, wanted.kinds, wanted.sources) == ("Ops", ("flag",), ("a", "b"))
        renewed = _SECRET.search(wei.send("/webhooks/1/secret").text)
        assert renewed is not None
        wei.send("/webhooks/1/test")
        assert receiver.received[1].verify(secret) == receiver.received[1].verify(renewed[0])
        assert receiver.received[0].message_id != receiver.received[1].message_id
        for action, said_then in (
            ("former", "Messages are signed with the new secret only."),
            ("off", "The webhook is off. Its events are kept."),
            ("send", "The waiting events are being sent."),
        ):
            answer = wei.send(f"/webhooks/1/{action}")
            assert said_then in page(wei, answer.header("location")).answer.shown
        tell(desk.served.database, happened("a", kind="flag", sources=["a"]))
        assert "1 waiting event is removed with it." in page(wei, "/webhooks/1/remove").answer.shown
        answer = wei.send("/webhooks/1/remove")
        assert "Webhook removed." in page(wei, answer.header("location")).answer.shown
        assert outbox(desk.served.database) == [1]
        assert noted(desk) == [
            ("Wei", "webhook.add", "ops", ""),
            ("Wei", "webhook.test", "ops", ""),
            ("Wei", "webhook.change", "Ops", ""),
            ("Wei", "webhook.secret", "Ops", ""),
            ("Wei", "webhook.test", "Ops", ""),
            ("Wei", "webhook.former", "Ops", ""),
            ("Wei", "webhook.off", "Ops", ""),
            ("Wei", "webhook.send", "Ops", ""),
            ("Wei", "webhook.remove", "Ops", "1 events"),
        ]
        log = page(wei, "/audit").answer.text
        assert not any(word in log for word in (secret, renewed[0], "127.0.0.1:"))


def test_reviewers_see_the_status(tmp_path: Path) -> None:
    """Neither the URL nor what the receiver said, which admins see."""
    with newsroom(tmp_path) as (desk, wei):
        created(wei, url="http://127.0.0.1:9/hidden-path")
        database, clock = desk.served.database, desk.served.clock
        tell(database, happened("a"), now_ms=clock())
        (claim,) = write(database, deliveries.claim_due_deliveries, 1, clock(), 1_000, 9)
        why = "status said-to-admins"
        write(database, deliveries.note_failed, Failure(claim, 503, why, clock() + 9), clock())
        write(database, deliveries.note_last, 1, LastAttempt(clock(), 503, why, None))
        for path in ("/webhooks", "/webhooks/1"):
            assert ("said-to-admins" in wei.get(path).text) == (path != "/webhooks")
        seen = page(desk.ann, "/webhooks")
        assert "503" in seen.answer.shown
        assert not any(word in seen.answer.text for word in ("hidden-path", "said-to-admins", 'href="/webhooks/1"'))
        assert seen.all('form[action="/webhooks"]') == []
        assert desk.ann.get("/webhooks/1").status == 403


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://127.0.0.1/", "The host resolves to 127.0.0.1, which is this machine itself. Nothing is sent there."),
        ("https://0x7f.1/", "The host resolves to 127.0.0.1"),
        ("https://localhost/", "The host resolves to 127.0.0.1"),
        ("https://169.254.169.254/latest", "169.254.169.254, which is in the local network segment"),
        ("https://10.1.2.3/", "10.1.2.3, which is in a private network"),
        ("https://192.168.1.1/", "192.168.1.1, which is in a private network"),
        ("https://100.64.0.1/", "100.64.0.1, which is in the shared network of a provider"),
        ("https://0.0.0.0/", "0.0.0.0, which is not the address of a machine"),
        ("https://224.0.0.1/", "224.0.0.1, which is a multicast address"),
        ("https://198.18.0.1/", "198.18.0.1, which is reserved for benchmarks"),
        ("https://192.0.2.1/", "192.0.2.1, which is reserved for documentation"),
        ("https://255.255.255.255/", "255.255.255.255, which is reserved"),
        ("https://[::1]/", "::1, which is this machine itself"),
        ("https://[fd00::1]/", "fd00::1, which is in a private network"),
        ("https://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1, which is an address that stands for another one"),
        ("https://[64:ff9b::7f00:1]/", "64:ff9b::7f00:1, which is an address that stands for another one"),
        ("http://hooks.example/", "The URL must begin with https://."),
        ("https://ann:x@hooks.example/", "The URL has a name or a password before the host."),
        ("https://a..b/", "The host of the URL is not a name"),
        ("https://hooks.example:0/", "The port of the URL must be a number"),
        ("hooks", "The URL must begin with https://."),
        ("https://a b/", "This is not a URL"),
    ],
)
def test_a_url_that_cannot_be_used_gets_a_sentence(tmp_path: Path, url: str, said: str) -> None:
    """With the address of the name and what to do; nothing is changed, and the form keeps what was written."""
    with newsroom(tmp_path, webhooks={}) as (desk, wei):
        answer = fill_in(wei, "/webhooks", url=url)
        assert (answer.status, said in answer.shown) == (400, True), answer.shown
        assert "Nothing was changed" in answer.shown
        assert noted(desk) == []
        if "resolves to" in answer.shown:
            assert "add the network to console.webhooks.networks" in answer.shown
        assert wei.get("/me").status == 200


def test_all_addresses_of_a_name_are_looked_at(tmp_path: Path) -> None:
    """Also when a webhook is changed, and again when something is sent: names change their addresses."""
    addresses = ["8.8.8.8", "10.0.0.9"]
    sends = Courier(resolve=lambda host, port: addresses)
    with newsroom(tmp_path, courier=sends) as (_, wei):
        assert "The host resolves to 10.0.0.9" in fill_in(wei, "/webhooks").shown
        addresses[:] = ["8.8.8.8"]
        created(wei)
        addresses[:] = ["::1"]
        answer = fill_in(wei, "/webhooks/1", name="renamed")
        assert (answer.status, "The host resolves to ::1" in answer.shown) == (400, True)
        assert page(wei, "/webhooks/1").texts("h1") == ["ops"]
        assert "The host resolves to ::1, which is this machine itself." in wei.send("/webhooks/1/test").shown


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    """Nothing is changed, and nothing is in the log."""
    with newsroom(tmp_path, courier=Courier(resolve=lambda host, port: ["8.8.8.8"])) as (desk, wei):
        created(wei)
        created(wei, name="site")
        for path, fields, status, said in (
            ("/webhooks", {"name": "OPS"}, 409, "A webhook of this name already exists"),
            ("/webhooks", {"name": " "}, 400, "Enter a name"),
            ("/webhooks", {"name": "x" * 81}, 400, "“Name” has 81 characters"),
            ("/webhooks", {"sources": "\n".join(map(str, range(101)))}, 400, "Enter at most 100 sources."),
            ("/webhooks/2", {"name": "ops"}, 409, "A webhook of this name already exists"),
            ("/webhooks/9", {"name": "new"}, 404, "There is no such page."),
        ):
            answer = fill_in(wei, path, **fields)
            assert (answer.status, said in answer.shown) == (status, True), answer.shown
        answer = fill_in(wei, "/webhooks", ("kind", "weather"), name="new")
        assert (answer.status, "Choose at least one kind of event." in answer.shown) == (400, True)
        assert page_fields(answer) == ("new", "https://hooks.example/")
        for action in ("test", "send", "off", "secret", "former", "remove"):
            assert wei.send(f"/webhooks/9/{action}").status == 404
        assert len(noted(desk)) == 2
        for number in range(18):
            created(wei, name=f"hook {number}")
        full = fill_in(wei, "/webhooks", name="one more")
        assert (full.status, "There are already 20 webhooks, which is the limit." in full.shown) == (409, True)
        assert "which is the limit" in page(wei, "/webhooks").answer.shown


def page_fields(answer: Answer) -> tuple[str, str]:
    """Return name and URL that a form shows."""
    found_values = re.findall(r'id="(?:name|url)" name="\w+" type="\w+" value="([^"]*)"', answer.text)
    return found_values[0], found_values[1]


def test_a_test_says_what_came_of_it(tmp_path: Path, receiver: Receiver) -> None:
    """With what the receiver answered, in words; it does not count as an attempt to deliver."""
    with newsroom(tmp_path) as (desk, wei):
        created(wei, url=receiver.url())
        for reaction, said in (
            (Reaction(500, body=b"<b>broken</b>"), "The receiver answered 500. <b>broken</b>"),
            (Reaction(302, [("location", "http://10.0.0.1/")]), "The receiver answered 302 and redirects to"),
            (Reaction(410), "The receiver answered 410."),
        ):
            receiver.react = lambda _, reaction=reaction: reaction  # type: ignore[misc]
            assert said in wei.send("/webhooks/1/test").shown
        webhook = found(desk.served.database, 1)
        assert (webhook.last_ms, webhook.off_ms) == (None, None)
        created(wei, name="tls", url=receiver.url(scheme="https"))
        assert "TLS failed: " in wei.send("/webhooks/2/test").shown
        created(wei, name="away", url="http://127.0.0.1:9/")
        assert "The connection failed: Connection refused." in wei.send("/webhooks/3/test").shown


def test_why_a_webhook_is_off_is_said(tmp_path: Path) -> None:
    """And how much waits, and what was not kept; turning it on sends it again."""
    with newsroom(tmp_path) as (desk, wei):
        created(wei, url="http://127.0.0.1:9/")
        database, clock = desk.served.database, desk.served.clock
        tell(database, happened("a"), happened("b"), now_ms=clock())
        reasons: dict[webhooks.OffReason, str] = {
            "day": "a delivery has failed for a day. Repair the receiver",
            "gone": "the receiver answered 410",
            "person": "Turned off by an admin.",
        }
        for why, said in reasons.items():
            write(database, webhooks.turn_off, 1, why, clock())
            shown = page(wei, "/webhooks/1").answer.shown
            assert (said in shown, "2 events" in shown) == (True, True)
            assert page(desk.ann, "/webhooks").texts("tbody td")[0] == "off"
            wei.send("/webhooks/1/send")
            assert page(desk.ann, "/webhooks").texts("tbody td")[0] == "on"
        assert waiting(database, 1) == [1, 2]


def test_a_page_says_what_was_not_kept(tmp_path: Path) -> None:
    """To everybody, with how much."""
    with newsroom(tmp_path) as (desk, wei):
        created(wei, url="http://127.0.0.1:9/")
        tell(desk.served.database, *(happened("a") for _ in range(4)))
        assert write(desk.served.database, limits.drop_latest, 1, 1) == 3
        assert "Too many events wait for ops: 3 events were not kept." in page(desk.ann, "/webhooks").answer.shown
        assert "Too many events wait for this webhook: 3 events were not kept." in page(wei, "/webhooks/1").answer.shown


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_receivers_say_is_shown_as_text(tmp_path: Path, text: str) -> None:
    """Whatever it is."""
    with newsroom(tmp_path) as (desk, wei):
        created(wei, url="http://127.0.0.1:9/")
        why = f"status {text}"
        write(desk.served.database, deliveries.note_last, 1, LastAttempt(desk.served.clock(), 500, why, None))
        check_text(wei.get("/webhooks/1").text, text)


def test_pages_are_in_chinese(tmp_path: Path) -> None:
    """With what is refused, too."""
    with newsroom(tmp_path, webhooks={}, language="zh") as (_, wei):
        answer = fill_in(wei, "/webhooks", url="https://169.254.169.254/")
        assert "主机指向 169.254.169.254，该地址属于本地网段" in answer.shown
        assert "没有做任何更改" in answer.shown
