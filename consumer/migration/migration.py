"""A migration, built and wired: a new store is filled beside the one in force, and takes over where that one stops.

    begin     where each partition's window begins; whether the topic still has it
    rounds    fill up to what the old group has committed, and never beyond; again, until nobody is in the group
    switch    take over what old consumers had settled and not committed; then the new group's offsets are what the
              old group's are, in one request

How far the fill is stands in the new group's offsets, with a note that keeps its consumers from starting. So the
command can end at any moment and be started again. docs/migration.md, docs/decisions/0020.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from consumer.config.config import Config
from consumer.judge.events import shown_time
from consumer.judge.tally import Tally
from consumer.kafka.client_settings import admin_settings, consumer_settings, is_kafka, parse_kafka
from consumer.kafka.groups import FILLING, SWITCHED, Committed, Group, Topics
from consumer.kafka.offset_metadata import Note
from consumer.kafka.offset_range import Ranges
from consumer.lifecycle.stopping import Stopping
from consumer.migration.adopting import Adopted, AdoptingDetector
from consumer.model.article import Article
from consumer.model.dead_letter import DeadLetter
from consumer.model.errors import BadRecord, ConfigError, SourceError, StoreMismatch
from consumer.model.hooks import Hooks
from consumer.model.record import End, Offsets, Partition, RawRecord
from consumer.model.verdict import Verdict
from consumer.pipeline.arrivals import TopicFeed
from consumer.pipeline.loop import Pipeline, distinct_ids
from consumer.sinks.nowhere import Nowhere
from consumer.sources.stretch import StretchSource
from consumer.wiring import parts, stores
from consumer.wiring.kafka_parts import burier, record_decoder
from consumer.wiring.parts import kafka_options
from storage.clock import MS_PER_S, now_ms
from storage.interface import Store
from storage.kinds import same_store
from storage.records import Version

GAP_MS: Final = 60_000
"""Where older messages were deleted, the next one came some time after them: up to this nothing seems to be missing."""
AHEAD_OFFSETS: Final = 200
"""So much of each partition is looked through at once for what old consumers settled and did not commit."""
CAUGHT_UP_S: Final = 5.0
"""A round that takes no longer than this: then the switch takes as long, and the old consumers may be stopped."""
_LOOK_OFFSETS: Final = 200
_LOOK_S: Final = 1.0
_SAVE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Moves:
    """What is moved: the group in force, its store (None: nothing is taken over), and what is put up with."""

    from_group: str
    from_store: str | None
    allow_gap: bool = False


class CaughtUp(NamedTuple):
    """The fill has reached the old group, whose consumers may be stopped."""


class WindowGap(NamedTuple):
    """Part of a window is no longer in the topic, which was allowed; ``sentence`` says which part."""

    sentence: str


def gap_in(partition: Partition, first_ms: int | None, needed_ms: int) -> str | None:
    """What of the window a partition has lost, in a sentence; None where it has it.

    Its first messages were deleted; ``first_ms`` is when the first came that is left, None where none is. A window
    begins at ``needed_ms``.
    """
    where = f"{partition[0]} [{partition[1]}]"
    if first_ms is None:
        return f"{where} has nothing left: all of the window was deleted, or nothing came"
    if first_ms - needed_ms <= GAP_MS:
        return None
    missing_s = (first_ms - needed_ms) // MS_PER_S
    return (
        f"{where} has messages since {shown_time(first_ms)} only: of the window, {missing_s:,} s are missing, unless"
        " nothing came then"
    )


def places_of(
    old: Mapping[Partition, Committed], marks: Mapping[Partition, tuple[int, int]], topics: Sequence[str], group: str
) -> dict[Partition, int]:
    """How far the old group is; a partition that it never had begins where its messages do.

    ``ConfigError`` where it has committed nothing at all.
    """
    if not old:
        raise ConfigError(
            f"the group {group} has committed nothing of {', '.join(topics)}: name the group of the consumers in"
            " force with --from-group"
        )
    return {key: old[key].offset if key in old else low for key, (low, _) in marks.items()}


def filled_places(new: Mapping[Partition, Committed], group: str) -> dict[Partition, int]:
    """How far the fill is, nowhere where it has not begun. ``ConfigError`` where these are no offsets of a fill."""
    others = [key for key, one in new.items() if one.note.migrate != FILLING.migrate]
    if others:
        raise ConfigError(
            f"the group {group} has offsets that no fill has set: it is in use, or was switched before. To begin anew"
            " name another group and an empty store; to go on, start its consumers"
        )
    return {key: one.offset for key, one in new.items()}


class _FillJournal:
    """Keeps how far the fill is, and now and then has the new group's offsets say so."""

    def __init__(self, places: dict[Partition, int], save: Callable[[], None]) -> None:
        self._places = places
        self._save = save
        self._again_s = time.monotonic() + _SAVE_S

    def begin(self, end: End) -> None:
        """There is nobody to ask."""

    def abandon(self) -> None:
        """Nothing that was committed is read twice within a run."""
        raise AssertionError("a batch of a fill was abandoned")

    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:  # noqa: ARG002
        """As the port says; what was not saved is filled again, with the same result."""
        if not isinstance(end, Offsets):
            raise TypeError("the places of a topic are offsets")
        self._places.update(end.next)
        if time.monotonic() >= self._again_s:
            self._save()
            self._again_s = time.monotonic() + _SAVE_S

    def finish(self) -> None:
        """A round has an end of its own."""


