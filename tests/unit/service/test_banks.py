"""Banks over HTTP: what is shown, what is changed, who may, and what is recorded and refused."""

import json
import logging
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typing_extensions import override

import dupwatch
from consumer.banks.bank import Bank, BankItem, Banks, BanksUnreachable, ChangeUnknown, Entry, encode_entry
from consumer.banks.bank_log import BankLog, BankLogChange, NewEntries
from consumer.banks.exchange import item_id
from consumer.files.bank_file import BankFile
from consumer.service import bank_articles, bank_reading, service_banks
from consumer.service.bank_messages import ITEMS_MAX
from consumer.service.writing import NO_OWNER
from consumer.telemetry.health import HEARTBEAT_MAX_S
from consumer.web.audit_log import AuditLog
from consumer.web.token import Role, current_time
from storage.files import WriteOptions
from tests.cli.command import text, wait_for
from tests.unit.service.gate import Gate
from tests.unit.service.serving import WAIT_S, Answer, Client, judging_of, served, wait_until_ready
from tests.unit.service.test_audit import audited, lines
from tests.unit.web.token_samples import add

URN = "urn:dupwatch:problem:"
SPAM = Bank(bank="spam", action="deny", by="An Na", at="2026-11-23T09:00:00.000Z")
NOTICES = Bank(bank="notices", action="allow")
OFFER = BankItem(bank="spam", item="offer", text="Win a ferry ticket now", labels=("tickets",))
JSON = {"content_type": "application/json"}
LETTERS = "letters enough"


