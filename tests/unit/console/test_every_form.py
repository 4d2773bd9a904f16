"""Every field of every form is given hostile text, and no page that comes of it has any markup of it.

The forms are found on the pages themselves, by following all links and sending all forms, so that a new field is tested
from the beginning.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from html import unescape
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode
from sqlalchemy import func, select

from consumer.console.app import ROUTES
from consumer.fingerprint import BlockPlan
from consumer.judge.settings import JudgeSettings
from consumer.reviews import floods, people
from consumer.reviews.moderation.reasons import add_reason
from consumer.reviews.outbox import webhooks
from consumer.reviews.tables import FLAGS
from tests.stored_texts import StoreOfTexts
from tests.unit.banks.test_known_texts import edited, written
from tests.unit.console.archives import Archive
from tests.unit.console.banks import bank, bank_file, item
from tests.unit.console.desks import Office, office
from tests.unit.console.newsroom import BEGAN_MS, article
from tests.unit.console.serving import Answer
from tests.unit.reviews.webhooks_made import SECRET, add_webhook, settings

HOSTILE: Final = "\"'><img src=x onerror=alert(1)>{{7*7}}%(x)s';DROP TABLE flags;--"
NOTICE: Final = written(1, 100)
COPIES: Final = 4
SETTINGS: Final = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="")
_NUMBER: Final = re.compile(r"\d+")
_ENDS_THE_VISIT: Final = re.compile("/sign-out$|/people/1/")
"""What Ann would do to her own session or account."""
_FREE: Final = frozenset(["text", "search", "password"])
"""Types of inputs into which people write what they like."""


Kind = tuple[str, str, tuple[str, ...]]
"""The method of a form, its address without numbers, and its fields."""


class Form(NamedTuple):
    """What a form sends if nothing is changed in it. ``free`` are the fields for free text."""

    method: str
    action: str
    fields: dict[str, str]
    free: tuple[str, ...]

    @property
    def kind(self) -> Kind:
        """What forms have in common that are tested once."""
        return self.method, _NUMBER.sub("N", self.action), tuple(sorted(self.fields))

    def sendings(self) -> Iterator[dict[str, str]]:
        """Yield what to send: hostile text in all free fields together, and then in each field alone."""
        if self.free:
            yield self.fields | dict.fromkeys(self.free, HOSTILE)
        for name in self.fields.keys() - {"token"}:
            yield self.fields | {name: HOSTILE}
        yield self.fields


def forms_of(tree: LexborHTMLParser) -> Iterator[Form]:
    """Yield the forms of a page, one for each button with a name."""
    for node in tree.css("form"):
        named = [each for each in node.css("input, textarea, select") if each.attributes.get("name")]
        if identity := node.attributes.get("id"):
            named += tree.css(f'input[form="{identity}"]')
        fields = {str(each.attributes["name"]): value_of(each) for each in named}
        free = [
            str(each.attributes["name"])
            for each in named
            if each.tag == "textarea" or (each.tag == "input" and (each.attributes.get("type") or "text") in _FREE)
        ]
        method, action = (node.attributes.get("method") or "get").upper(), node.attributes.get("action") or ""
        buttons = [each.attributes for each in node.css("button") if each.attributes.get("name")]
        for sent in [{str(each["name"]): each.get("value") or ""} for each in buttons] or [{}]:
            yield Form(method, action, fields | sent, tuple(free))


def value_of(node: LexborNode) -> str:
    """Return what a field is sent with: of a list its last choice."""
    if node.tag == "textarea":
        return node.text()
    if node.tag == "select":
        return unescape(str(node.css("option")[-1].attributes.get("value") or ""))
    return unescape(node.attributes.get("value") or "")


@dataclass
class Visitor:
    """An admin who follows every link and sends every form, until there is none of another kind."""

    desk: Office
    waiting: deque[str] = field(default_factory=lambda: deque(["/"]))
    seen: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)
    sent: dict[Kind, str] = field(default_factory=dict)
    removals: list[Form] = field(default_factory=list)
    """Forms that are sent when there is nothing else: what they remove has pages."""

    def visit_all(self) -> None:
        """Go on until nothing is left."""
        while self.waiting or self.removals:
            if not self.waiting:
                self._send(self.removals.pop())
                continue
            href = self.waiting.popleft()
            parts = urlsplit(href)
            # One page of each kind: with hostile text in their queries there would be no end of them.
            kind = _NUMBER.sub("N", parts.path), tuple(sorted({name for name, _ in parse_qsl(parts.query)}))
            if kind not in self.seen and not parts.netloc and parts.path.startswith("/"):
                self.seen.add(kind)
                self._read(self.desk.ann.get(f"{parts.path}?{parts.query}"))

    def _read(self, answer: Answer) -> None:
        """Check a page, note its links, and send its forms."""
        if answer.status == 303:
            # What was changed shows there, with other forms than before.
            self._read(self.desk.ann.get(answer.header("location")))
            return
        assert answer.status < 500, answer.shown
        if not answer.header("content-type").startswith("text/html"):
            return
        tree = LexborHTMLParser(answer.text)
        check_harmless(tree)
        self.waiting.extend(unescape(str(node.attributes.get("href"))) for node in tree.css("a[href]"))
        for form in forms_of(tree):
            if form.kind not in self.sent and not _ENDS_THE_VISIT.match(form.action):
                self.sent[form.kind] = form.action
                if form.action.endswith("/remove"):
                    self.removals.append(form)
                else:
                    self._send(form)

    def _send(self, form: Form) -> None:
        for fields in form.sendings():
            if form.method == "POST":
                self._read(self.desk.ann.post(form.action, fields))
            else:
                self._read(self.desk.ann.get(f"{form.action}?{urlencode(fields)}"))


def check_harmless(tree: LexborHTMLParser) -> None:
    """Fail where a page has an element or an attribute that only hostile text could have put there."""
    assert tree.css("img, iframe, base, object, embed, main script, svg script, [onerror]") == []


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Office]:
    """A console with a flood, another story, a near miss, a missed copy, banks, a reason, a webhook, and Bob.

    Ann is an admin.
    """
    archive = Archive(StoreOfTexts())
    names = [f"copy-{number}" for number in range(COPIES)]
    archive.made.judge(dict.fromkeys(["kept", *names], NOTICE), BEGAN_MS)
    archive.made.judge({"missed": edited(NOTICE, 14)}, BEGAN_MS)
    entries = bank("spam"), item("spam", "notice", NOTICE), bank("notices", "allow"), item("notices", "notice", NOTICE)
    banks = bank_file(tmp_path / "banks.jsonl", *entries)
    with office(tmp_path, judging=SETTINGS, banks=banks, comparable=archive, undo_s=600) as opened:
        database = opened.served.database
        database.write(lambda c: people.set_role(c, 1, "admin"))
        database.write(partial(add_reason, name="Timetable"))
        # Nothing is ever sent there: it is an address for documentation.
        hook = add_webhook(database, settings(url="https://192.0.2.1/"))
        database.write(lambda c: webhooks.rotate(c, hook, SECRET, opened.served.clock()))
        opened.served.add("Bob")
        opened.ann.get("/banks")
        archive.flag(opened.room, NOTICE, "kept", *names)
        # With texts, which pages offer to add to a bank.
        opened.room.hold(*(replace(view, body=NOTICE) for view in archive.views("kept", "missed", *names)))
        missed, kept = archive.views("missed", "kept")
        opened.room.near_miss(missed, kept, 0.7)
        opened.room.flag(article("other-copy"), article("other"))
        story_id = opened.room.row("copy-0").story_id
        database.write(lambda c: floods.note_floods(c, [story_id], BEGAN_MS, 600, COPIES))
        yield opened


def test_no_field_makes_markup(desk: Office) -> None:
    """Nor does it end a query of the database; every route that takes a form has been sent one."""
    visitor = Visitor(desk)
    # A form that names another story, one that has an article already, and one that is there while flags are open that
    # the item could release.
    other = f"/stories/{desk.room.row('copy-0').story_id}/merge?other=other"
    visitor.waiting.extendleft([other, "/look-up/report?one=missed", "/banks/notices/items/notice/release"])
    visitor.visit_all()
    with desk.served.database.read_connection() as connection:
        assert connection.execute(select(func.count()).select_from(FLAGS)).scalar_one() == COPIES + 2
    posted = {action for (method, _, _), action in visitor.sent.items() if method == "POST"}
    routes = {route.path for route in ROUTES if route.method == "POST"}
    patterns = {path: re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path)) for path in routes}
    missing = {path for path, pattern in patterns.items() if not any(map(pattern.fullmatch, posted))}
    # A script sends the third one.
    assert missing == {"/sign-in", "/sign-out", "/flags/{flag_id:int}/leave"}, sorted(missing)