@dataclass(slots=True)
class Migration:
    """A migration that is ready to go. ``run`` may be stopped and made again, in another process too."""

    moves: Moves
    topics: Topics
    old: Group
    new: Group
    detector: AdoptingDetector
    hooks: Hooks
    stopping: Stopping
    topic_names: Sequence[str]
    begin_ms: int
    needed_ms: int
    source: Callable[[Ranges], StretchSource]
    pipeline: Callable[[StretchSource, _FillJournal], Pipeline]
    adopt: Callable[[Sequence[RawRecord]], int]
    ahead: int = 0
    _places: dict[Partition, int] = field(default_factory=dict)
    _from: int = 0
    _to: int = 0
    _reading: StretchSource | None = None

    @property
    def tally(self) -> Tally:
        """What it has cost."""
        return self.detector.tally

    @property
    def adopted(self) -> Adopted:
        """What was taken over."""
        return self.detector.adopted

    def progress(self) -> tuple[int, int]:
        """How many offsets were filled since this was started, and how many there are to be by now."""
        under_way = 0 if self._reading is None else self._reading.progress()[0]
        return self._from + under_way, self._to

    def run(self) -> bool:
        """Fill until nobody is in the old group, and switch. False where it was stopped before that.

        Raises ``SourceError``, ``ConfigError``, ``StoreError``.
        """
        told = False
        if self._resume():
            return True
        while not self.stopping.asked():
            began_s = time.monotonic()
            # Asked first: who leaves the group has committed, and so the places that follow are its last.
            empty = self.topics.empty(self.moves.from_group)
            places = self._old_places()
            self._begin(places)
            self._fill(places)
            if empty and self._switch(places):
                return True
            if time.monotonic() - began_s <= CAUGHT_UP_S and not self.stopping.asked():
                if not told:
                    self.hooks.report(CaughtUp())
                    told = True
                self._wait()
        self._save()
        return False

    def _resume(self) -> bool:
        """Go on where the fill was; whether the switch has been made before."""
        marks = self.topics.marks()
        places_of(self.old.committed([*marks]), marks, self.topic_names, self.moves.from_group)
        found = self.new.committed([*marks])
        if found and all(one.note.migrate == SWITCHED.migrate for one in found.values()):
            return True
        self._places.update(filled_places(found, self.new.name))
        gone = {key: place for key, place in self._places.items() if place < marks[key][0]}
        self._heed_gaps(gone, marks)
        self._places.update({key: marks[key][0] for key in gone})
        return False

    def _old_places(self) -> dict[Partition, int]:
        marks = self.topics.marks()
        return places_of(self.old.committed([*marks]), marks, self.topic_names, self.moves.from_group)

    def _begin(self, places: Mapping[Partition, int]) -> None:
        """Have partitions begin a window ago that were not begun before."""
        new = places.keys() - self._places.keys()
        if not new:
            return
        marks = {key: mark for key, mark in self.topics.marks().items() if key in new}
        starts = self.topics.since(marks, self.begin_ms)
        # What is before the first offset is gone, where that one came within the window.
        cut = {key: start for key, start in starts.items() if 0 < start <= marks[key][0]}
        self._heed_gaps(cut, marks)
        self._places.update(starts)
        self._save()

    def _heed_gaps(self, gone: Mapping[Partition, int], marks: Mapping[Partition, tuple[int, int]]) -> None:
        """Refuse, or tell, what of the window was deleted in partitions whose first messages are gone."""
        if not gone:
            return
        first_ms: dict[Partition, int] = {}
        ranges = {key: (marks[key][0], min(marks[key][1], marks[key][0] + _LOOK_OFFSETS)) for key in gone}
        with closing(self.source(ranges)) as source:
            for message in (record.message for batch in source.batches() for record in batch.records):
                if message is not None:
                    first_ms.setdefault((message.topic, message.partition), message.timestamp_ms)
        found = [gap_in(key, first_ms.get(key), self.needed_ms) for key in sorted(gone)]
        gaps = [sentence for sentence in found if sentence is not None]
        if gaps and not self.moves.allow_gap:
            raise SourceError(
                f"{'; '.join(gaps)}. Raise retention.ms and wait, or go on without what is missing: --allow-gap"
            )
        for sentence in gaps:
            self.hooks.report(WindowGap(sentence))

    def _fill(self, places: Mapping[Partition, int]) -> None:
        """Fill up to these places."""
        ranges = {key: (self._places[key], end) for key, end in places.items() if self._places[key] < end}
        if not ranges:
            return
        self._to = self._from + sum(end - start for start, end in ranges.values())
        with closing(self.source(ranges)) as source:
            self._reading = source
            self.pipeline(source, _FillJournal(self._places, self._save)).run()
            self._from += source.progress()[0]
            self._reading = None
        if not self.stopping.asked():
            # The last offsets need not have messages.
            self._places.update({key: end for key, (_, end) in ranges.items()})
        self._save()

    def _switch(self, places: Mapping[Partition, int]) -> bool:
        """Take over, unless the old group has moved on since; then there has to be another round."""
        self._adopt_ahead(places)
        if self.stopping.asked() or not self.topics.empty(self.moves.from_group):
            return False
        marks = self.topics.marks()
        old = self.old.committed([*marks], settled=True)
        if places_of(old, marks, self.topic_names, self.moves.from_group) != places:
            return False
        # What is held by the old group is held by the new one, and the highest arrivals are the same.
        self.new.commit({key: Committed(offset, _switched(old.get(key))) for key, offset in places.items()})
        return True

    def _adopt_ahead(self, places: Mapping[Partition, int]) -> None:
        """Take over what old consumers had settled, perhaps sent, and not committed; as far as there is any."""
        next_places = dict(places)
        while not self.stopping.asked():
            marks = self.topics.marks()
            ranges = {
                key: (at, min(marks[key][1], at + AHEAD_OFFSETS))
                for key, at in next_places.items()
                if at < marks[key][1]
            }
            found = 0
            if ranges:
                with closing(self.source(ranges)) as source:
                    found = sum(self.adopt(batch.records) for batch in source.batches())
            if not found:
                return
            self.ahead += found
            next_places.update({key: end for key, (_, end) in ranges.items()})

    def _save(self) -> None:
        if self._places:
            self.new.commit({key: Committed(offset, FILLING) for key, offset in self._places.items()})

    def _wait(self) -> None:
        until_s = time.monotonic() + _LOOK_S
        while time.monotonic() < until_s and not self.stopping.asked():
            time.sleep(0.1)


