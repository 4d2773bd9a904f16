"""The topic of banks: a compacted topic with one partition, so that all changes are in order.

The key of a message is ``BANK`` or ``BANK/ITEM``. Its value is an entry in JSON, or null for a removed bank or item, so
compaction keeps the last entry of each.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as ClientMessage
from typing_extensions import override

from consumer.banks.bank import (
    BankError,
    BankItem,
    Banks,
    BanksMissing,
    BanksUnreachable,
    ChangeUnknown,
    Entry,
    decode_entry,
    encode_entry,
)
from consumer.banks.bank_log import READ_S, BankLog, BankLogChange, NewEntries
from consumer.kafka.client_settings import KafkaOptions, admin_settings, consumer_settings, producer_settings
from consumer.kafka.clients import broker_request, new_consumer, new_producer
from consumer.kafka.errors import describe, topic_missing
from consumer.kafka.offset_range import watermarks
from consumer.kafka.topics import PlannedTopic, Shape, init
from consumer.model.errors import SinkError

_POLL_S: Final = 0.5
_NEW_TOPIC_S: Final = 2.0
_CONSUME_MAX: Final = 1_000
_PARTITION: Final = 0
_SHAPE: Final = Shape(partitions=1, replication=None)
_CONSUMER_SETTINGS: Final[Mapping[str, Any]] = {"group.id": "none", "enable.partition.eof": False}


def planned_banks(topic: str) -> PlannedTopic:
    """Return the plan of the topic, which keeps the last entry of each bank and item for ever."""
    return PlannedTopic(
        topic,
        {"cleanup.policy": "compact", "retention.ms": "-1", "max.message.bytes": str(2 << 20)},
        may_compact=True,
        compaction="yes: the last message of a key is the current state of a bank or an item",
    )


class BankTopic(BankLog):
    """The banks in a topic, without invalid messages. ``change`` creates a missing topic.

    After the first change it keeps the banks in memory, so that later changes read only new messages.
    """

    def __init__(self, brokers: str, topic: str, options: KafkaOptions) -> None:
        self._brokers = brokers
        self._topic = topic
        self._options = options
        self._consumer: Consumer | None = None
        # Kept open, because a new producer needs half a second before it can write.
        self._producer: Producer | None = None
        self._next = 0
        self._banks: Banks | None = None
        self._unread = NewEntries([], is_whole=False)

    @override
    def read(self) -> NewEntries:
        self._update()
        unread, self._unread = self._unread, NewEntries([], is_whole=False)
        return unread

    @override
    def change(self, change: BankLogChange) -> Sequence[Entry]:
        try:
            (report,) = init(admin_settings(self._brokers, self._options), [planned_banks(self._topic)], _SHAPE)
        except SinkError as error:
            raise BanksUnreachable(str(error)) from error
        if report.created:
            # Messages of an earlier topic with this name no longer count.
            self._restart()
        banks = Banks.of(()) if report.created else self._current()
        entries = change(banks)
        # Refuses entries that contradict the banks.
        banks.after(entries)
        with broker_request(self._brokers, f"the topic of banks {self._topic} cannot be written", BanksUnreachable):
            self._write([message for entry in entries for message in _messages(entry, banks)])
        return entries

    @override
    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        self._producer = None
        self._banks, self._unread = None, NewEntries([], is_whole=False)

    def _current(self) -> Banks:
        """Return the current banks. Raises ``BankError``."""
        if self._banks is None:
            # Earlier messages were not kept, so the whole topic is read; the next ``read`` returns all of it again.
            self._restart()
        self._update(keep_banks=True)
        assert self._banks is not None  # noqa: S101  # set by _update
        return self._banks

    def _restart(self) -> None:
        """Make the next reading begin with the first message."""
        producer = self._producer
        self.close()
        self._producer = producer

    def _update(self, *, keep_banks: bool = False) -> None:
        """Read new messages, or the whole topic. Raises ``BankError``; the next reading then uses another client."""
        try:
            with broker_request(self._brokers, f"the topic of banks {self._topic} cannot be read", BanksUnreachable):
                new = self._read()
                keep_banks = keep_banks or self._banks is not None
                if keep_banks and not new.is_whole and not self._apply(new.entries):
                    # Another process removed the bank of a new item. Reading the whole topic leaves such items out.
                    self._restart()
                    new = self._read()
            if new.is_whole:
                self._banks = Banks.of(new.entries) if keep_banks else None
                self._unread = new
            else:
                entries, invalid = [*self._unread.entries, *new.entries], self._unread.invalid + new.invalid
                self._unread = self._unread._replace(entries=entries, invalid=invalid)
        except BankError:
            self.close()
            raise

    def _apply(self, entries: Sequence[Entry]) -> bool:
        """Apply entries to the banks in memory. Return whether they fit; if not, nothing changes."""
        assert self._banks is not None  # noqa: S101  # the caller checks it
        try:
            self._banks = self._banks.after(entries) if entries else self._banks
        except BankError:
            return False
        return True

    def _read(self) -> NewEntries:
        is_whole = self._consumer is None
        if self._consumer is None:
            self._consumer = new_consumer({**consumer_settings(self._brokers, self._options), **_CONSUMER_SETTINGS})
        if is_whole:
            self._require_topic(self._consumer)
        low, high = watermarks(self._consumer, self._topic, _PARTITION, READ_S)
        if is_whole or self._next > high:
            # This is the first reading, or the topic was recreated and ends before the next offset.
            is_whole, self._next = True, low
            self._consumer.assign([TopicPartition(self._topic, _PARTITION, OFFSET_BEGINNING)])
        entries: list[Entry] = []
        invalid = 0
        until_s = time.monotonic() + READ_S
        while self._next < high:
            # The client waits until it has as many messages as requested.
            messages = self._consumer.consume(min(_CONSUME_MAX, high - self._next), _POLL_S)
            for message in messages:
                entry = self._decode(message)
                if entry is None:
                    invalid += 1
                else:
                    entries.append(entry)
            if messages:
                until_s = time.monotonic() + READ_S
            else:
                # Compaction may have removed the last messages; the client's position is then after them.
                (place,) = self._consumer.position([TopicPartition(self._topic, _PARTITION)])
                self._next = max(self._next, place.offset)
            if time.monotonic() > until_s:
                raise BanksUnreachable(f"the topic of banks {self._topic} delivered no message for {READ_S:g} s")
        if is_whole:
            entries, orphans = _compact(entries)
            invalid += orphans
        return NewEntries(entries, is_whole, invalid)

    def _require_topic(self, consumer: Consumer) -> None:
        # A new topic takes a moment to appear.
        until_s = time.monotonic() + _NEW_TOPIC_S
        while topic_missing(consumer, self._topic):
            if time.monotonic() > until_s:
                raise BanksMissing(
                    f"there is no topic {self._topic} at {self._brokers}; create it with dupwatch bank create"
                )
            time.sleep(_NEW_TOPIC_S / 10)

    def _decode(self, message: ClientMessage) -> Entry | None:
        """Return the entry of a message; None for an invalid one, so that one bad message does not hide the others."""
        error = message.error()
        if error is not None:
            raise KafkaException(error)
        self._next = (message.offset() or 0) + 1
        try:
            return _decode_entry(message.key(), message.value())
        except BankError:
            return None

    def _write(self, messages: Sequence[tuple[bytes, bytes | None]]) -> None:
        refused: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: ClientMessage) -> None:
            if error is not None:
                refused.append(error)

        producer = self._open_producer()
        for key, value in messages:
            while True:
                try:
                    producer.produce(self._topic, value, key, _PARTITION, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(_POLL_S)
        # The client gives up on a message after READ_S.
        producer.flush(2 * READ_S)
        if refused or len(producer):
            # Drop the producer, so that the messages left in its queue are not written later.
            self._producer = None
            why = describe(refused[0]) if refused else f"the brokers did not answer within {2 * READ_S:g} s"
            raise ChangeUnknown(
                f"the change to the topic of banks {self._topic} may be incomplete: {why}; make the change again"
            )

    def _open_producer(self) -> Producer:
        if self._producer is None:
            settings = producer_settings(self._brokers, self._options, transactional=False)
            self._producer = new_producer({**settings, "message.timeout.ms": int(READ_S * 1_000)})
        return self._producer


def _compact(entries: Sequence[Entry]) -> tuple[list[Entry], int]:
    """Return the last entry of each existing bank and item, banks first, and the number of items without a bank.

    Banks come first, because the last entry of a changed bank comes after those of its items. Items without a bank
    are left out. An item has no bank if another process removed the bank while the item was added.
    """
    last = {(entry.bank, entry.item if isinstance(entry, BankItem) else None): entry for entry in entries}
    left = [entry for entry in last.values() if not entry.removed]
    banks = [entry for entry in left if not isinstance(entry, BankItem)]
    names = {bank.bank for bank in banks}
    items = [entry for entry in left if isinstance(entry, BankItem) and entry.bank in names]
    return [*banks, *items], len(left) - len(banks) - len(items)


def _messages(entry: Entry, banks: Banks) -> Sequence[tuple[bytes, bytes | None]]:
    """Return the messages of an entry; removing a bank removes its items too."""
    value = None if entry.removed else encode_entry(entry)
    if isinstance(entry, BankItem):
        return [(f"{entry.bank}/{entry.item}".encode(), value)]
    items = [f"{bank}/{item}".encode() for bank, item in banks.items if entry.removed and bank == entry.bank]
    return [*((key, None) for key in items), (entry.bank.encode(), value)]


def _decode_entry(key: bytes | None, value: bytes | None) -> Entry:
    """Return the entry of a message. Raises ``BankError`` if it is invalid, or has the key of another entry."""
    bank, _, item = (key or b"").decode(errors="replace").partition("/")
    if value is None:
        names = {"bank": bank, "item": item} if item else {"bank": bank}
        value = msgspec.json.encode(names | {"removed": True})
    entry = decode_entry(value)
    if (entry.bank, entry.item if isinstance(entry, BankItem) else "") != (bank, item):
        raise BankError("its key names another bank or item")
    return entry
