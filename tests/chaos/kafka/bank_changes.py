"""Clients that add items to banks over HTTP and remove them, and repeat requests with an unknown outcome."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from http.client import HTTPException
from typing import Final, NamedTuple, Self

from consumer.banks.bank import ItemKey
from storage.clock import now_ms
from tests.chaos.kafka.bank_answers import Change, Life
from tests.chaos.kafka.feed_message import FeedMessage
from tests.chaos.kafka.hostile_values import json_value, words
from tests.unit.service.serving import Answer, Client

OK: Final = 200
UNAVAILABLE: Final = 503
_AGAIN_S: Final = 0.2
_PATIENCE_S: Final = 180.0
"""Longer than all that is killed at a time needs to come back."""
_LIVES_S: Final = (1.0, 36.0)
"""Some items are gone before all consumers follow them; most are there for longer."""
_WAYS: Final = ("items", "disabled", "bank")
"""How a batch is removed: item by item, or disabled like that, or with its bank."""
_WEIGHTS: Final = (1, 1, 4)
_BATCHES_APART: Final = (-1, 0, 0, 0, 1)
_GROUPS_FROM: Final = 1_000_000
"""Copies are groups of the known feed, whose own groups have lower numbers."""


class Size(NamedTuple):
    """How many items there are: each client has a bank and adds so many batches to it, one after the other."""

    clients: int
    batches: int
    batch_items: int

    @property
    def items(self) -> int:
        """All of them."""
        return self.clients * self.batches * self.batch_items


class BankItems:
    """The items of a run and their copies; the same seed makes the same items."""

    def __init__(self, seed: str, size: Size) -> None:
        self._size = size
        self._chance = random.Random(f"copies {seed}")
        self.texts: Sequence[str] = [words(random.Random(f"item {seed} {number}")) for number in range(size.items)]
        self.batch_of_client = [0] * size.clients
        """The latest batch of each client, near which copies are made."""

    def batch(self, client: int, batch: int) -> range:
        """Return the numbers of the items of a batch."""
        start = (client * self._size.batches + batch) * self._size.batch_items
        return range(start, start + self._size.batch_items)

    def key(self, number: int) -> ItemKey:
        """Return the bank and the item."""
        return bank_name(number // (self._size.batches * self._size.batch_items)), str(number)

    def next(self, before: Sequence[FeedMessage]) -> FeedMessage:
        """Return a copy of one item of a client: of the latest batch, the one before it, or the next one."""
        client = self._chance.randrange(self._size.clients)
        batch = self.batch_of_client[client] + self._chance.choice(_BATCHES_APART)
        number = self._chance.choice(self.batch(client, min(max(batch, 0), self._size.batches - 1)))
        body = self._copy(self.texts[number])
        name = f"copy {len(before)}"
        return FeedMessage(name.encode(), json_value(f"Title of {name}", body), _GROUPS_FROM + number, body)

    def copied(self, message: FeedMessage) -> ItemKey | None:
        """Return the item of which a message is a copy, None if it is of none."""
        if message.group is None or message.group < _GROUPS_FROM:
            return None
        return self.key(message.group - _GROUPS_FROM)

    def _copy(self, text: str) -> str:
        """Return a text that is equal to an item, similar to it, or contains it."""
        form = self._chance.choice(("equal", "similar", "part"))
        if form == "equal":
            return text
        if form == "part":
            return f"{words(self._chance, 20)} {text} {words(self._chance, 20)}"
        parts = text.split()
        parts[self._chance.randrange(len(parts))] = words(self._chance, 1)
        return " ".join(parts)


class BankChanges(AbstractContextManager["BankChanges"]):
    """A thread for each client. ``service`` returns the service that runs now.

    ``ends`` counts how requests ended: a status, a type of problem, or "no answer". ``allow`` says how far clients may
    go: they would be at the end before the last kill otherwise.
    """

    def __init__(self, service: Callable[[], Client], items: BankItems, size: Size, seed: str) -> None:
        self.lives: dict[ItemKey, Life] = {}
        self.ends: Counter[str] = Counter()
        self._service = service
        self._items = items
        self._size = size
        self._seed = seed
        self._allowed = 1
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._pool = ThreadPoolExecutor(size.clients)
        self._clients: list[Future[None]] = []

    def __enter__(self) -> Self:
        """Begin."""
        self._clients = [self._pool.submit(self._run, client) for client in range(self._size.clients)]
        return self

    def __exit__(self, *_: object) -> None:
        """End what is left."""
        self._over.set()
        self.allow(self._size.batches)
        self._pool.shutdown()

    def allow(self, batches: int) -> None:
        """Let clients begin with so many batches."""
        with self._changed:
            self._allowed = max(self._allowed, batches)
            self._changed.notify_all()

    def check(self) -> None:
        """Raise what ended a client."""
        for client in self._clients:
            if client.done():
                client.result()

    def finish(self) -> None:
        """Wait until all items were added and removed."""
        self.allow(self._size.batches)
        for client in self._clients:
            client.result(_PATIENCE_S)

    def _run(self, client: int) -> None:
        chance = random.Random(f"client {self._seed} {client}")
        for batch in range(self._size.batches):
            with self._changed:
                assert self._changed.wait_for(lambda batch=batch: batch < self._allowed, _PATIENCE_S)  # type: ignore[misc]
            if self._over.is_set():
                return
            self._items.batch_of_client[client] = batch
            numbers = self._items.batch(client, batch)
            self._add(client, numbers)
            self._over.wait(chance.uniform(*_LIVES_S))
            self._remove(client, numbers, chance.choices(_WAYS, _WEIGHTS)[0])

    def _add(self, client: int, numbers: Sequence[int]) -> None:
        path = f"/v1/banks/{bank_name(client)}"
        self._until_answered("PUT", path, {"action": "deny"})
        items = [{"item": str(number), "text": self._items.texts[number]} for number in numbers]
        added = self._until_answered("POST", f"{path}/items", {"items": items})
        for number in numbers:
            self.lives[self._items.key(number)] = Life(added)

    def _remove(self, client: int, numbers: Sequence[int], way: str) -> None:
        path = f"/v1/banks/{bank_name(client)}"
        if way != "bank":
            for number in numbers:
                item = f"{path}/items/{number}"
                removed = (
                    self._until_answered("DELETE", item)
                    if way == "items"
                    else self._until_answered("PATCH", item, {"enabled": False})
                )
                self._note_removal([number], removed)
        if way != "items":
            # Disabled items were removed already; with the bank they are gone.
            removed = self._until_answered("DELETE", path)
            if way == "bank":
                self._note_removal(numbers, removed)

    def _note_removal(self, numbers: Sequence[int], removed: Change) -> None:
        for number in numbers:
            key = self._items.key(number)
            self.lives[key] = self.lives[key]._replace(removed=removed)

    def _until_answered(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Change:
        """Ask until the outcome is known. Returns when it was asked for first, and when it was answered."""
        data = None if body is None else json.dumps(body).encode()
        requested_ms, until_s = now_ms(), time.monotonic() + _PATIENCE_S
        while True:
            answer = self._ask(method, path, data)
            if answer is not None and answer.status == OK:
                self._count("200")
                return Change(requested_ms, now_ms())
            self._count("no answer" if answer is None else _problem(answer))
            assert answer is None or answer.status == UNAVAILABLE, (method, path, answer)
            assert time.monotonic() < until_s, f"{method} {path} was not answered: {answer}"
            assert not self._over.is_set(), "the run has ended"
            self._over.wait(_AGAIN_S)

    def _ask(self, method: str, path: str, data: bytes | None) -> Answer | None:
        try:
            return self._service().ask(method, path, data, content_type="application/json")
        except (OSError, HTTPException):
            return None

    def _count(self, end: str) -> None:
        with self._changed:
            self.ends[end] += 1


def bank_name(client: int) -> str:
    """Return the name of a client's bank."""
    return f"bank-{client}"


def _problem(answer: Answer) -> str:
    """Return the type of a problem, without its prefix."""
    return str(answer.json["type"]).rpartition(":")[2]
