"""Banks in a topic: changed, followed by consumers, and their matches as events."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import jsonschema
import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient

from consumer.banks.bank import Bank, BankError, BankItem, Banks, BanksMissing, Entry, encode_entry
from consumer.kafka.bank_topic import BankTopic
from consumer.kafka.client_settings import KafkaOptions
from tests.cli.command import SCHEMAS, run_process, text
from tests.kafka.reading import until
from tests.kafka.running import END_S, Running, running
from tests.kafka.topics import Topics, make_topics, read_all, send, wait_for_count
from tests.unit.console.desks import office

pytestmark = pytest.mark.servers

SPAM = Bank(bank="spam", action="deny")
CHANGES = 10
CLIENT_S = 0.5
"""How long a client waits for as many messages as it is asked for, and until a new producer can write."""
OFFER = BankItem(bank="spam", item="offer", text="Win a ferry ticket now")


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own."""
    return make_topics(kafka_address)


@pytest.fixture
def banks(topics: Topics) -> Iterator[BankTopic]:
    """The banks of these topics, which do not exist yet."""
    with closing(opened(topics)) as banks:
        yield banks


def opened(topics: Topics) -> BankTopic:
    """Return the banks as another process would open them."""
    return BankTopic(topics.address, topics.sink("banks"), KafkaOptions())


def whole(topics: Topics) -> Banks:
    """Return the banks as they are."""
    with closing(opened(topics)) as banks:
        return Banks.of(banks.read().entries)


def _has_items(consumer: Running, items: int) -> bool:
    return consumer.metric("dupwatch_bank_items") == items


def _is_missing(topics: Topics) -> bool:
    with closing(opened(topics)) as reading:
        try:
            reading.read()
        except BanksMissing:
            return True
    return False


def test_a_topic_holds_banks_and_is_followed(topics: Topics, banks: BankTopic) -> None:
    """The first change makes the topic; a reader gets all of it, and then what is new; removal takes items along."""
    with pytest.raises(BanksMissing, match="create it with dupwatch bank create"):
        banks.read()
    banks.change(lambda _: [SPAM, OFFER])
    assert banks.read() == ([SPAM, OFFER], True, 0)
    assert banks.read() == ([], False, 0)
    other = BankItem(bank="spam", item="other", text="letters enough")
    with closing(opened(topics)) as writer:
        writer.change(lambda found: [other] if found.items == {OFFER.key: OFFER} else [])
    assert banks.read() == ([other], False, 0)
    banks.change(lambda _: [BankItem(bank="spam", item="offer", removed=True)])
    assert whole(topics).items == {other.key: other}
    banks.change(lambda _: [Bank(bank="spam", removed=True)])
    assert whole(topics) == Banks.of(())
    # Compaction may leave the null of any key alone.
    messages = read_all(topics._replace(partitions=1), topics.sink("banks"))
    assert {message.key for message in messages if message.value is None} == {b"spam", b"spam/offer", b"spam/other"}


def test_neither_a_read_nor_a_further_change_waits_for_a_client(banks: BankTopic) -> None:
    """A service makes one change after the other, and each reads the topic."""
    banks.change(lambda _: [SPAM])
    banks.change(lambda _: [OFFER])
    assert banks.read() == ([SPAM, OFFER], True, 0)
    reads_s, changes_s = [], []
    for number in range(CHANGES):
        item = BankItem(bank="spam", item=f"{number}", text="letters enough")
        began_s = time.monotonic()
        banks.change(lambda _, item=item: [item])  # type: ignore[misc]
        changed_s = time.monotonic()
        assert banks.read() == ([item], False, 0)
        changes_s.append(changed_s - began_s)
        reads_s.append(time.monotonic() - changed_s)
    # Two of each: a single one is quick now and then. Others may be slow for what else the machine does.
    assert sorted(reads_s)[1] < CLIENT_S, reads_s
    assert sorted(changes_s)[1] < CLIENT_S, changes_s


def test_a_change_that_contradicts_the_banks_is_not_sent(topics: Topics, banks: BankTopic) -> None:
    """As with a file."""
    banks.change(lambda _: [SPAM])
    with pytest.raises(BankError, match="no bank 'other'"):
        banks.change(lambda _: [OFFER, BankItem(bank="other", item="x", text="letters")])
    assert len(read_all(topics._replace(partitions=1), topics.sink("banks"))) == 1


