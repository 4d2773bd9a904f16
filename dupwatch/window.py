"""A window over what came before: ask about texts, judge articles, undo flags."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count, repeat
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.fingerprint import Engine, TextKind
from consumer.judge import events
from consumer.judge.detector import Detector
from consumer.judge.expiry import Expiry
from consumer.judge.judge import QueryResult
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model import article as model
from consumer.model.errors import BadRecord
from consumer.model.hooks import Hooks
from consumer.model.limits import KEY_CHARS_MAX
from consumer.model.submission import RequestOrigin
from consumer.model.verdict import BankMention, EndedBefore, Part, SeenBefore, Verdict
from consumer.pipeline.loop import distinct_ids
from consumer.store_tools.releases import Attribution, releasable
from consumer.store_tools.releases import release as release_version
from consumer.wiring.banks import followed_banks, matcher_of
from consumer.wiring.components import (
    body_form,
    common_hashes,
    decode_limits,
    engine,
    field_map,
    judge_settings,
    lexicon_of,
    version_builder,
)
from consumer.wiring.stores import bind, completed_config, opened_store
from dupwatch.articles import Article, Checked, article_of, checked_by
from dupwatch.errors import Error, InvalidArticle, translated
from storage.clock import MS_PER_S, now_ms
from storage.interface import Store
from storage.records import Record, Version

_BATCH: Final = 256

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Repeated:
    """A stored version that a text repeats, and what they share.

    ``version`` names it in events. ``distance`` is in bits; ``similarity`` is None where the store judges by
    fingerprints alone. ``shared_keywords`` begin with the heaviest.
    """

    id: str
    version: str
    title: str
    distance: int
    similarity: float | None
    shared_keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """What a text would repeat if it arrived now: the best match first, none where it would be unique.

    ``truncated`` says that a limit cut the search short, ``pending`` that a near version is still being judged by
    another process, so that the answer may change. ``seen_before`` says when the same text came earlier than the
    window, where ``judge.seen_days`` is set; ``parts`` what it shares with others, where ``judge.parts`` is.
    ``ended_before`` is a near article that was retracted or replaced, said only of a text that repeats nothing.
    ``banks`` are the known texts that it repeats, where ``banks.url`` is set; what a bank allows repeats nothing.
    ``text_kind`` says how the text is compared, as the ``kind`` of a fingerprint does: a ``short`` one repeats only
    texts with equal letters and digits.
    """

    repeats: tuple[Repeated, ...]
    truncated: bool
    pending: bool
    seen_before: SeenBefore | None = None
    parts: tuple[Part, ...] = ()
    ended_before: EndedBefore | None = None
    banks: tuple[BankMention, ...] = ()
    text_kind: str = "long"

    @property
    def outcome(self) -> str:
        """Return ``duplicate`` or ``unique``."""
        return "duplicate" if self.repeats else "unique"


class Window:
    """The articles of a store, and the judge that compares with them. Made by ``dupwatch.open``.

    Any number of processes may have windows on one store, and threads may share a window: their calls take turns.
    """

    def __init__(self, store: str, config: Path | None, settings: Mapping[str, Mapping[str, Any]]) -> None:
        overrides = {section: dict(values) for section, values in settings.items()}
        overrides["store"] = overrides.get("store", {}) | {"url": store}
        with translated(), ExitStack() as resources:
            configured = load_config(config, overrides)
            lexicon = lexicon_of(configured)
            self._config: Config = completed_config(configured)
            judged_by: JudgeSettings = judge_settings(self._config, lexicon)
            times = field_map(self._config).times
            self._checked: Checked = checked_by(decode_limits(self._config), body_form(self._config), times)
            self._store: Store = resources.enter_context(opened_store(self._config))
            bound = bind(self._store, judged_by, self._config)
            known = resources.enter_context(followed_banks(self._config, bound, lexicon, Hooks()))
            self._engine: Engine = engine(self._config, bound, lexicon, known=known)
            self._builder: VersionBuilder = version_builder(bound)
            self._detector = Detector(
                self._store,
                judged_by,
                now_ms,
                seen_ms=self._config.seen_s * MS_PER_S,
                common=common_hashes(self._config),
                with_bank_matches=matcher_of(known),
            )
            lifetime_ms = self._config.lifetime_s * MS_PER_S
            self._expiry = Expiry(self._detector, now_ms, judged_by.window_ms, lifetime_ms)
            self._expiry.begin()
            self._lock = Lock()
            self._sequence = count()
            self._latest_ms = 0
            self._closed = False
            self._resources = resources.pop_all()

    def check(
        self, texts: str | Article | Mapping[str, Any] | Iterable[str | Article | Mapping[str, Any]]
    ) -> list[Check]:
        """Return for each text what it would repeat if it arrived now. Stores nothing.

        An article, or a mapping with its fields, is not compared with earlier versions of its own id; a text alone has
        no id. Raises ``InvalidArticle`` and ``StoreError``.
        """
        asked = _with_places(texts, (str, Article, Mapping))
        with self._used():
            valid = [
                self._valid(Article(uuid.uuid4().hex, each) if isinstance(each, str) else each, place)
                for place, each in asked
            ]
            return [check for part in _batches(valid) for check in self._check(part)]

    def judge(
        self,
        articles: Article | Mapping[str, Any] | Iterable[Article | Mapping[str, Any]],
        *,
        key: str | None = None,
    ) -> list[Verdict]:
        """Judge articles in their order, and store them; return a verdict on each.

        Each is an ``Article``, or a mapping with its fields. An article that was judged before, by whatever process,
        gets the same verdict again, byte for byte. With a ``key``, an article whose text ended, because its id got
        another text or was retracted, is in force again, and judged again, unless a call with the same key already did
        that. All articles are checked before the first is stored. Raises ``InvalidArticle``, ``StoreError``, and
        ``Error`` for a key that is empty, over 128 characters or not valid Unicode; after a ``StoreError`` call again
        with the same articles and key.
        """
        given = _with_places(articles, (Article, Mapping))
        with self._used():
            _check_key(key)
            valid = [self._valid(article, place) for place, article in given]
            # All callers of a store are one owner.
            request = None if key is None else RequestOrigin("", key)
            origins = [request and request.of_article(place) for place in range(len(valid))]
            parts = zip(_batches(valid), _batches(origins), strict=True)
            return [verdict for part, part_origins in parts for verdict in self._judge(part, part_origins)]

    def release(
        self, article_id: str, *, version: str | None = None, by: str | None = None, reason: str | None = None
    ) -> Verdict:
        """Undo a flag: the article counts as unique, and is not flagged against the same article again.

        ``version`` is one that an event names, by default the latest. Who did it, and why, is in the verdict. Releasing
        again returns the same verdict. Raises ``ConfigError`` where the article is not stored or not flagged, and
        ``StoreError``.
        """
        with self._used():
            attribution = Attribution(by, reason)
            flagged = releasable(self._store, article_id, version)
            return release_version(self._store, flagged, attribution, now_ms).verdict

    def close(self) -> None:
        """Close the store. A window that is closed cannot be used again; closing it again does nothing."""
        with self._lock:
            self._closed = True
            self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Wait until other threads are done, and raise what callers know."""
        with translated(), self._lock:
            if self._closed:
                raise Error("this window is closed; open another one")
            yield

    def _check(self, articles: Sequence[model.Article]) -> list[Check]:
        asked = self._versions(articles)
        found = self._detector.query(asked)
        return [_check_of(version.record, result) for version, result in zip(asked, found, strict=True)]

    def _judge(self, articles: Sequence[model.Article], origins: Sequence[RequestOrigin | None]) -> list[Verdict]:
        arrived = self._versions(articles, origins)
        verdicts = [event.verdict for part in distinct_ids(arrived) for event in self._detector.judge(part)]
        # What has left the window goes, as in a run.
        self._expiry.sweep(self._latest_ms, len(arrived))
        return verdicts

    def _versions(
        self, articles: Sequence[model.Article], origins: Iterable[RequestOrigin | None] = repeat(None)
    ) -> list[Version]:
        fingerprints = self._engine.fingerprint(
            [article.body or "" for article in articles], [article.lang for article in articles]
        )
        # Arrivals never go back, whatever the clock does.
        self._latest_ms = max(self._latest_ms, now_ms())
        arrivals = [
            ArrivalTime(self._latest_ms, next(self._sequence), feed=origin and origin.owner, key=origin and origin.key)
            for _, origin in zip(articles, origins, strict=False)
        ]
        return self._builder.versions(articles, arrivals, fingerprints)

    def _valid(self, given: Article | Mapping[str, Any], place: int | None = None) -> model.Article:
        if not isinstance(given, (Article, Mapping)):
            raise TypeError(f"{type(given).__name__} is not a dupwatch.Article or a mapping")
        try:
            return self._checked(given if isinstance(given, Article) else article_of(given))
        except BadRecord as error:
            article_id = given.id if isinstance(given, Article) else given.get("id")
            raise InvalidArticle("" if article_id is None else article_id, error.reason, error.detail, place) from error