class Fixture:
    """A service with banks, and the file that holds them."""

    def __init__(self, client: Client, path: Path) -> None:
        self.client = client
        self.path = path

    def send(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Send a request about banks."""
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        return self.client.ask(method, f"/v1/banks{path}", data, **((JSON if data is not None else {}) | headers))

    def add(self, bank: str, *items: object, **headers: str) -> Answer:
        """Add items to a bank."""
        return self.send("POST", f"/{bank}/items", {"items": items}, **headers)

    @property
    def banks(self) -> Banks:
        """What is in the file."""
        return Banks.of(bank_file(self.path).read().entries)


def bank_file(path: Path) -> BankFile:
    """Return the file as another process would open it."""
    return BankFile(path, WriteOptions(durable=False))


def serving_banks(
    window: dupwatch.Window,
    banks: BankLog | None,
    audit: AuditLog | None = None,
    **settings: Any,  # noqa: ANN401  # as the section has them
) -> AbstractContextManager[Client]:
    """Serve these banks."""
    return served(judging_of(window), None, None, audit, HEARTBEAT_MAX_S, banks, **settings)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file with a bank of each kind, and an item."""
    path = tmp_path / "banks.jsonl"
    bank_file(path).change(lambda _: [SPAM, NOTICES, OFFER])
    return path


@pytest.fixture
def service(window: dupwatch.Window, path: Path, tmp_path: Path) -> Iterator[Fixture]:
    """A service over them, with an audit log."""
    with serving_banks(window, bank_file(path), audited(tmp_path / "audit.jsonl")) as client:
        wait_until_ready(client)
        yield Fixture(client, path)


def test_banks_are_shown(service: Fixture) -> None:
    """All of them, one with its items, and an item with its text; as others change the file."""
    notices = {
        "bank": "notices", "action": "allow", "items": 0, "enabled": True, "similarity": 0.9, "labels": [], "note": "",
        "by": "", "at": None,
    }  # fmt: skip
    spam = notices | {"bank": "spam", "action": "deny", "items": 1, "similarity": 0.7, "by": SPAM.by, "at": SPAM.at}
    assert service.send("GET", "").json == {"banks": [notices, spam]}
    offer = {
        "bank": "spam", "item": "offer", "title": "", "lang": "", "labels": ["tickets"], "note": "", "article": None,
        "until": None, "similarity": None, "enabled": True, "confirmed": False, "by": "", "at": None,
    }  # fmt: skip
    assert service.send("GET", "/spam").json == {"bank": spam, "items": [offer], "next": None}
    assert service.send("GET", "/spam?texts=true").json["items"] == [offer | {"text": OFFER.text}]
    assert service.send("GET", "/spam/items/offer").json == offer | {"text": OFFER.text}
    bank_file(service.path).change(lambda _: [BankItem(bank="spam", item="more:1", text=LETTERS)])
    assert service.send("GET", "/spam/items/more%3A1").json["text"] == LETTERS
    bank_file(service.path).change(lambda _: [Bank(bank="spam", removed=True)])
    assert service.send("GET", "").json == {"banks": [notices]}


def test_the_articles_of_an_item_are_shown(service: Fixture, window: dupwatch.Window) -> None:
    """Kept ones that repeat it, at most a hundred; an item that does not count has none."""
    window.judge([dupwatch.Article("first", OFFER.text, title="Tickets"), dupwatch.Article("copy", OFFER.text)])
    shown = service.send("GET", "/spam/items/offer/articles").json
    (article,) = shown.pop("articles")
    assert shown == {"bank": "spam", "item": "offer", "truncated": False, "parts": False, "without_text": 0}
    assert article.pop("version")
    assert article.pop("arrived_at")
    assert article == {
        "id": "first", "title": "Tickets", "source": "", "url": "", "form": "equal", "similarity": 1.0,
    }  # fmt: skip
    bank_file(service.path).change(lambda _: [msgspec.structs.replace(OFFER, enabled=False)])
    assert service.send("GET", "/spam/items/offer/articles").json["articles"] == []
    for path, problem in (("/spam/items/other", "unknown-item"), ("/other/items/offer", "unknown-bank")):
        refused = service.send("GET", f"{path}/articles")
        assert (refused.status, refused.json["type"]) == (404, URN + problem)


def test_more_articles_than_are_shown_are_named(
    service: Fixture, window: dupwatch.Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The most similar come first."""
    words = text(1, 60).split()
    # Each differs in other words, and repeats too little of the others to be flagged.
    copies = [" ".join([*words[:30], *text(10 + number, 14).split(), *words[44:]]) for number in range(3)]
    window.judge([dupwatch.Article(f"a{number}", body) for number, body in enumerate(copies)])
    item = BankItem(bank="spam", item="long", text=" ".join(words), similarity=0.5)
    bank_file(service.path).change(lambda _: [item])
    everything = service.send("GET", "/spam/items/long/articles").json["articles"]
    monkeypatch.setattr(bank_articles, "ARTICLES_MAX", len(everything) - 1)
    shown = service.send("GET", "/spam/items/long/articles").json
    assert (shown["articles"], shown["truncated"]) == (everything[:-1], True)


def test_items_are_shown_in_pages(service: Fixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their ids; a page with texts ends earlier, and has an item at least."""
    names = [f"i{number:02}" for number in range(10)]
    bank_file(service.path).change(lambda _: [BankItem(bank="notices", item=each, text=LETTERS) for each in names])

    def pages(query: str) -> list[list[str]]:
        found: list[list[str]] = []
        after: str | None = ""
        while after is not None:
            page = service.send("GET", f"/notices?after={after}&{query}").json
            found.append([item["item"] for item in page["items"]])
            after = page["next"]
        return found

    assert pages("limit=4") == [names[:4], names[4:8], names[8:]]
    assert pages("limit=10") == pages("limit=1000") == pages("texts=true") == [names]
    monkeypatch.setattr(bank_reading, "PAGE_CHARS_MAX", 3 * len(LETTERS))
    assert pages("texts=true") == [names[:3], names[3:6], names[6:9], names[9:]]
    monkeypatch.setattr(bank_reading, "PAGE_CHARS_MAX", 1)
    assert pages("texts=true&limit=4") == [[name] for name in names]
    assert service.send("GET", "/notices?after=zz").json["items"] == []


def test_a_bank_is_created_changed_and_removed(service: Fixture) -> None:
    """Repeated, a change writes nothing; the audit log has a line for each answer."""
    settings = {"action": "deny", "labels": ["a"], "note": "exams", "similarity": 0.8, "enabled": False}
    made = service.send("PUT", "/leaks", settings)
    assert made.status == 200
    assert made.json == settings | {"bank": "leaks", "items": 0, "by": NO_OWNER, "at": made.json["at"]}
    size = service.path.stat().st_size
    assert service.send("PUT", "/leaks", settings).data == made.data
    assert service.path.stat().st_size == size
    assert service.send("PUT", "/spam", {"action": "deny", "note": "new"}).json["items"] == 1
    assert service.banks.items == {OFFER.key: OFFER}
    removed = {"bank": "spam", "item": None, "existed": True, "items": 1}
    assert service.send("DELETE", "/spam").json == removed
    assert service.send("DELETE", "/spam").json == removed | {"existed": False, "items": 0}
    assert (set(service.banks.banks), service.banks.items) == ({"leaks", "notices"}, {})
    recorded = lines(service.path.with_name("audit.jsonl"))
    assert [(line["action"], line["id"], line["result"], line["owner"]) for line in recorded] == [
        ("banks.create", "leaks", "disabled", NO_OWNER),
        ("banks.create", "leaks", "disabled", NO_OWNER),
        ("banks.create", "spam", "enabled", NO_OWNER),
        ("banks.remove", "spam", "removed", NO_OWNER),
        ("banks.remove", "spam", "absent", NO_OWNER),
    ]
    assert recorded[0]["request_id"] == made.headers["x-request-id"]


def test_items_are_added(service: Fixture, window: dupwatch.Window) -> None:
    """With a text, or with that of a stored article; without an id, a text is one item; an id is replaced."""
    window.judge(dupwatch.Article("wire/1", text(1), title="Bridge", lang="en"))
    added = service.add(
        "spam",
        {"text": "<b>Win</b> a ticket & \u202e more"},
        {"article": "wire/1", "until": "2030-01-01T01:00:00+01:00", "similarity": 0.8},
        {"item": "offer", "text": "Another offer", "title": "Offer", "lang": "en", "labels": ["x"], "note": "n"},
        {"item": "copy", "article": "wire/1", "title": "", "lang": "zh", "enabled": False},
        {"text": "<b>Win</b> a ticket & \u202e more"},
    )
    assert added.status == 200, added.data
    first, second, third, fourth = added.json["items"]
    assert "text" not in first
    items = {name: item for (_, name), item in service.banks.items.items()}
    assert items[first["item"]].text == "<b>Win</b> a ticket & \u202e more"
    assert first["item"] == item_id(items[first["item"]].text)
    copied = items[second["item"]]
    assert (copied.text, copied.title, copied.lang, copied.article) == (text(1), "Bridge", "en", "wire/1")
    assert (copied.until, copied.similarity) == ("2030-01-01T00:00:00.000Z", 0.8)
    assert (third["item"], items["offer"].text, items["offer"].labels) == ("offer", "Another offer", ("x",))
    assert (fourth["enabled"], items["copy"].title, items["copy"].lang, items["copy"].text) == (
        False,
        "",
        "zh",
        text(1),
    )
    assert {item.by for item in items.values()} == {NO_OWNER}
    size = service.path.stat().st_size
    assert service.add("spam", {"item": "offer", "text": "Another offer", "title": "Offer", "lang": "en",
                                "labels": ["x"], "note": "n"}).json == {"items": [third]}  # fmt: skip
    assert service.path.stat().st_size == size
    recorded = lines(service.path.with_name("audit.jsonl"))
    assert [(line["action"], line["id"], line["result"]) for line in recorded] == [
        ("banks.add", f"spam/{first['item']}", "enabled"),
        ("banks.add", f"spam/{second['item']}", "enabled"),
        ("banks.add", "spam/offer", "enabled"),
        ("banks.add", "spam/copy", "disabled"),
        ("banks.add", "spam/offer", "enabled"),
    ]


def test_an_item_is_changed_and_removed(service: Fixture) -> None:
    """What is left out stays as it is; null ends what an item has of its own. Only readers are told its text."""
    patch = {"enabled": False, "title": "T", "labels": [], "note": "n", "until": "2030-01-01T00:00:00Z",
             "similarity": 0.9}  # fmt: skip
    changed = service.send("PATCH", "/spam/items/offer", patch)
    until = {"until": "2030-01-01T00:00:00.000Z"}
    assert changed.json == patch | until | {
        "bank": "spam", "item": "offer", "lang": "", "article": None, "by": NO_OWNER,
        "at": changed.json["at"], "confirmed": False,
    }  # fmt: skip
    assert service.send("PATCH", "/spam/items/offer", {"enabled": False}).data == changed.data
    again = service.send("PATCH", "/spam/items/offer", {"until": None, "similarity": None, "enabled": True})
    assert (again.json["until"], again.json["similarity"], again.json["title"]) == (None, None, "T")
    removed = {"bank": "spam", "item": "offer", "existed": True, "items": 1}
    assert service.send("DELETE", "/spam/items/offer").json == removed
    assert service.send("DELETE", "/spam/items/offer").json == removed | {"existed": False, "items": 0}
    assert service.send("GET", "/spam/items/offer").status == 404
    recorded = lines(service.path.with_name("audit.jsonl"))
    assert [(line["action"], line["id"], line["result"]) for line in recorded] == [
        ("banks.change", "spam/offer", "disabled"),
        ("banks.change", "spam/offer", "disabled"),
        ("banks.change", "spam/offer", "enabled"),
        ("banks.remove", "spam/offer", "removed"),
        ("banks.remove", "spam/offer", "absent"),
    ]


def test_an_item_is_confirmed_as_long_as_its_text_stays(service: Fixture) -> None:
    """Whatever else is changed; the audit log says that it is."""

    def is_confirmed() -> bool:
        return service.banks.items[OFFER.key].confirmed

    confirmed = service.send("PATCH", "/spam/items/offer", {"confirmed": True})
    assert (confirmed.status, confirmed.json["confirmed"]) == (200, True)
    assert service.send("PATCH", "/spam/items/offer", {"note": "n", "enabled": False}).json["confirmed"] is True
    assert service.add("spam", {"item": "offer", "text": OFFER.text}).json["items"][0]["confirmed"] is True
    assert is_confirmed()
    assert service.add("spam", {"item": "offer", "text": LETTERS}).json["items"][0]["confirmed"] is False
    assert not is_confirmed()
    assert service.send("PATCH", "/spam/items/offer", {"confirmed": True}).status == 200
    assert is_confirmed()
    assert service.send("PATCH", "/spam/items/offer", {"confirmed": False}).json["confirmed"] is False
    assert not is_confirmed()
    recorded = [line["result"] for line in lines(service.path.with_name("audit.jsonl"))]
    assert recorded == [
        "enabled, confirmed", "disabled, confirmed", "enabled, confirmed", "enabled", "enabled, confirmed", "enabled",
    ]  # fmt: skip


def test_a_lower_similarity_ends_a_confirmation(service: Fixture) -> None:
    """Or a reviewer could let a confirmed item match nearly everything. An admin may confirm with the same change."""
    item = "/spam/items/offer"
    for change, is_confirmed in (
        ({"confirmed": True}, True), ({"similarity": 0.9}, True), ({"similarity": 0.8}, False),
        ({"confirmed": True}, True), ({"similarity": None}, False), ({"similarity": 0.6, "confirmed": True}, True),
        ({"similarity": 0.7}, True),
    ):  # fmt: skip
        assert service.send("PATCH", item, change).json["confirmed"] is is_confirmed, change
    lower = {"item": "offer", "text": OFFER.text, "similarity": 0.5}
    assert service.add("spam", lower).json["items"][0]["confirmed"] is False


LONG = "x" * 100_001
MANY = json.dumps({"items": [{"item": f"i{number}", "text": LETTERS} for number in range(ITEMS_MAX + 1)]}).encode()
REFUSED: list[tuple[str, str, object, int, str, str]] = [
    ("GET", "/none", None, 404, "unknown-bank", "no bank 'none'"),
    ("GET", "/spam/items/none", None, 404, "unknown-item", "no item 'none'"),
    ("GET", "/none/items/offer", None, 404, "unknown-bank", "no bank"),
    ("GET", "/spam/items/a%2Fb", None, 404, "unknown-item", "'a/b'"),
    ("GET", "/spam/items/a%00", None, 404, "unknown-item", r"'a\\x00'"),
    ("GET", "/%ff", None, 422, "invalid-request", "not UTF-8"),
    ("GET", "/spam/items/%ff", None, 422, "invalid-request", "not UTF-8"),
    ("GET", "/spam/items/a/b", None, 404, "not-found", "no such path"),
    ("GET", "/spam?limit=0", None, 422, "invalid-request", "limit"),
    ("GET", "/spam?limit=1001", None, 422, "invalid-request", "limit"),
    ("GET", "/spam?texts=perhaps", None, 422, "invalid-request", "texts"),
    ("GET", f"/spam?after={'x' * 65}", None, 422, "invalid-request", "after"),
    ("PUT", "/Spam", {"action": "deny"}, 422, "invalid-request", "the name of a bank must have at most 64"),
    ("PUT", "/spam%0A", {"action": "deny"}, 422, "invalid-request", "the name of a bank must have at most 64"),
    ("PUT", "/a%2Fb", {"action": "deny"}, 422, "invalid-request", "the name of a bank must have at most 64"),
    ("PUT", f"/{'x' * 65}", {"action": "deny"}, 422, "invalid-request", "the name of a bank must have at most 64"),
    ("PUT", "/new", {}, 422, "invalid-request", "action"),
    ("PUT", "/new", {"action": "block"}, 422, "invalid-request", "action"),
    ("PUT", "/new", {"action": "deny", "bank": "other"}, 422, "invalid-request", "unknown field"),
    ("PUT", "/new", {"action": "deny", "similarity": 0.4}, 422, "invalid-request", "similarity"),
    ("PUT", "/new", {"action": "allow", "similarity": 0.8}, 422, "invalid-request", "at least 0.9"),
    ("PUT", "/new", {"action": "deny", "labels": ["a b"]}, 422, "invalid-request", "labels"),
    ("PUT", "/new", {"action": "deny", "labels": ["a\n"]}, 422, "invalid-request", "labels"),
    ("PUT", "/new", {"action": "deny", "labels": ["a"] * 21}, 422, "invalid-request", "at most 20 labels"),
    ("PUT", "/new", {"action": "deny", "note": "a\0"}, 422, "invalid-request", ": note has a NUL character"),
    ("PUT", "/spam", {"action": "allow"}, 409, "other-action", "has the action 'deny', which never changes"),
    ("DELETE", "/Spam", None, 422, "invalid-request", "the name of a bank must have at most 64"),
    ("POST", "/none/items", {"items": [{"text": LETTERS}]}, 404, "unknown-bank", "no bank 'none'"),
    ("POST", "/spam/items", b"", 422, "invalid-request", "truncated"),
    ("POST", "/spam/items", b"{", 422, "invalid-request", "truncated"),
    ("POST", "/spam/items", b"\xff", 422, "invalid-request", "body cannot be read"),
    ("POST", "/spam/items", {}, 422, "invalid-request", "items"),
    ("POST", "/spam/items", {"items": []}, 422, "invalid-request", "items"),
    ("POST", "/spam/items", MANY, 422, "invalid-request", "Send at most 1000|length <= 1000"),
    ("POST", "/spam/items", {"items": [{}]}, 422, "invalid-request", r"items\[0\]: give either text, or article"),
    ("POST", "/spam/items", {"items": [{"text": LETTERS, "article": "a"}]}, 422, "invalid-request", "either text, or"),
    ("POST", "/spam/items", {"items": [{"article": "none"}]}, 404, "unknown-article", r"items\[0\]: no article 'none'"),
    ("POST", "/spam/items", {"items": [{"text": "short"}]}, 422, "invalid-request", r"items\[0\]: .* 5 letters"),
    ("POST", "/spam/items", {"items": [{"text": LONG}]}, 422, "invalid-request", "the text must have at most 100,000"),
    ("POST", "/spam/items", {"items": [{"text": f"{LETTERS}\0"}]}, 422, "invalid-request", r"\[0\]: text has a NUL"),
    ("POST", "/spam/items", b'{"items": [{"text": "letters \\ud800"}]}', 422, "invalid-request", "body cannot be read"),
    ("POST", "/spam/items", b'{"items": ' + b"[" * 50_000, 422, "invalid-request", "body cannot be read"),
    ("POST", "/spam/items", b'{"items": [{"labels": ' + b"[" * 50_000, 422, "invalid-request", "body cannot be read"),
    ("POST", "/spam/items", b'{"items": [' + b"{}," * 100_000 + b"{}]}", 422, "invalid-request", "values_max = 100000"),
    ("POST", "/spam/items", {"items": [{"item": "a/b", "text": LETTERS}]}, 422, "invalid-request", "the id of an item"),
    ("POST", "/spam/items", {"items": [{"item": "a\n", "text": LETTERS}]}, 422, "invalid-request", "item"),
    ("POST", "/spam/items", {"items": [{"item": "", "text": LETTERS}]}, 422, "invalid-request", "item"),
    ("POST", "/spam/items", {"items": [{"text": LETTERS, "until": "2030-01-01"}]}, 422, "invalid-request", "until"),
    ("POST", "/spam/items", {"items": [{"text": LETTERS, "until": "0001-01-01T00:00:00+01:00"}]}, 422,
     "invalid-request", "until is out of range"),
    ("POST", "/spam/items", {"items": [{"text": LETTERS, "by": "me"}]}, 422, "invalid-request", "unknown field `by`"),
    ("POST", "/notices/items", {"items": [{"text": LETTERS, "similarity": 0.8}]}, 422, "invalid-request", "least 0.9"),
    ("POST", "/spam/items", {"items": [{"item": "a", "text": LETTERS}, {"item": "a", "text": "other letters"}]}, 422,
     "invalid-request", r"items\[1\]: another item of the request has the id 'a'"),
    ("PATCH", "/none/items/offer", {}, 404, "unknown-bank", "no bank"),
    ("PATCH", "/spam/items/none", {}, 404, "unknown-item", "no item"),
    ("PATCH", "/spam/items/offer", {"text": LETTERS}, 422, "invalid-request", "unknown field"),
    ("PATCH", "/spam/items/offer", {"enabled": None}, 422, "invalid-request", "enabled"),
    ("PATCH", "/spam/items/offer", {"confirmed": None}, 422, "invalid-request", "confirmed"),
    ("POST", "/spam/items", {"items": [{"text": LETTERS, "confirmed": True}]}, 422, "invalid-request", "confirmed"),
    ("PATCH", "/spam/items/offer", {"until": "0001-01-01T00:00:00+01:00"}, 422, "invalid-request", "out of range"),
    ("PATCH", "/spam/items/offer", b"[", 422, "invalid-request", "body cannot be read"),
    ("DELETE", "/none/items/offer", None, 404, "unknown-bank", "no bank"),
    ("DELETE", "/spam/items/a%2Fb", None, 422, "invalid-request", "the id of an item must have at most 64"),
]  # fmt: skip


def test_what_is_not_valid_is_refused(service: Fixture) -> None:
    """With a sentence that says what to do; nothing is changed or recorded, and the service goes on."""
    before = service.path.read_bytes()
    for method, path, body, status, kind, detail in REFUSED:
        answer = service.send(method, path, body)
        case = (method, path, answer.data)
        assert (answer.status, answer.json["type"]) == (status, URN + kind), case
        assert re.search(detail, answer.json["detail"]), case
        assert "xxxx" * 100 not in answer.json["detail"], case
    assert service.path.read_bytes() == before
    assert not lines(service.path.with_name("audit.jsonl"))
    assert service.client.limits_met("values_max") == 1


class SlowBanks(BankLog):
    """Banks in memory, which fail or wait while a test says so."""

    def __init__(self, *entries: Entry) -> None:
        self.entries = list(entries)
        self.fault: Exception | None = None
        self.open = threading.Event()
        self.open.set()
        self.calls = 0

    @override
    def read(self) -> NewEntries:
        self._pass()
        return NewEntries(self.entries, is_whole=True)

    @override
    def change(self, change: BankLogChange) -> Sequence[Entry]:
        self._pass()
        entries = change(Banks.of(self.entries))
        self.entries += entries
        return entries

    @override
    def close(self) -> None: ...

    def _pass(self) -> None:
        self.calls += 1
        assert self.open.wait(WAIT_S)
        if self.fault is not None:
            raise self.fault


def test_without_banks_the_setting_is_named(client: Client) -> None:
    """Whatever is asked."""
    service = Fixture(client, Path())
    for answer in (
        service.send("GET", ""),
        service.send("GET", "/spam"),
        service.send("PUT", "/spam", {"action": "deny"}),
        service.send("DELETE", "/spam"),
        service.add("spam", {"text": LETTERS}),
        service.send("PATCH", "/spam/items/a", {}),
        service.send("DELETE", "/spam/items/a"),
    ):
        assert (answer.status, answer.json["type"]) == (404, f"{URN}no-banks")
        assert "Set banks.url" in answer.json["detail"]


def test_who_changes_a_bank_depends_on_its_action(
    window: dupwatch.Window, path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A reviewer changes what is reported, an admin what is never flagged; the log says who was refused, and why."""
    bank_file(path).change(lambda _: [BankItem(bank="notices", item="n", text=LETTERS)])
    tokens, audit = tmp_path / "tokens.json", tmp_path / "audit.jsonl"
    reviewer, admin, both = (
        add(tokens, name, *roles, now=current_time(), owner=name.title())
        for name, roles in (
            ("reviewer", (Role.REVIEWER,)), ("admin", (Role.ADMIN,)), ("both", (Role.REVIEWER, Role.ADMIN)),
        )
    )  # fmt: skip
    allowed = {"spam": (reviewer, both), "notices": (admin, both)}
    caplog.set_level(logging.INFO, "dupwatch")
    with serving_banks(window, bank_file(path), audited(audit), tokens=str(tokens)) as client:
        wait_until_ready(client)
        service = Fixture(client, path)
        for secret in (reviewer, admin, both):
            client.secret = secret
            for bank, needed, item in (("spam", "reviewer", "offer"), ("notices", "admin", "n")):
                for answer in (
                    service.add(bank, {"item": "new", "text": "other letters"}),
                    service.send("PATCH", f"/{bank}/items/{item}", {"note": "x"}),
                    service.send("DELETE", f"/{bank}/items/new"),
                ):
                    if secret in allowed[bank]:
                        assert answer.status == 200
                        continue
                    assert (answer.status, answer.json["type"]) == (403, f"{URN}forbidden")
                    assert f"a token with the role {needed}." in answer.json["detail"]
                    assert answer.headers["www-authenticate"].endswith(f'scope="{needed}"')
    refused = [vars(record)["token"] for record in caplog.records if vars(record).get("refused") == "role"]
    assert sorted(refused) == ["admin"] * 3 + ["reviewer"] * 3
    assert {(line["token"], str(line["id"]).partition("/")[0]) for line in lines(audit)} == {
        ("reviewer", "spam"), ("admin", "notices"), ("both", "spam"), ("both", "notices"),
    }  # fmt: skip
    banks = Banks.of(bank_file(path).read().entries)
    assert {item.by for item in banks.items.values()} <= {"Reviewer", "Admin", "Both"}


def test_only_an_admin_confirms_in_any_bank(window: dupwatch.Window, path: Path, tmp_path: Path) -> None:
    """Also in a bank that denies, where other changes need a reviewer; a refused patch changes nothing."""
    bank_file(path).change(lambda _: [BankItem(bank="notices", item="n", text=LETTERS)])
    tokens = tmp_path / "tokens.json"
    reviewer, admin, both = (
        add(tokens, name, *roles, now=current_time())
        for name, roles in (
            ("reviewer", (Role.REVIEWER,)), ("admin", (Role.ADMIN,)), ("both", (Role.REVIEWER, Role.ADMIN)),
        )
    )  # fmt: skip
    confirmed, and_more = {"confirmed": True}, {"confirmed": True, "note": "n"}
    cases = [
        (reviewer, "spam/items/offer", confirmed, "admin"),
        (reviewer, "spam/items/offer", {"confirmed": False}, "admin"),
        (reviewer, "spam/items/offer", and_more, "admin"),
        (reviewer, "notices/items/n", confirmed, "admin"),
        (admin, "spam/items/offer", and_more, "reviewer"),
        (admin, "spam/items/offer", {}, "reviewer"),
        (admin, "spam/items/offer", confirmed, None),
        (admin, "notices/items/n", and_more, None),
        (both, "spam/items/offer", and_more, None),
        (reviewer, "spam/items/offer", {"note": "m"}, None),
    ]
    with serving_banks(window, bank_file(path), tokens=str(tokens)) as client:
        wait_until_ready(client)
        service = Fixture(client, path)
        for secret, place, patch, needed in cases:
            client.secret, before = secret, path.read_bytes()
            answer = service.send("PATCH", f"/{place}", patch)
            if needed is None:
                assert (answer.status, answer.json["confirmed"]) == (200, True), (place, patch)
            else:
                assert answer.status == 403, (place, patch)
                assert f"a token with the role {needed}." in answer.json["detail"]
                assert path.read_bytes() == before


def test_an_invalid_item_keeps_out_the_others(service: Fixture) -> None:
    """Wherever it stands."""
    good = [{"item": f"i{number}", "text": LETTERS} for number in range(ITEMS_MAX - 1)]
    for bad in ({"text": "no"}, {"article": "none"}, {"text": LETTERS, "similarity": 2}):
        assert service.add("spam", *good, bad).status in {404, 422}
        assert service.banks.items == {OFFER.key: OFFER}
    assert service.add("spam", *good, {"item": "last", "text": LETTERS}).status == 200
    assert len(service.banks.items) == ITEMS_MAX + 1


def test_a_change_that_is_not_recorded_is_not_acknowledged(service: Fixture) -> None:
    """It stays made, and is recorded once it is sent again."""
    audit = service.path.with_name("audit.jsonl")
    audit.unlink()
    audit.mkdir()
    refused = service.add("spam", {"item": "new", "text": LETTERS})
    assert (refused.status, refused.json["type"]) == (503, f"{URN}outcome-unknown")
    assert ("spam", "new") in service.banks.items
    audit.rmdir()
    assert service.add("spam", {"item": "new", "text": LETTERS}).status == 200
    assert [line["id"] for line in lines(audit)] == ["spam/new"]


def test_a_file_that_becomes_invalid_is_no_fault_of_the_client(
    service: Fixture, caplog: pytest.LogCaptureFixture
) -> None:
    """Until it is mended, nothing is shown or changed. The log says what is wrong; the answer does not say where."""
    valid = service.path.read_bytes()
    orphan = encode_entry(BankItem(bank="none", item="x", text=LETTERS)) + b"\n"
    for broken in (b"{\n", valid + b"{\n", valid + orphan):
        caplog.clear()
        service.path.write_bytes(broken)
        for answer in (
            service.send("GET", ""), service.send("GET", "/spam"), service.add("spam", {"text": LETTERS}),
            service.send("PUT", "/spam", {"action": "deny"}),
        ):  # fmt: skip
            assert (answer.status, answer.json["type"]) == (503, f"{URN}banks")
            assert answer.headers["retry-after"] == "5"
            assert str(service.path) not in answer.json["detail"]
        assert service.path.read_bytes() == broken
        told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert told
        assert all("The banks do not answer" in line for line in told)
        service.path.write_bytes(valid)
        assert service.send("GET", "/spam").json["items"][0]["item"] == "offer"
        assert "The banks answer again." in [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(BanksUnreachable("no broker at 10.1.2.3"), "banks"), (ChangeUnknown("half"), "outcome-unknown")],
)
def test_banks_that_are_away_hold_up_nothing_else(
    window: dupwatch.Window, monkeypatch: pytest.MonkeyPatch, fault: Exception, kind: str
) -> None:
    """Others are told to come again, and are answered once the banks are back."""
    monkeypatch.setattr(service_banks, "REFUSAL_S", 0.0)
    banks = SlowBanks(SPAM, OFFER)
    with serving_banks(window, banks) as client:
        wait_until_ready(client)
        service = Fixture(client, Path())
        banks.fault = fault
        answer = service.add("spam", {"item": "new", "text": LETTERS})
        assert (answer.status, answer.json["type"]) == (503, URN + kind)
        assert answer.headers["retry-after"] == "5"
        assert b"10.1.2.3" not in answer.data
        assert client.check({"body": text(1)}).status == 200
        banks.fault = None
        assert service.add("spam", {"item": "new", "text": LETTERS}).status == 200
        assert len(service.send("GET", "/spam").json["items"]) == 2


def test_banks_out_of_reach_are_asked_once_for_all_that_wait(
    window: dupwatch.Window, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of ten requests would wait half a minute for the brokers, one after the other."""
    monkeypatch.setattr(service_banks, "REFUSAL_S", 1_000.0)
    banks = SlowBanks(SPAM, OFFER)
    with serving_banks(window, banks) as client:
        wait_until_ready(client)
        service = Fixture(client, Path())
        banks.fault = BanksUnreachable("no broker")
        banks.open.clear()
        try:
            waiting = [pool.submit(service.send, "GET", "/spam") for _ in range(3)]
            wait_for(lambda: banks.calls == 1, WAIT_S)
        finally:
            banks.open.set()
        answers = [each.result(WAIT_S) for each in waiting]
        answers.append(service.add("spam", {"item": "new", "text": LETTERS}))
        assert {(answer.status, answer.json["type"]) for answer in answers} == {(503, f"{URN}banks")}
        assert banks.calls == 1
        banks.fault = None
        monkeypatch.setattr(service_banks, "REFUSAL_S", 0.0)
        assert service.send("GET", "/spam").status == 200
        monkeypatch.setattr(service_banks, "REFUSAL_S", 1_000.0)
        assert service.send("GET", "/spam").status == 200


def test_banks_that_hang_keep_no_thread_from_checks(window: dupwatch.Window, pool: ThreadPoolExecutor) -> None:
    """Requests about banks take turns, and end after their time; one that changes them may have its effect later."""
    banks = SlowBanks(SPAM)
    with serving_banks(window, banks, threads=1, answer_s=0.5) as client:
        wait_until_ready(client)
        service = Fixture(client, Path())
        banks.open.clear()
        try:
            changing = pool.submit(service.add, "spam", {"item": "new", "text": LETTERS})
            wait_for(lambda: banks.calls == 1, WAIT_S)
            shown = pool.submit(service.send, "GET", "/spam")
            assert client.check({"body": text(1)}).status == 200
            assert client.get("/healthz").status == 200
            refused = changing.result(WAIT_S)
            assert (refused.status, refused.json["type"]) == (503, f"{URN}outcome-unknown")
            assert (refused.json["limit"]["name"], shown.result(WAIT_S).json["type"]) == ("answer_s", f"{URN}banks")
            assert banks.calls == 1
        finally:
            banks.open.set()
        wait_for(lambda: len(service.send("GET", "/spam").json["items"]) == 1, WAIT_S)


def test_changes_at_the_same_time_are_all_made(service: Fixture, pool: ThreadPoolExecutor) -> None:
    """Those of this service take turns, and those of other processes wait for the file."""

    def added(number: int) -> int:
        if number % 4:
            return service.add("spam", {"item": f"i{number}", "text": LETTERS}).status
        item = BankItem(bank="spam", item=f"i{number}", text=LETTERS)
        return 200 if bank_file(service.path).change(lambda _: [item]) else 0

    assert set(pool.map(added, range(40))) == {200}
    assert {item for _, item in service.banks.items} == {"offer", *(f"i{number}" for number in range(40))}
    assert service.send("GET", "/spam").json["bank"]["items"] == 41


def test_a_body_that_is_too_large_or_of_another_type_is_refused(window: dupwatch.Window, path: Path) -> None:
    """Before it is looked at."""
    with serving_banks(window, bank_file(path), body_bytes_max=2_000) as client:
        wait_until_ready(client)
        service = Fixture(client, path)
        large = {"items": [{"text": "x" * 3_000}]}
        for method, target, body in (
            ("POST", "/spam/items", large), ("PUT", "/spam", large), ("PATCH", "/spam/items/offer", large),
        ):  # fmt: skip
            answer = service.send(method, target, body)
            assert (answer.status, answer.json["limit"]["name"]) == (413, "body_bytes_max")
            assert service.send(method, target, {}, content_type="text/plain").status == 415


def test_an_article_without_a_stored_text_is_refused(path: Path, tmp_path: Path) -> None:
    """While the store is away, the client is told to come again; banks do not need it."""
    gate = Gate()
    settings = {"store": {"keep_bodies": False, "durability": "process"}}
    with dupwatch.open(f"lmdb:{tmp_path / 'store'}", settings=settings) as bare:
        bare.judge(dupwatch.Article("a", text(1)))
        with served(judging_of(bare, gate.around(bare._store)), None, None, None, WAIT_S, bank_file(path)) as client:
            wait_until_ready(client)
            service = Fixture(client, path)
            refused = service.add("spam", {"article": "a"})
            assert (refused.status, refused.json["type"]) == (422, f"{URN}invalid-request")
            assert "does not keep the text of 'a'. Send the text itself" in refused.json["detail"]
            gate.is_away = True
            assert service.add("spam", {"article": "a"}).json["type"] == f"{URN}store"
            assert service.send("GET", "/spam").status == 200