def test_messages_of_others_are_left_out(topics: Topics, banks: BankTopic) -> None:
    """They cost nobody else's entries."""
    banks.change(lambda _: [SPAM])
    producer = Producer({"bootstrap.servers": topics.address})
    other = json.dumps({"bank": "spam", "item": "y", "text": "letters"}).encode()
    for key, value in ((b"spam/x", b"{"), (b"spam/x", other), (b"\xff", None)):
        producer.produce(topics.sink("banks"), value, key)
    assert not producer.flush(30)
    banks.change(lambda _: [OFFER])
    assert banks.read() == ([SPAM, OFFER], True, 3)


def test_a_compacted_topic_may_have_a_bank_behind_its_items(topics: Topics, banks: BankTopic) -> None:
    """As after a change of the bank; an item whose bank is gone is left out. Both can be changed again."""
    banks.change(lambda _: [])
    other = BankItem(bank="other", item="x", text="letters enough")
    producer = Producer({"bootstrap.servers": topics.address})
    for key, entry in (("spam/offer", OFFER), ("other/x", other), ("spam", SPAM)):
        producer.produce(topics.sink("banks"), encode_entry(entry), key)
    assert not producer.flush(30)
    assert banks.read() == ([SPAM, OFFER], True, 1)
    added = BankItem(bank="spam", item="more", text="letters enough")
    banks.change(lambda found: [added] if found == Banks.of([SPAM, OFFER]) else [])
    # Now they are held.
    assert banks.read() == ([SPAM, OFFER, added], True, 1)