def _switched(old: Committed | None) -> Note:
    """The note of a partition after the switch: what the old group has beside its offset, and that this was done."""
    return SWITCHED if old is None else msgspec.structs.replace(old.note, migrate=SWITCHED.migrate)


@contextmanager
def prepared_migration(config: Config, moves: Moves, hooks: Hooks, stopping: Stopping) -> Iterator[Migration]:
    """Build a migration from the configuration of the new consumers, whose group and store these are."""
    _check(config, moves)
    place = parse_kafka(config.source.url)
    asked = admin_settings(place.brokers, kafka_options(config))
    reading = consumer_settings(place.brokers, kafka_options(config))
    with ExitStack() as held:
        lexicon = parts.lexicon_of(config)
        settings = parts.judge_settings(config, lexicon)
        fingerprinting = parts.fingerprinting(config, settings, lexicon)
        held.callback(fingerprinting.close)
        topics = held.enter_context(closing(Topics(asked, place.names)))
        old = held.enter_context(closing(Group(asked, moves.from_group)))
        new = held.enter_context(closing(Group(asked, config.kafka.group)))
        before = None if moves.from_store is None else held.enter_context(_in_force(config, moves.from_store))
        # Where no broker answers, no store is made.
        topics.marks()
        store = held.enter_context(stores.opened_store(config))
        stores.bind(store, settings)
        detector = AdoptingDetector(store, settings, now_ms, before=before)
        decode, builder = record_decoder(config), parts.version_builder(settings)
        feed = TopicFeed(now_ms, int(config.kafka.ahead_s_max * MS_PER_S), hooks)

        def source(ranges: Ranges) -> StretchSource:
            return StretchSource(reading, place.names, parts.read_limits(config), ranges, stopping.asked)

        def pipeline(source: StretchSource, journal: _FillJournal) -> Pipeline:
            return Pipeline(
                source=source,
                decode=decode,
                bury=burier(source.name),
                fingerprinting=fingerprinting,
                builder=builder,
                feed=feed,
                detector=detector,
                sink=Nowhere(),
                journal=journal,
                hooks=hooks,
                stopping=stopping,
                keep_ms=config.lifetime_s * MS_PER_S,
                postings_watch=config.judge.postings_watch,
            )

        def adopt(records: Sequence[RawRecord]) -> int:
            articles = list(_bodied(records, decode))
            if not articles:
                return 0
            made = fingerprinting.submit(
                [article.body or "" for _, article in articles], [article.lang for _, article in articles]
            ).result()
            came = [feed.came(record, article) for record, article in articles]
            versions = builder.versions([article for _, article in articles], came, made.fingerprints)
            parts = ([one for one in part if isinstance(one, Version)] for part in distinct_ids(versions))
            return sum(len(detector.adopt(part)) for part in parts)

        began_ms = now_ms()
        yield Migration(
            moves=moves,
            topics=topics,
            old=old,
            new=new,
            detector=detector,
            hooks=hooks,
            stopping=stopping,
            topic_names=place.names,
            begin_ms=began_ms - config.lifetime_s * MS_PER_S,
            needed_ms=began_ms - settings.window_ms,
            source=source,
            pipeline=pipeline,
            adopt=adopt,
        )


