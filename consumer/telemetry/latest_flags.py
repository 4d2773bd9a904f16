"""The latest flags of a run with both stored articles, and the texts that came back most often.

The run only notes its verdicts. A separate thread reads the store on request, at most five times a second. A request
waits up to a second for this thread; the run never waits. Stores are thread-safe.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from heapq import nlargest
from operator import attrgetter
from typing import Final, NamedTuple

from consumer.judge.events import original_of, reference_in
from consumer.model.hooks import Hooks
from consumer.model.verdict import SeenBefore, Verdict
from consumer.pipeline.batches import BatchCommitted
from consumer.text.timestamps import rfc3339
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Record, StoredVersion

log = logging.getLogger("dupwatch")

WAIT_S: Final = 1.0
"""How many seconds a request waits for the store."""
_FRESH_S: Final = 1.0
"""How many seconds results from the store are reused, unless a new flag comes."""
_PAUSE_S: Final = 0.2
_CLOSE_S: Final = 2.0
RETURNING_SHOWN_MAX: Final = 5
_RETURNING_MAX: Final = 1_000
"""When there are more than twice as many texts, only this many are kept: the texts that came most often."""


class FlagArticle(NamedTuple):
    """One of the two articles of a flag.

    ``ended_at`` is the time at which the version was replaced or retracted, None while it is in force.
    """

    record: Record
    arrived_at: str
    ended_at: str | None = None


class Flag(NamedTuple):
    """A flag and both stored articles. An article is None if it is not stored, or not read yet."""

    reference: bytes
    verdict: Verdict
    article: FlagArticle | None
    original: FlagArticle | None
    released: bool


class ReturnedText(NamedTuple):
    """A text that came back: the id of its latest article, its first and last arrival, and its number of arrivals.

    ``times`` is a lower bound; the text may have arrived more often.
    """

    id: str
    first: str
    last: str
    times: int


class LatestSnapshot(NamedTuple):
    """The latest flags, newest first. ``seen`` counts all flags; ``trouble`` says why articles may be missing.

    ``returning`` are the texts that came back most often, flagged or not.
    """

    flags: tuple[Flag, ...]
    seen: int
    began_at: str
    trouble: str | None
    returning: tuple[ReturnedText, ...] = ()


class ReturningTexts:
    """The texts that came back, in bounded memory. Not thread-safe.

    Texts are distinguished by their first arrival and their fingerprint, because events have no digest of the text.
    """

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str | None], ReturnedText] = {}

    def note(self, verdicts: Iterable[Verdict]) -> None:
        """Note the verdicts whose text was seen before."""
        for verdict in verdicts:
            seen = verdict.seen_before
            if isinstance(seen, SeenBefore):
                # One more, for this article.
                returned = ReturnedText(verdict.id, seen.first, verdict.arrived_at, seen.times + 1)
                key = seen.first, verdict.fingerprint
                known = self._texts.get(key)
                if known is None or returned.times >= known.times:
                    self._texts[key] = returned
        if len(self._texts) > 2 * _RETURNING_MAX:
            self._texts = dict(nlargest(_RETURNING_MAX, self._texts.items(), key=lambda item: item[1].times))

    def most_frequent(self) -> tuple[ReturnedText, ...]:
        """Return at most ``RETURNING_SHOWN_MAX`` texts that came back, the most frequent first."""
        return tuple(nlargest(RETURNING_SHOWN_MAX, self._texts.values(), key=attrgetter("times")))


class LatestFlags:
    """The latest ``flags_max`` flags of a run, for any thread.

    ``on_failure`` is called each time the store cannot be read. ``began_ms`` is the start of the run.
    """

    def __init__(self, flags_max: int, began_ms: int, on_failure: Callable[[], None]) -> None:
        self.flags_max = flags_max
        self._began_at = rfc3339(began_ms)
        self._on_failure = on_failure
        self._changed = threading.Condition()
        self._flags: dict[bytes, Verdict] = {}
        self._seen = 0
        self._returning = ReturningTexts()
        # Only the reading thread replaces this mapping.
        self._stored: Mapping[bytes, StoredVersion] = {}
        self._trouble: str | None = "The store has not been read yet."
        self._requests = 0
        self._answered = 0
        self._answered_s = -_FRESH_S
        self._seen_when_read = 0
        self._closing = False
        self._thread: threading.Thread | None = None

    def listen(self, hooks: Hooks) -> None:
        """Note the verdicts committed from now on."""
        hooks.on(BatchCommitted, self._note)

    def _note(self, batch: BatchCommitted) -> None:
        flags = [verdict for verdict in batch.verdicts if verdict.outcome == "duplicate"]
        with self._changed:
            self._seen += len(flags)
            self._returning.note(batch.verdicts)
            for flag in flags[-self.flags_max :]:
                reference = reference_in(flag.id, flag.version)
                # A flag whose article is judged again becomes the newest.
                self._flags.pop(reference, None)
                self._flags[reference] = flag
            while len(self._flags) > self.flags_max:
                del self._flags[next(iter(self._flags))]

    def read_from(self, store: Store) -> None:
        """Start looking up articles in this store. Called once."""
        self._thread = threading.Thread(target=self._run, args=(store,), name="flags", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading the store."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)

    def latest(self, wait_s: float = WAIT_S) -> LatestSnapshot:
        """Return the current flags. Wait up to ``wait_s`` for their articles, unless the articles were just read."""
        with self._changed:
            if self._thread is not None and not self._is_fresh():
                request = self._requests = self._requests + 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closing or self._answered >= request, wait_s)
            flags = list(reversed(self._flags.items()))
            trouble = self._trouble
            if trouble is None and self._requests > self._answered:
                trouble = "The store has not answered yet."
            return LatestSnapshot(
                tuple(self._flag(reference, verdict) for reference, verdict in flags),
                self._seen,
                self._began_at,
                trouble,
                self._returning.most_frequent(),
            )

    def _is_fresh(self) -> bool:
        return self._seen == self._seen_when_read and time.monotonic() - self._answered_s < _FRESH_S

    def _flag(self, reference: bytes, verdict: Verdict) -> Flag:
        stored = self._stored.get(reference)
        return Flag(
            reference,
            verdict,
            self._flag_article(reference),
            self._flag_article(original_of(verdict)),
            released=stored is not None and stored.released_from is not None,
        )

    def _flag_article(self, reference: bytes) -> FlagArticle | None:
        stored = self._stored.get(reference)
        if stored is None:
            return None
        ended_at = None if stored.ends_at is None else rfc3339(stored.ends_at.time_ms)
        return FlagArticle(stored.record, rfc3339(stored.record.time_ms), ended_at)

    def _run(self, store: Store) -> None:
        while self._wait_for_request():
            with self._changed:
                # Later requests and flags may be missing from the result.
                requests, seen = self._requests, self._seen
            trouble = self._read(store)
            with self._changed:
                self._trouble = trouble
                self._answered, self._seen_when_read = requests, seen
                self._answered_s = time.monotonic()
                self._changed.notify_all()

    def _wait_for_request(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._requests > self._answered)
            pause_s = self._answered_s + _PAUSE_S - time.monotonic()
            self._changed.wait_for(lambda: self._closing, max(pause_s, 0))
            return not self._closing

    def _read(self, store: Store) -> str | None:
        """Read the articles that the flags name. Return a sentence about a failure, or None."""
        with self._changed:
            references = sorted({*self._flags, *map(original_of, self._flags.values())})
        try:
            found = store.read(references)
        except StoreError as error:
            log.info("The articles of the latest flags could not be read: %s", error)
            self._on_failure()
            return "The store could not be read."
        except Exception:
            # The thread must survive, because the next attempt may succeed.
            log.exception("The articles of the latest flags could not be read")
            self._on_failure()
            return "The store could not be read; the log says why."
        with self._changed:
            pairs = zip(references, found, strict=True)
            self._stored = {reference: stored for reference, stored in pairs if stored is not None}
        return None
