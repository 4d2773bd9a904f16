"""The factory of pipelines for each kind of run and for migrations."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from consumer.banks.busy_items import BusyItems
from consumer.banks.known_texts import KnownTexts
from consumer.config.config import Config
from consumer.judge.binding import Binding
from consumer.judge.common_hashes import ARTICLES, CommonHashes
from consumer.judge.decision import VersionState, state_of
from consumer.judge.detector import Detector
from consumer.judge.expiry import Expiry
from consumer.judge.judge import Judge
from consumer.judge.near_misses import NearMisses
from consumer.judge.search import LOOK_UP_BYTES_MAX
from consumer.judge.settings import JudgeSettings
from consumer.lifecycle.interruption import UNINTERRUPTED, Interruption
from consumer.lifecycle.retry import NoRetry, RetryPolicy
from consumer.lifecycle.stopping import StopSignal
from consumer.model.article import Article
from consumer.model.hooks import Hooks
from consumer.model.ports import Sink, Source
from consumer.model.record import RawRecord
from consumer.pipeline.arrivals import Arrivals
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.journal import Journal
from consumer.pipeline.loop import Pipeline, reply_to_nobody
from consumer.pipeline.side_by_side import SideBySide
from consumer.wiring.banks import matcher_of
from consumer.wiring.components import common_hashes, version_builder
from consumer.wiring.feeds import is_followed
from consumer.workers.pool import Fingerprinting
from storage.clock import MS_PER_S, now_ms
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Record, StoredVersion
from storage.watched import WatchedStore

log = logging.getLogger("dupwatch")

_BATCH: Final = 256
_JOIN_S: Final = 10.0


@contextmanager
def warming(store: Store, common: CommonHashes | None) -> Iterator[None]:
    """Count the hashes of the store's first versions in a thread, until it has enough or the context ends.

    A newly started consumer does not know which notices appear in thousands of articles. It learns that from the store:
    LMDB and HBase scan versions in the order of hashes of ids, so the first versions are a random sample.
    """
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
        for records in _kept_records(store):
            if stopped.is_set():
                return
            common.note(records)
    except StoreError as error:
        # Until this run has seen such notices often enough itself, it posts them.
        log.info("The texts that many articles share could not be read from the store: %s", error)


def _kept_records(store: Store) -> Iterator[Sequence[Record]]:
    versions = islice((stored for stored in store.scan() if isinstance(stored, StoredVersion)), ARTICLES)
    while page := list(islice(versions, _BATCH)):
        yield [stored.record for stored in page if state_of(stored) is VersionState.KEPT]


@dataclass(frozen=True, slots=True)
class JudgingParts:
    """The parts of a run that judge. With ``side_by_side``, the partitions of a batch are judged at the same time.

    ``busy_items`` decides which bank matches are withheld; without it, all are sent.
    """

    bound: Binding
    fingerprinting: Fingerprinting
    detector: Judge
    side_by_side: SideBySide | None = None
    busy_items: BusyItems | None = None


@dataclass(frozen=True, slots=True)
class PipelinePorts:
    """The source of records with its decoder, arrivals and journal, and the sinks of verdicts and dead letters.

    ``reply`` answers clients that wait for their verdicts.
    """

    source: Source
    decode: Callable[[RawRecord], Article]
    arrivals: Arrivals
    sink: Sink
    dead_letters: DeadLetterPolicy
    journal: Journal
    reply: Callable[[], None] = reply_to_nobody


@dataclass(frozen=True, slots=True)
class Control:
    """The parts that stop, interrupt and delay a run.

    By default a run stops only between two batches, and does not wait for its store.
    """

    stopping: StopSignal
    interruption: Interruption = UNINTERRUPTED
    retry: RetryPolicy = field(default_factory=NoRetry)


def build_pipeline(
    config: Config, judging: JudgingParts, ports: PipelinePorts, control: Control, hooks: Hooks
) -> Pipeline:
    """Build a pipeline. The caller closes its parts."""
    return Pipeline(
        source=ports.source,
        decode=ports.decode,
        fingerprinting=judging.fingerprinting,
        builder=version_builder(judging.bound),
        arrivals=ports.arrivals,
        detector=judging.detector,
        sink=ports.sink,
        dead_letters=ports.dead_letters,
        journal=ports.journal,
        reply=ports.reply,
        hooks=hooks,
        stopping=control.stopping,
        expiry=Expiry(judging.detector, now_ms, judging.bound.settings.window_ms, config.lifetime_s * MS_PER_S),
        postings_watch=config.judge.postings_watch,
        retry=control.retry,
        interruption=control.interruption,
        side_by_side=judging.side_by_side,
        busy_items=judging.busy_items,
    )


def interruptible_detector(  # noqa: PLR0913  # the parts of a detector
    store: Store,
    settings: JudgeSettings,
    interruption: Interruption,
    config: Config,
    *,
    judges: int = 1,
    common: CommonHashes | None = None,
    known: KnownTexts | None = None,
) -> Detector:
    """Return a detector that can be interrupted before each call to the store, for up to ``judges`` threads at a time.

    The detector shares ``common`` with other detectors, if given, and finds ``known`` texts.
    """
    return Detector(
        WatchedStore.interruptible(store, interruption.while_judging),
        settings,
        now_ms,
        look_up_bytes_max=LOOK_UP_BYTES_MAX // judges,
        seen_ms=config.seen_s * MS_PER_S,
        common=common or common_hashes(config),
        near_misses=_near_misses(config, settings),
        with_bank_matches=matcher_of(known),
    )


def _near_misses(config: Config, settings: JudgeSettings) -> NearMisses | None:
    """Return the sampler of near misses; None if none are sent. Only topics get near misses."""
    if not config.kafka.near_miss_share or not is_followed(config):
        return None
    return NearMisses(settings, config.kafka.near_miss_share, config.kafka.near_miss_margin)
