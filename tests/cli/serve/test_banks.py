"""Banks that are changed over HTTP: what is checked and stored next is compared with them."""

import json
from pathlib import Path

from tests.cli.command import FAST, json_lines, run_process, text, wait_for
from tests.cli.serve.service import Process, serving
from tests.unit.service.serving import WAIT_S, Answer


def ask(service: Process, method: str, path: str, body: object) -> Answer:
    """Change a bank."""
    return service.ask(method, f"/v1/banks/{path}", json.dumps(body).encode(), content_type="application/json")


def banks_of(service: Process, body: str) -> list[str]:
    """Return the banks that a text repeats."""
    (result,) = service.check({"body": body}).json["results"]
    return [mention["bank"] for mention in result.get("banks", ())]


def test_a_change_counts_for_checks_and_for_what_is_stored(tmp_path: Path) -> None:
    """At the next look, without a restart; the command shows what was changed, and both have lines in one audit log."""
    banks, audit = tmp_path / "banks.jsonl", tmp_path / "audit.jsonl"
    busy = ("--set", "banks.busy_share=0.5", "--set", "banks.busy_articles_min=2")
    settings = ("--set", f"banks.url={banks}", "--set", f"service.audit={audit}", *busy, *FAST)
    assert run_process("bank", "create", "spam", "--action", "deny", *settings).code == 0
    with serving(f"lmdb:{tmp_path / 'store'}", tmp_path, "--sink", "nowhere:", *settings) as service:
        service.wait_ready()
        assert banks_of(service, text(1)) == []
        assert ask(service, "PUT", "notices", {"action": "allow"}).status == 200
        added = ask(service, "POST", "spam/items", {"items": [{"item": "offer", "text": text(1)}]})
        assert added.status == 200
        assert service.store({"id": "notice", "body": text(2)}).status == 200
        assert ask(service, "POST", "notices/items", {"items": [{"article": "notice"}]}).status == 200
        wait_for(lambda: (banks_of(service, text(1)), banks_of(service, text(2))) == (["spam"], ["notices"]), WAIT_S)
        (verdict,) = service.store({"id": "again", "body": text(2)}).json["results"]
        assert (verdict["outcome"], verdict["banks"][0]["bank"]) == ("unique", "notices")
        shown = 'dupwatch_bank_items_busy{action="allow",bank="notices"}'
        assert service.metric(shown) == 0
        assert service.store({"id": "once more", "body": text(2)}).status == 200
        assert service.metric(shown) == 1
        assert ask(service, "PATCH", "spam/items/offer", {"enabled": False}).status == 200
        wait_for(lambda: banks_of(service, text(1)) == [], WAIT_S)
        assert service.stop() == 0, service.log.read_text()
    items = json_lines(run_process("bank", "show", "spam", "--json", *settings).out)
    assert [(item["item"], item["enabled"], item["by"]) for item in items] == [("offer", False, "this machine")]
    assert [line["action"] for line in json_lines(audit.read_bytes())] == [
        "banks.create", "banks.create", "banks.add", "articles.add", "banks.add", "articles.add", "articles.add",
        "banks.change",
    ]  # fmt: skip


def test_banks_that_cannot_be_opened_keep_it_from_starting(tmp_path: Path) -> None:
    """The sentence names the setting."""
    with serving("memory:", tmp_path, "--set", "banks.url=hbase://x", *FAST) as service:
        assert service.process.wait(WAIT_S) == 2
        assert "banks.url" in service.log.read_text()
