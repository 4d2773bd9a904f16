"""Builds what counts hashes that many articles have, and warms it from the store while a run has begun to judge.

A consumer that has just started knows of no notice that stands in thousands of articles. A part of the window tells it:
stores keep their versions in the order of hashes of ids, so that the first ones are a sample of all.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Final

from consumer.config.config import Config
from consumer.judge.common_hashes import ARTICLES, CommonHashes
from consumer.judge.decision import State, state_of
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Record, Stored

log = logging.getLogger("dupwatch")

_BATCH: Final = 256
_JOIN_S: Final = 10.0


def common_hashes(config: Config) -> CommonHashes | None:
    """Return what counts hashes that many articles have, None where parts are not looked for."""
    return CommonHashes() if config.judge.parts else None


@contextmanager
def warming(store: Store, common: CommonHashes | None) -> Iterator[None]:
    """Count what is in the store, in a thread of its own, as many versions as a sketch has; stop with the context."""
    if common is None:
        yield
        return
    stopped = threading.Event()
    thread = threading.Thread(target=_warm, args=(store, common, stopped), name="common-hashes", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(_JOIN_S)


def _warm(store: Store, common: CommonHashes, stopped: threading.Event) -> None:
    try:
        for records in _kept(store):
            if stopped.is_set():
                return
            common.note(records)
    except StoreError as error:
        # Until it has seen them often enough itself, this run posts notices that others know.
        log.info("What many articles have in common could not be read from the store: %s", error)


def _kept(store: Store) -> Iterator[Sequence[Record]]:
    versions = islice((stored for stored in store.scan() if isinstance(stored, Stored)), ARTICLES)
    while page := list(islice(versions, _BATCH)):
        yield [stored.record for stored in page if state_of(stored) is State.KEPT]