def open(  # noqa: A001  # as gzip.open
    store: str, *, config: str | Path | None = None, settings: Mapping[str, Mapping[str, Any]] | None = None
) -> Window:
    """Open a window on a store: ``memory:``, ``lmdb:DIRECTORY`` or ``hbase://HOST:PORT/NAMESPACE``.

    ``config`` is a file as ``dupwatch run --config`` takes it; ``settings`` are laid over it, by section and name, for
    example ``{"judge": {"similarity_min": 0.9}}``. Environment variables count too. What neither names is as in the
    store. Use it in a ``with`` statement, or call ``close``. Raises ``ConfigError`` and ``StoreError``.
    """
    return Window(store, None if config is None else Path(config), settings or {})


def _check_key(key: str | None) -> None:
    if key is None:
        return
    if not 0 < len(key) <= KEY_CHARS_MAX:
        raise Error(f"a key has 1 to {KEY_CHARS_MAX} characters, not {len(key)}")
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise Error(f"the key {key!r} is not UTF-8") from error


def _with_places(given: Any, one: tuple[type, ...]) -> list[tuple[int | None, Any]]:  # noqa: ANN401  # of a caller
    """Return the items of a call, each with its place among several; None for a single one."""
    return [(None, given)] if isinstance(given, one) else list(enumerate(given))


def _batches(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))


def _check_of(record: Record, found: QueryResult) -> Check:
    repeats = tuple(
        Repeated(
            id=match.record.id,
            version=events.version_name(match.record.reference),
            title=match.record.title,
            distance=match.distance,
            similarity=events.rounded(match.similarity),
            shared_keywords=events.shared_keywords(record, match.record),
        )
        for match in found.matches
    )
    ended_before = None if repeats else found.ended_before
    return Check(
        repeats,
        found.truncated,
        found.pending,
        found.seen_before,
        found.parts,
        ended_before,
        found.banks,
        TextKind(record.kind).label,
    )