def test_a_change_reads_what_is_new(topics: Topics, banks: BankTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bank with a million items is read once, and not for each change; the reader gets every entry once."""
    banks.change(lambda _: [SPAM, OFFER])
    banks.change(lambda _: [])
    assert banks.read() == ([SPAM, OFFER], True, 0)
    taken: list[object] = []
    take = BankTopic._decode

    def counting(reading: BankTopic, message: Message) -> Entry | None:
        taken.append(message.key())
        return take(reading, message)

    monkeypatch.setattr(BankTopic, "_decode", counting)
    more = [BankItem(bank="spam", item=f"{number}", text="letters enough") for number in range(3)]
    banks.change(lambda _: [more[0]])
    with closing(opened(topics)) as writer:
        writer.change(lambda _: [more[1]])
    taken.clear()
    banks.change(lambda found: [more[2]] if found == Banks.of([SPAM, OFFER, *more[:2]]) else [])
    assert banks.read() == (more, False, 0)
    assert taken == [b"spam/0", b"spam/1", b"spam/2"]


def test_an_item_of_a_bank_that_was_removed_keeps_nobody_from_changes(topics: Topics, banks: BankTopic) -> None:
    """Another process removed the bank while the item was added; the held banks are as the topic says."""
    banks.change(lambda _: [SPAM, OFFER])
    banks.change(lambda _: [])
    banks.read()
    producer = Producer({"bootstrap.servers": topics.address})
    producer.produce(topics.sink("banks"), None, b"spam")
    producer.produce(topics.sink("banks"), encode_entry(OFFER), b"spam/offer")
    assert not producer.flush(30)
    exams = Bank(bank="exams", action="deny")
    banks.change(lambda found: [exams] if found == Banks.of(()) else [])
    assert banks.read() == ([exams], True, 1)


def test_a_topic_that_was_deleted_is_made_anew(topics: Topics, banks: BankTopic) -> None:
    """Nothing of the one before is held, though its offsets begin again."""
    banks.change(lambda _: [SPAM, OFFER])
    banks.change(lambda _: [])
    banks.read()
    admin = AdminClient({"bootstrap.servers": topics.address})
    (deleted,) = admin.delete_topics([topics.sink("banks")]).values()
    deleted.result(30)
    exams = [Bank(bank=f"exams{number}", action="deny") for number in range(3)]
    until(partial(_is_missing, topics))
    banks.change(lambda found: exams if found == Banks.of(()) else [])
    assert banks.read() == (exams, True, 0)


def test_a_topic_that_was_made_anew_is_read_as_a_whole(topics: Topics, banks: BankTopic) -> None:
    """Its offsets begin again."""
    banks.change(lambda _: [SPAM, OFFER])
    banks.read()
    banks._next = 1_000
    assert banks.read() == ([SPAM, OFFER], True, 0)


def test_the_console_shows_and_changes_a_topic(topics: Topics, banks: BankTopic, tmp_path: Path) -> None:
    """It creates the topic with the first bank, and shows what others have changed."""
    with office(tmp_path, banks=banks) as desk:
        wei = desk.served.signed_in("Wei", "admin")
        assert "There are no banks yet." in wei.get("/banks").shown
        assert wei.send("/banks", bank="spam", action="deny").status == 303
        assert wei.send("/banks/spam/items", text="letters enough").status == 303
        with closing(opened(topics)) as writer:
            writer.change(lambda _: [OFFER])
        assert "2 items" in wei.get("/banks/spam").shown
        assert wei.send("/banks/spam/items/offer/disable").status == 303
        assert not whole(topics).items[OFFER.key].enabled
        assert wei.send("/banks/spam/remove", items="2").status == 303
    assert whole(topics) == Banks.of(())


def test_consumers_follow_their_banks(topics: Topics, tmp_path: Path) -> None:
    """An item counts in all of them within ten seconds; what is denied makes an event, what is allowed no flag."""
    address = ("--banks", topics.sink_url())
    for arguments in (("create", "spam", "--action", "deny"), ("create", "notices", "--action", "allow")):
        assert run_process("bank", *arguments, *address).code == 0
    setting, store = ("--set", f"banks.url={topics.sink_url()}"), f"lmdb:{tmp_path / 'store'}"
    with running(topics, store, tmp_path, *setting) as first, running(topics, store, tmp_path, *setting) as second:
        for consumer in (first, second):
            consumer.wait_ready()
        added = run_process("bank", "add", "spam", "--text", text(1), "--item", "offer", *address)
        assert added.code == 0, added.err
        assert run_process("bank", "add", "notices", "--text", text(2), "--item", "closure", *address).code == 0
        for consumer in (first, second):
            until(partial(_has_items, consumer, 2))
        count = send(topics, [(f"offer {number}", {"body": text(1)}) for number in range(10)])
        count += send(topics, [(f"notice {number}", {"body": text(2)}) for number in range(10)])
        wait_for_count(topics, ("verdicts",), count)
        matched = [consumer.metric("dupwatch_bank_matches_total") for consumer in (first, second)]
        until(lambda: sum(consumer.metric("dupwatch_bank_matches_total") for consumer in (first, second)) == count)
        for consumer in (first, second):
            assert consumer.stop() == 0, consumer.log.read_text()
    assert all(matched), "each has a partition"
    verdicts = {message.content["id"]: message.content for message in read_all(topics, topics.sink("verdicts"))}
    assert {verdict["banks"][0]["item"] for verdict in verdicts.values()} == {"offer", "closure"}
    assert all(verdicts[f"notice {number}"]["outcome"] == "unique" for number in range(10))
    assert sum(verdicts[f"offer {number}"]["outcome"] == "unique" for number in range(10)) == 1
    events = read_all(topics, topics.sink("bank-matches"))
    assert {event.content["id"] for event in events} == {f"offer {number}" for number in range(10)}
    schema = json.loads((SCHEMAS / "bank-match.schema.json").read_text())
    for event in events:
        jsonschema.validate(event.content, schema)
        assert event.key == event.content["id"].encode()
        assert dict(event.headers)["dupwatch-schema"] == b"dupwatch.bank-match/1"


def test_what_is_stored_is_reported_and_released(topics: Topics, tmp_path: Path) -> None:
    """Events about items that are added later; the same bytes when it is repeated, and the clean feed is complete."""
    store = f"lmdb:{tmp_path / 'store'}"
    with running(topics, store, tmp_path, "--set", "kafka.unique=true") as consumer:
        consumer.wait_ready()
        articles = [("offer", text(1)), ("copy", text(1)), ("notice", text(2)), ("notice again", text(2))]
        count = send(topics._replace(partitions=1), [(name, {"body": body}) for name, body in articles])
        wait_for_count(topics, ("verdicts",), count)
        assert consumer.stop() == 0, consumer.log.read_text()
    banks = ("--banks", str(tmp_path / "banks.jsonl"))
    for arguments in (
        ("create", "spam", "--action", "deny"), ("add", "spam", "--text", text(1), "--item", "offer"),
        ("create", "notices", "--action", "allow"), ("add", "notices", "--text", text(2), "--item", "closure"),
    ):  # fmt: skip
        assert run_process("bank", *arguments, *banks).code == 0
    scan = ("bank", "scan", "--yes", "--store", store, "--sink", topics.sink_url(), *banks)
    runs = [run_process(*scan, "--send", "--set", "kafka.unique=true") for _ in range(2)]
    assert [ended.code for ended in runs] == [0, 0], runs[0].err
    assert runs[0].out == runs[1].out
    events = read_all(topics, topics.sink("bank-matches"))
    assert sorted(event.key or b"" for event in events) == [b"copy", b"copy", b"offer", b"offer"]
    schema = json.loads((SCHEMAS / "bank-match.schema.json").read_text())
    for event in events:
        jsonschema.validate(event.content, schema)
        assert event.content["retroactive"] is True
        assert dict(event.headers)["dupwatch-origin-topic"] == topics.source.encode()
    assert len({event.value for event in events}) == 2

    release = (*scan, "--release", "--by", "Kim", "--set", "kafka.unique=true")
    first, again = run_process(*release), run_process(*release)
    assert (first.code, again.code) == (0, 0), first.err
    assert first.out == again.out
    assert ("Released: 1." in first.err, "written again: 1." in again.err) == (True, True)
    released = [each for each in read_all(topics, topics.sink("duplicates")) if each.content["outcome"] == "unique"]
    # Either may have arrived first: the topic has two partitions.
    assert [each.key for each in released] in ([b"notice again"] * 2, [b"notice"] * 2)
    clean = [each for each in read_all(topics, topics.sink("unique")) if each.key == released[0].key]
    assert [each.value is None for each in clean] == [True, False, False]


def test_a_consumer_needs_the_topic(topics: Topics, tmp_path: Path) -> None:
    """The sentence names the command that makes it."""
    with running(topics, "memory:", tmp_path, "--set", f"banks.url={topics.sink_url()}") as consumer:
        assert consumer.process.wait(END_S) == 2
        assert "create it with dupwatch bank create" in consumer.log.read_text()


def test_a_busy_item_does_not_fill_the_topic(topics: Topics, kafka_address: str, tmp_path: Path) -> None:
    """A tenth of twenty articles are two, in a replay too. Once the item is confirmed, all are sent."""
    banks = tmp_path / "banks.jsonl"
    offer = BankItem(bank="spam", item="offer", text=text(1))
    banks.write_bytes(b"".join(encode_entry(entry) + b"\n" for entry in (SPAM, offer)))
    settings = [f"banks.url={banks}", "banks.busy_share=0.1", "banks.busy_articles_min=20"]
    busy = [word for setting in settings for word in ("--set", setting)]
    with running(topics, "memory:", tmp_path, *busy) as consumer:
        consumer.wait_ready()
        count = send(topics, [(f"early {number}", {"body": text(1)}) for number in range(20)])
        until(lambda: consumer.metric("dupwatch_bank_matches_withheld_total") == count - 2)
        assert consumer.metric("dupwatch_bank_items_busy") == 1
        assert consumer.metric("dupwatch_bank_items_unmatched") == 0
        assert "item offer of the bank spam matches too much: 3 of the last" in consumer.log.read_text()
        other = make_topics(kafka_address)
        again = ("--from", "0", "--sink", other.sink_url(), "--store", f"lmdb:{tmp_path / 'again'}", *busy)
        replayed = run_process("replay", "--source", topics.url(), *again)
        assert replayed.code == 0, replayed.err
        assert "matches too much" in replayed.err
        assert len(read_all(other, other.sink("bank-matches"))) == 2
        assert run_process("bank", "confirm", "spam", "offer", "--banks", banks).code == 0
        until(lambda: consumer.metric("dupwatch_bank_items_busy") == 0)
        count += send(topics, [(f"late {number}", {"body": text(1)}) for number in range(20)])
        wait_for_count(topics, ("verdicts",), count)
        assert consumer.stop() == 0, consumer.log.read_text()
        assert "item offer of the bank spam no longer matches too much" in consumer.log.read_text()
    sent = [event.content["id"].partition(" ")[0] for event in read_all(topics, topics.sink("bank-matches"))]
    assert sorted(sent) == ["early"] * 2 + ["late"] * 20
    named = [event.content["banks"][0]["item"] for event in read_all(topics, topics.sink("verdicts"))]
    assert named == ["offer"] * count
