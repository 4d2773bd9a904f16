"""``dupwatch console`` sends to webhooks as its configuration allows, and again after it was killed."""

import subprocess
from pathlib import Path

from sqlalchemy import update

from consumer.reviews.tables import DELIVERIES
from deploy.local.ports import free_ports
from storage.clock import now_ms
from tests.cli.command import FAST, TIMEOUT_S, start
from tests.cli.test_demo import wait_ready
from tests.unit.console.serving import Browser
from tests.unit.reviews.made import database_in
from tests.unit.reviews.webhooks_made import add_webhook, happened, settings, tell, waiting
from tests.unit.webhooks.receivers import Reaction, Received, Receiver, serving

ALLOWED = ("--set", 'console.webhooks={networks = ["127.0.0.0/8"], http = true}')


def test_events_arrive_although_the_console_is_killed(tmp_path: Path) -> None:
    """Right after the receiver has the first one: it comes again under the same number, and then the next."""
    database, (port,) = database_in(tmp_path), free_ports(1)
    processes: list[subprocess.Popen[bytes]] = []

    def kill(received: Received) -> Reaction:
        processes[-1].kill()
        receiver.react = lambda _: Reaction()
        return Reaction()

    def begin() -> None:
        given = ("--store", f"lmdb:{tmp_path / 'store'}", "--sink", tmp_path / "v.jsonl")
        at = (
            "--set",
            f"console.database=sqlite:///{tmp_path / 'console.db'}",
            "--set",
            f"console.listen=127.0.0.1:{port}",
        )
        processes.append(start("console", *given, *at, *ALLOWED, *FAST, stderr=subprocess.DEVNULL))

    with serving(Receiver(0, kill)) as receiver:
        hook = add_webhook(database, settings(url=receiver.url()), now_ms=now_ms())
        tell(database, happened("first", 1), happened("second", 1), now_ms=now_ms())
        try:
            begin()
            receiver.wait_for(1)
            processes[0].wait(TIMEOUT_S)
            assert waiting(database, hook) == [1, 2]
            # What it had claimed would be free again in a minute.
            is_claimed = DELIVERIES.c.due_ms.is_not(None)
            database.write(lambda c: c.execute(update(DELIVERIES).where(is_claimed).values(due_ms=0)))
            begin()
            receiver.wait_for(3)
            address = f"http://127.0.0.1:{port}"
            wait_ready(f"{address}/readyz")
            answer = Browser(address).get("/metrics").text
            while 'dupwatch_console_webhook_deliveries_total{outcome="accepted"} 2.0' not in answer:
                answer = Browser(address).get("/metrics").text
        finally:
            for process in processes:
                process.kill()
                process.communicate()
    assert waiting(database, hook) == []
    database.close()
    said = [received.verify() for received in receiver.received]
    assert said == [{"event": 1, "text": "first"}, {"event": 1, "text": "first"}, {"event": 2, "text": "second"}]
    assert receiver.received[0].message_id == receiver.received[1].message_id
