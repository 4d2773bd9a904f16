"""dupwatch as the benchmarks run it: text in, verdict out, built from its own configuration."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from benchmarks.speed.codes import CodeModel
from benchmarks.speed.preload import Entries, draw_entries
from consumer.banks.known_texts import KnownTexts
from consumer.config.loading import load_config
from consumer.fingerprint import Engine, Fingerprints, Lexicon, TextKind
from consumer.judge import events
from consumer.judge.binding import Binding
from consumer.judge.common_hashes import CommonHashes
from consumer.judge.detector import Detector
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model.article import Article
from consumer.model.hooks import Hooks
from consumer.model.verdict import VerdictEvent
from consumer.stress.made_texts import FeedText
from consumer.wiring.banks import followed_banks, matcher_of
from consumer.wiring.components import common_hashes, engine, judge_settings, version_builder
from consumer.wiring.stores import opened_store, unstored_binding
from storage.clock import MS_PER_S, now_ms
from storage.interface import Store
from storage.records import Record, Version

LIKE_FOR_LIKE: Final[dict[str, Any]] = {"judge": {"lane1": False, "verify": False}}
"""What changes for a comparison with plain SimHash: no second lane, no verification; all else stays the default."""
_BATCH: Final = 256
_SKETCH_BYTES: Final = 256
_TEXT_DIGEST_BYTES: Final = 16
_KEYWORDS: Final = (("预装", 12.5), ("文章", 9.25), ("关键词", 7.0))


class Dupwatch:
    """Everything between a text and its verdict, over one store."""

    def __init__(
        self,
        store: Store,
        bound: Binding,
        fingerprinter: Engine,
        seen_ms: int = 0,
        common: CommonHashes | None = None,
        known: KnownTexts | None = None,
    ) -> None:
        self.detector = Detector(
            store, bound.settings, now_ms, seen_ms=seen_ms, common=common, with_bank_matches=matcher_of(known)
        )
        self.fingerprinter = fingerprinter
        self.builder: VersionBuilder = version_builder(bound)
        self._store = store
        self._settings = bound.settings
        self._lines = 0

    @classmethod
    def opened(cls, stack: ExitStack, lexicon: Lexicon, store_url: str, overrides: dict[str, Any]) -> Self:
        """Build it with these settings over the store of this URL, which ``held`` closes."""
        config = load_config(None, overrides | {"store": {"url": store_url}})
        bound = unstored_binding(config, judge_settings(config, lexicon))
        store = stack.enter_context(opened_store(config))
        known = stack.enter_context(followed_banks(config, bound, lexicon, Hooks()))
        computing = engine(config, bound, lexicon, known=known)
        return cls(store, bound, computing, config.seen_s * MS_PER_S, common_hashes(config), known)

    def preload(self, model: CodeModel, count: int, rng: np.random.Generator) -> None:
        """Store articles that were kept: record, verdict and postings of each, without a body."""
        entries = draw_entries(model, count, rng, bands=self._settings.scheme.sketch.bands)
        for start in range(0, count, 10 * _BATCH):
            part = Entries(*(array[start : start + 10 * _BATCH] for array in entries))
            records = synthetic_records(self.builder, part, f"preloaded-{start}", self._next_line(len(part.codes)), rng)
            self._store.create([Version(record, None) for record in records])
            decided_ms = now_ms()
            kept = [events.kept_event(record, truncated=False, decided_ms=decided_ms).encoded for record in records]
            self._store.settle(list(zip((record.reference for record in records), kept, strict=True)))
            self._store.add(records)

    def judge(self, articles: Sequence[FeedText]) -> list[VerdictEvent]:
        """Judge articles in batches of the default size; return their verdicts."""
        verdicts: list[VerdictEvent] = []
        for start in range(0, len(articles), _BATCH):
            verdicts += self.detector.judge(self.versions(articles[start : start + _BATCH]))
        return verdicts

    def versions(self, articles: Sequence[FeedText]) -> list[Version]:
        """Fingerprint articles and make them ready to be judged."""
        fingerprints = self.fingerprinter.fingerprint([article.body for article in articles])
        line, time_ms = self._next_line(len(articles)), now_ms()
        return self.builder.versions(
            [Article(article.id, article.body) for article in articles],
            [ArrivalTime(time_ms, line + place) for place in range(len(articles))],
            fingerprints,
        )

    def _next_line(self, count: int) -> int:
        self._lines += count
        return self._lines - count


def synthetic_records(
    builder: VersionBuilder, entries: Entries, name: str, first_line: int, rng: np.random.Generator
) -> list[Record]:
    """Make records around fingerprints that no text was read for; their sketches resemble no other."""
    count = len(entries.codes)
    fingerprints = Fingerprints(
        codes=entries.codes[:, np.newaxis],
        sketches=_random_bytes(count, _SKETCH_BYTES, rng),
        one_bits=entries.one_bits,
        bands=entries.bands,
        keywords=(_KEYWORDS,) * count,
        kinds=np.full(count, TextKind.LONG, np.uint8),
        text_digests=_random_bytes(count, _TEXT_DIGEST_BYTES, rng),
        keyword_counts=np.full(count, len(_KEYWORDS), np.int64),
    )
    articles = [Article(f"{name}-{number}", "") for number in range(count)]
    time_ms = now_ms()
    arrivals = [ArrivalTime(time_ms, first_line + number) for number in range(count)]
    return [version.record for version in builder.versions(articles, arrivals, fingerprints)]


def _random_bytes(rows: int, width: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    return rng.integers(0, 256, (rows, width), dtype=np.uint8)
