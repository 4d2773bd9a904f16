"""Articles with ready fingerprints, one in ten a near copy of an earlier one: what the judge gets to see."""

from typing import Final, NamedTuple
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from benchmarks.hbase.load import denser
from benchmarks.speed.codes import CodeModel, near_copies
from benchmarks.speed.preload import Entries, draw_entries
from consumer.fingerprint import ANCHORS_POSTED, KEYWORDS_KEPT, SAMPLED_ONE_IN, Fingerprints, TextKind
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model.article import Article
from consumer.stress.made_texts import make_feed
from storage.clock import now_ms
from storage.records import Version

COPIED_EVERY: Final = 10
BODY_CHARS: Final = 2_000
_BODIES: Final = 64
_FLIPS: Final = 3
_SHARED_BANDS: Final = 3
_SKETCH_BYTES: Final = 256
_ANCHORS_BYTES: Final = 8 * ANCHORS_POSTED
_SAMPLE_BYTES: Final = 4 * BODY_CHARS // SAMPLED_ONE_IN
_SKETCH_CHANGED_SHARE: Final = 0.05
_TEXT_DIGEST_BYTES: Final = 16
_KEYWORDS: Final = tuple((f"关键词{number}", 12.5 - number / 4) for number in range(KEYWORDS_KEPT))


class _Drawn(NamedTuple):
    """Articles as numbers: entries, and sketches uint8[n, 256]."""

    entries: Entries
    sketches: npt.NDArray[np.uint8]

    def some(self, places: npt.NDArray[np.int64]) -> "_Drawn":
        """Those at these places."""
        return _Drawn(Entries(*(part[places] for part in self.entries)), self.sketches[places])


class MadeFeed:
    """Any number of articles of a new feed.

    A copy differs from its original in 3 bits of the fingerprint and in one band; each article is copied once at most.
    Originals are those of the time before. With ``density_bits`` their keys are those of a dense store (see ``load``).
    With ``parts`` each article has anchors and a sample of its own.
    """

    def __init__(
        self, model: CodeModel, builder: VersionBuilder, density_bits: int = 0, *, parts: bool = False
    ) -> None:
        self._model = model
        self._density_bits = density_bits
        self._parts = parts
        self._builder = builder
        self._rng = np.random.default_rng()
        self._name = uuid4().hex
        self._bodies = [text.body for text in make_feed(_BODIES, BODY_CHARS)]
        self._line = 0
        self._last: _Drawn | None = None

    def take(self, count: int) -> list[Version]:
        """The next articles, ready to be judged."""
        rng = self._rng
        drawn = _Drawn(draw_entries(self._model, count, rng), _random_bytes(count, _SKETCH_BYTES, rng))
        copies = np.arange(0, count, COPIED_EVERY)
        if self._last is not None:
            # Never more than there were originals: every time has as many articles of its own.
            originals = rng.permutation(len(self._last.sketches))[: len(copies)]
            _overwrite(drawn, copies[: len(originals)], self._last.some(originals), rng)
        self._last = drawn.some(np.setdiff1d(np.arange(count), copies))
        return self._versions(drawn)

    def _versions(self, drawn: _Drawn) -> list[Version]:
        count = len(drawn.sketches)
        entries = denser(drawn.entries, self._density_bits)
        fingerprints = Fingerprints(
            codes=entries.codes[:, np.newaxis],
            sketches=drawn.sketches,
            one_bits=entries.one_bits,
            bands=entries.bands,
            keywords=(_KEYWORDS,) * count,
            kinds=np.full(count, TextKind.LONG, np.uint8),
            text_digests=_random_bytes(count, _TEXT_DIGEST_BYTES, self._rng),
            keyword_counts=np.full(count, len(_KEYWORDS), np.int64),
            anchors=self._noise(count, _ANCHORS_BYTES),
            samples=self._noise(count, _SAMPLE_BYTES),
        )
        lines = range(self._line, self._line + count)
        self._line += count
        articles = [Article(f"{self._name}-{line}", self._bodies[line % _BODIES]) for line in lines]
        time_ms = now_ms()
        return self._builder.versions(articles, [ArrivalTime(time_ms, line) for line in lines], fingerprints)

    def _noise(self, count: int, size_bytes: int) -> tuple[bytes, ...]:
        return tuple(self._rng.bytes(size_bytes) for _ in range(count)) if self._parts else ()


def _overwrite(drawn: _Drawn, places: npt.NDArray[np.int64], of: _Drawn, rng: np.random.Generator) -> None:
    """Put near copies of these articles at these places."""
    drawn.entries.codes[places] = near_copies(of.entries.codes, _FLIPS, rng)
    drawn.entries.one_bits[places] = near_copies(of.entries.one_bits, _FLIPS, rng)
    drawn.entries.bands[places, :_SHARED_BANDS] = of.entries.bands[:, :_SHARED_BANDS]
    kept = rng.random(of.sketches.shape) >= _SKETCH_CHANGED_SHARE
    drawn.sketches[places] = np.where(kept, of.sketches, drawn.sketches[places])


def _random_bytes(rows: int, width: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    return rng.integers(0, 256, (rows, width), dtype=np.uint8)
