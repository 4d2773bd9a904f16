"""The latest flags of a run, with both articles as the store has them, and the texts that came back most often.

A run only notes its verdicts. The store is read when somebody asks, by a separate thread, at most five times a second:
a request waits a moment for it, the run never does. Every store may be used by several threads.
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
"""How long a request waits for the store."""
_FRESH_S: Final = 1.0
"""How long an answer of the store is used, unless a new flag comes."""
_PAUSE_S: Final = 0.2
_CLOSE_S: Final = 2.0
RETURNING_SHOWN: Final = 5
_RETURNING_MAX: Final = 1_000
"""Of more texts, those that came most often are kept."""


class FlagArticle(NamedTuple):
    """One of the two articles of a flag.

    ``ended_at`` is when another version replaced it or its article was retracted, None while it is in force.
    """

    record: Record
    arrived_at: str
    ended_at: str | None = None


class Flag(NamedTuple):
    """A flag, and both articles as the store has them; None if it has none, or was not read yet."""

    reference: bytes
    verdict: Verdict
    article: FlagArticle | None
    original: FlagArticle | None
    released: bool


class ReturnedText(NamedTuple):
    """A text that came back: the latest article with it, when it came first and last, and at least how often."""

    id: str
    first: str
    last: str
    times: int


class LatestSnapshot(NamedTuple):
    """Flags, newest first. ``seen`` is their total number; ``trouble`` says why some are shown without articles.

    ``returning`` are the texts that came back most often, flagged or not.
    """

    flags: tuple[Flag, ...]
    seen: int
    began_at: str
    trouble: str | None
    returning: tuple[ReturnedText, ...] = ()


class ReturningTexts:
    """Holds the texts that came back, in bounded memory; not thread-safe.

    Texts are told apart by when they came first and by their fingerprint: an event has no digest of its text.
    """

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str | None], ReturnedText] = {}

    def note(self, verdicts: Iterable[Verdict]) -> None:
        """Note those of the verdicts that say that their text was seen before."""
        for verdict in verdicts:
            seen = verdict.seen_before
            if isinstance(seen, SeenBefore):
                # With this article the text came once more.
                returned = ReturnedText(verdict.id, seen.first, verdict.arrived_at, seen.times + 1)
                key = seen.first, verdict.fingerprint
                known = self._texts.get(key)
                if known is None or returned.times >= known.times:
                    self._texts[key] = returned
        if len(self._texts) > 2 * _RETURNING_MAX:
            self._texts = dict(nlargest(_RETURNING_MAX, self._texts.items(), key=lambda item: item[1].times))

    def most(self) -> tuple[ReturnedText, ...]:
        """Return those that came most often, the most frequent first."""
        return tuple(nlargest(RETURNING_SHOWN, self._texts.values(), key=attrgetter("times")))


class LatestFlags:
    """Holds the latest ``flags_max`` flags of a run; may be asked from any thread.

    ``failed`` is called each time the store cannot be read.
    """

    def __init__(self, flags_max: int, began_ms: int, failed: Callable[[], None]) -> None:
        self.flags_max = flags_max
        self._began_at = rfc3339(began_ms)
        self._failed = failed
        self._changed = threading.Condition()
        self._flags: dict[bytes, Verdict] = {}
        self._seen = 0
        self._returning = ReturningTexts()
        # Only the reading thread writes this, whole.
        self._stored: Mapping[bytes, StoredVersion] = {}
        self._trouble: str | None = "The store has not been read yet."
        self._asked = 0
        self._answered = 0
        self._answered_s = -_FRESH_S
        self._seen_when_read = 0
        self._closing = False
        self._thread: threading.Thread | None = None

    def listen(self, hooks: Hooks) -> None:
        """Note the flags that are committed from now on."""
        hooks.on(BatchCommitted, self._note)

    def _note(self, batch: BatchCommitted) -> None:
        flags = [verdict for verdict in batch.verdicts if verdict.outcome == "duplicate"]
        with self._changed:
            self._seen += len(flags)
            self._returning.note(batch.verdicts)
            for flag in flags[-self.flags_max :]:
                reference = reference_in(flag.id, flag.version)
                # A flag that is judged again becomes the newest.
                self._flags.pop(reference, None)
                self._flags[reference] = flag
            while len(self._flags) > self.flags_max:
                del self._flags[next(iter(self._flags))]

    def read_from(self, store: Store) -> None:
        """Start to look up articles in this store; called once."""
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
        """Return the current flags, with articles read within the last second, or within ``wait_s`` from now."""
        with self._changed:
            if self._thread is not None and not self._is_fresh():
                asked = self._asked = self._asked + 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closing or self._answered >= asked, wait_s)
            flags = list(reversed(self._flags.items()))
            trouble = self._trouble
            if trouble is None and self._asked > self._answered:
                trouble = "The store has not answered yet."
            return LatestSnapshot(
                tuple(self._flag(reference, verdict) for reference, verdict in flags),
                self._seen,
                self._began_at,
                trouble,
                self._returning.most(),
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
        while self._wait_for_question():
            with self._changed:
                # What is asked or flagged after this may be missing from the answer.
                asked, seen = self._asked, self._seen
            trouble = self._read(store)
            with self._changed:
                self._trouble = trouble
                self._answered, self._seen_when_read = asked, seen
                self._answered_s = time.monotonic()
                self._changed.notify_all()

    def _wait_for_question(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._asked > self._answered)
            pause_s = self._answered_s + _PAUSE_S - time.monotonic()
            self._changed.wait_for(lambda: self._closing, max(pause_s, 0))
            return not self._closing

    def _read(self, store: Store) -> str | None:
        """Read the articles that the flags name; return what went wrong, None if nothing did."""
        with self._changed:
            references = sorted({*self._flags, *map(original_of, self._flags.values())})
        try:
            found = store.read(references)
        except StoreError as error:
            log.info("The articles of the latest flags could not be read: %s", error)
            self._failed()
            return "The store could not be read."
        except Exception:
            # The thread has to survive: the next attempt may succeed.
            log.exception("The articles of the latest flags could not be read")
            self._failed()
            return "The store could not be read; the log says why."
        with self._changed:
            pairs = zip(references, found, strict=True)
            self._stored = {reference: stored for reference, stored in pairs if stored is not None}
        return None