def _check(config: Config, moves: Moves) -> None:
    if not is_kafka(config.source.url):
        raise ConfigError("a migration follows topics: name them with --source kafka://HOST:PORT/TOPIC")
    if not stores.outlives_run(config):
        raise ConfigError(f"name the new store: {stores.STORE_EXAMPLES}")
    if config.kafka.group == moves.from_group:
        raise ConfigError(
            f"{moves.from_group} is the group of the consumers in force: name another for the new ones, --group"
        )
    if moves.from_store is not None and same_store(config.store.url, moves.from_store):
        raise ConfigError(f"{moves.from_store} is the store in force: name another one, an empty one, with --store")


@contextmanager
def _in_force(config: Config, url: str) -> Iterator[Store]:
    """The store of the old consumers, which is only read."""
    theirs = config.model_copy(update={"store": config.store.model_copy(update={"url": url})})
    with stores.opened_store(theirs, readonly=True) as store:
        if store.settings() is None:
            raise StoreMismatch(f"{url} is empty: it cannot be the store of the consumers in force")
        yield store


def _bodied(
    records: Sequence[RawRecord], decode: Callable[[RawRecord], Article]
) -> Iterator[tuple[RawRecord, Article]]:
    for record in records:
        try:
            article = decode(record)
        except BadRecord:
            continue
        if article.body is not None:
            yield record, article
