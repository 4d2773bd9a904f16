"""Windows: check texts against earlier articles, judge articles, and undo flags."""

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
from consumer.pipeline.loop import parts_with_distinct_ids
from consumer.store_tools.releases import Attribution, releasable_version
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
from dupwatch.articles import Article, ArticleChecker, article_checker, article_from
from dupwatch.errors import Error, InvalidArticle, public_errors
from storage.clock import MS_PER_S, now_ms
from storage.interface import Store
from storage.records import Record, Version

_BATCH: Final = 256

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Repeated:
    """A stored version that a text repeats.

    ``version`` is its name in events. ``distance`` is in bits. ``similarity`` is from 0 to 1, or None if the store
    judges by fingerprints alone. ``shared_keywords`` are heaviest first.

    >>> with open("memory:") as window:
    ...     _ = window.judge({"id": "w1", "title": "Ferries", "body": "The first ferry left at noon."})
    ...     (check,) = window.check("The first ferry left at noon.")
    >>> check.repeats[0].id, check.repeats[0].title
    ('w1', 'Ferries')
    """

    id: str
    version: str
    title: str
    distance: int
    similarity: float | None
    shared_keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """The result of checking a text: what it would repeat if it arrived now.

    ``repeats`` begins with the best match and is empty for a unique text. ``truncated`` says that a limit cut the
    search short. ``pending`` says that a near version has no verdict yet, so the answer may change.

    ``seen_before`` says when the same text came before the window began; it needs ``judge.seen_days``. ``parts`` names
    articles that share a long stretch with the text; it needs ``judge.parts``. ``ended_before`` is a near article that
    was retracted or replaced; it is set only if the text repeats nothing. ``banks`` are the known texts that it
    repeats; they need ``banks.url``. A text repeats nothing if a bank allows it. ``text_kind`` says how the text is
    compared, like the ``kind`` of a fingerprint: a ``short`` text repeats only equal texts, ignoring case and spaces.

    >>> with open("memory:") as window:
    ...     (check,) = window.check("The first ferry left at noon.")
    >>> check.outcome, check.text_kind, check.repeats
    ('unique', 'short', ())
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
    """An open store, and the judge that compares texts with its articles. ``dupwatch.open`` returns one.

    Any number of processes may open one store. Threads may share a window; their calls take turns.

    >>> with open("memory:") as window:
    ...     (verdict,) = window.judge(Article("w1", "The first ferry left at noon."))
    >>> verdict.outcome
    'unique'
    """

    def __init__(self, store: str, config: Path | None, settings: Mapping[str, Mapping[str, Any]]) -> None:
        overrides = {section: dict(values) for section, values in settings.items()}
        overrides["store"] = overrides.get("store", {}) | {"url": store}
        with public_errors(), ExitStack() as resources:
            configured = load_config(config, overrides)
            lexicon = lexicon_of(configured)
            self._config: Config = completed_config(configured)
            judge: JudgeSettings = judge_settings(self._config, lexicon)
            times = field_map(self._config).times
            self._check_article: ArticleChecker = article_checker(
                decode_limits(self._config), body_form(self._config), times
            )
            self._store: Store = resources.enter_context(opened_store(self._config))
            bound = bind(self._store, judge, self._config)
            known_texts = resources.enter_context(followed_banks(self._config, bound, lexicon, Hooks()))
            self._engine: Engine = engine(self._config, bound, lexicon, known=known_texts)
            self._builder: VersionBuilder = version_builder(bound)
            self._detector = Detector(
                self._store,
                judge,
                now_ms,
                seen_ms=self._config.seen_s * MS_PER_S,
                common=common_hashes(self._config),
                with_bank_matches=matcher_of(known_texts),
            )
            lifetime_ms = self._config.lifetime_s * MS_PER_S
            self._expiry = Expiry(self._detector, now_ms, judge.window_ms, lifetime_ms)
            self._expiry.begin()
            self._lock = Lock()
            self._sequence = count()
            self._latest_ms = 0
            self._closed = False
            self._resources = resources.pop_all()

    def check(
        self, texts: str | Article | Mapping[str, Any] | Iterable[str | Article | Mapping[str, Any]]
    ) -> list[Check]:
        """Return what each text would repeat if it arrived now. Stores nothing.

        An article, or a mapping with its fields, is not compared with earlier versions of its own id. Raises
        ``InvalidArticle`` and ``StoreError``.

        >>> with open("memory:") as window:
        ...     [check.outcome for check in window.check(["The first ferry left at noon.", "Shares fell on Tuesday."])]
        ['unique', 'unique']
        """
        items = _with_index(texts, (str, Article, Mapping))
        with self._locked():
            valid = [
                self._valid(Article(uuid.uuid4().hex, item) if isinstance(item, str) else item, index)
                for index, item in items
            ]
            return [check for batch in _batches(valid) for check in self._check(batch)]

    def judge(
        self,
        articles: Article | Mapping[str, Any] | Iterable[Article | Mapping[str, Any]],
        *,
        key: str | None = None,
    ) -> list[Verdict]:
        """Judge articles in their order, store them, and return a verdict on each.

        Each is an ``Article`` or a mapping with its fields. All are checked before the first is stored. An article
        that any process judged before gets the same verdict again, byte for byte.

        A text is in force until its id gets another text or is retracted. With a ``key``, a text that is no longer in
        force comes into force again and is judged again, unless a call with the same key has already done that.

        Raises ``InvalidArticle``, ``StoreError``, and ``Error`` for a key that is empty, has more than 128 characters
        or is not valid Unicode. After a ``StoreError``, call again with the same articles and key.

        >>> text = "The first ferry left at noon."
        >>> with open("memory:") as window:
        ...     first, second = window.judge([Article("w1", text), {"id": "w2", "body": text}])
        >>> first.outcome, second.outcome, second.duplicate_of
        ('unique', 'duplicate', 'w1')
        """
        items = _with_index(articles, (Article, Mapping))
        with self._locked():
            _check_key(key)
            valid = [self._valid(article, index) for index, article in items]
            # All callers from Python count as one owner of keys.
            request = None if key is None else RequestOrigin("", key)
            origins = [request and request.of_article(place) for place in range(len(valid))]
            batches = zip(_batches(valid), _batches(origins), strict=True)
            return [verdict for batch, batch_origins in batches for verdict in self._judge(batch, batch_origins)]

    def release(
        self, article_id: str, *, version: str | None = None, by: str | None = None, reason: str | None = None
    ) -> Verdict:
        """Undo a flag: the article becomes unique, and is not flagged against the same article again.

        ``version`` is the name of a version in events, by default the latest. ``by`` and ``reason`` go into the
        verdict. Releasing again returns the same verdict. Raises ``StoreError``, and ``ConfigError`` if the article is
        not stored or not flagged, or if ``by`` or ``reason`` is too long.

        >>> text = "The first ferry left at noon."
        >>> with open("memory:") as window:
        ...     _ = window.judge([Article("w1", text), Article("w2", text)])
        ...     released = window.release("w2", by="An Na", reason="it is the correction")
        >>> released.outcome, released.released.duplicate_of
        ('unique', 'w1')
        """
        with self._locked():
            attribution = Attribution(by, reason)
            flagged = releasable_version(self._store, article_id, version)
            return release_version(self._store, flagged, attribution, now_ms).verdict

    def close(self) -> None:
        """Close the store. A closed window cannot be used again; closing it again does nothing.

        >>> window = open("memory:")
        >>> window.close()
        """
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
    def _locked(self) -> Iterator[None]:
        """Wait for calls of other threads, and replace errors with public ones. Raises ``Error`` if closed."""
        with public_errors(), self._lock:
            if self._closed:
                raise Error("this window is closed; open another one")
            yield

    def _check(self, articles: Sequence[model.Article]) -> list[Check]:
        versions = self._versions(articles)
        results = self._detector.query(versions)
        return [_check_from(version.record, result) for version, result in zip(versions, results, strict=True)]

    def _judge(self, articles: Sequence[model.Article], origins: Sequence[RequestOrigin | None]) -> list[Verdict]:
        parts = parts_with_distinct_ids(self._versions(articles, origins))
        verdicts = [event.verdict for part in parts for event in self._detector.judge(part)]
        # Delete versions that have left the window, as a run does.
        self._expiry.sweep(self._latest_ms, len(articles))
        return verdicts

    def _versions(
        self, articles: Sequence[model.Article], origins: Iterable[RequestOrigin | None] = repeat(None)
    ) -> list[Version]:
        fingerprints = self._engine.fingerprint(
            [article.body or "" for article in articles], [article.lang for article in articles]
        )
        # Arrival times never decrease, even if the clock is set back.
        self._latest_ms = max(self._latest_ms, now_ms())
        arrivals = [
            ArrivalTime(self._latest_ms, next(self._sequence), feed=origin and origin.owner, key=origin and origin.key)
            for _, origin in zip(articles, origins, strict=False)
        ]
        return self._builder.versions(articles, arrivals, fingerprints)

    def _valid(self, given: Article | Mapping[str, Any], index: int | None = None) -> model.Article:
        if not isinstance(given, (Article, Mapping)):
            raise TypeError(f"{type(given).__name__} is not a dupwatch.Article or a mapping")
        try:
            return self._check_article(given if isinstance(given, Article) else article_from(given))
        except BadRecord as error:
            article_id = given.id if isinstance(given, Article) else given.get("id")
            raise InvalidArticle("" if article_id is None else article_id, error.reason, error.detail, index) from error


def open(  # noqa: A001  # as gzip.open
    store: str, *, config: str | Path | None = None, settings: Mapping[str, Mapping[str, Any]] | None = None
) -> Window:
    """Open a window on a store: ``memory:``, ``lmdb:DIRECTORY`` or ``hbase://HOST:PORT/NAMESPACE``.

    ``config`` is a configuration file, as for ``dupwatch run --config``. ``settings`` override it, by section and
    name, for example ``{"judge": {"similarity_min": 0.9}}``. Environment variables apply, too. All other settings are
    those of the store, or the defaults if the store is new. Use the window in a ``with`` statement, or call ``close``.
    Raises ``ConfigError`` and ``StoreError``.

    >>> with open("memory:", settings={"judge": {"similarity_min": 0.9}}) as window:
    ...     window.check("The first ferry left at noon.")[0].outcome
    'unique'
    """
    return Window(store, None if config is None else Path(config), settings or {})


def _check_key(key: str | None) -> None:
    if key is None:
        return
    if not 0 < len(key) <= KEY_CHARS_MAX:
        raise Error(f"the key has {len(key)} characters; use 1 to {KEY_CHARS_MAX}")
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise Error(f"the key {key!r} is not valid Unicode") from error


def _with_index(given: Any, single: tuple[type, ...]) -> list[tuple[int | None, Any]]:  # noqa: ANN401  # a caller may pass anything
    """Return the items passed to a call as (index, item). The index is None for an item that is not in a list."""
    return [(None, given)] if isinstance(given, single) else list(enumerate(given))


def _batches(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))


def _check_from(record: Record, result: QueryResult) -> Check:
    repeats = tuple(
        Repeated(
            id=match.record.id,
            version=events.version_name(match.record.reference),
            title=match.record.title,
            distance=match.distance,
            similarity=events.rounded(match.similarity),
            shared_keywords=events.shared_keywords(record, match.record),
        )
        for match in result.matches
    )
    ended_before = None if repeats else result.ended_before
    return Check(
        repeats,
        result.truncated,
        result.pending,
        result.seen_before,
        result.parts,
        ended_before,
        result.banks,
        TextKind(record.kind).label,
    )
