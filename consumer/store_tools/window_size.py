"""How many articles are in the window of a store, estimated from a sample of its postings.

Every kept article has one posting in each lane-0 key space, so the mean width of rows of random keys, times the number
of keys, is the number of articles. Reading the store whole would take hours.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.fingerprint import BlockPlan
from storage.interface import PostingStore

_ROWS: Final = {16: 256}
"""How many rows are read, by the bits of a key: wide rows differ more than their number shows, so a few are enough."""
_ROWS_OF_LONG_KEYS: Final = 2_048
_POSTINGS_MIN: Final = 16
"""With fewer postings in the sample only an upper bound is given."""
_WORDS: Final = 64
_TWO_ERRORS: Final = 2.0
"""The estimate lies within two standard errors in 19 of 20 samples."""


class WindowSize(NamedTuple):
    """The estimated number of kept articles in a window, and its relative error in both directions.

    With ``error`` None so few postings were found that ``articles`` is an upper bound. ``at_least`` is whether rows
    were wider than the store's cap, so that there are more articles than that.
    """

    articles: int
    error: float | None
    at_least: bool = False

    @property
    def low(self) -> float:
        """The number that there are at least, but for one sample in forty."""
        return 0.0 if self.error is None else self.articles * max(1 - self.error, 0.0)


def window_size(store: PostingStore, plan: BlockPlan, window_ms: int, seed: int) -> WindowSize:
    """Estimate how many articles of the window before the newest posting in the sample are found in the store."""
    rows = store.look_up(_random_keys(plan, seed))
    times = [row.postings["time_ms"].astype(np.int64) for row in rows]
    newest_ms = max((int(of_row.max()) for of_row in times if len(of_row)), default=0)
    widths = np.array([np.count_nonzero(of_row > newest_ms - window_ms) for of_row in times])
    return _estimate(widths, plan, at_least=any(row.truncated for row in rows))


def described_size(size: WindowSize) -> str:
    """Return the estimate as a phrase."""
    if size.error is None:
        return f"at most about {size.articles:,} kept articles"
    least = "at least " if size.at_least else ""
    return f"{least}about {size.articles:,} kept articles (± {size.error:.0%})"


def _estimate(widths: npt.NDArray[np.int64], plan: BlockPlan, *, at_least: bool) -> WindowSize:
    keys, found = 1 << plan.key_bits, int(widths.sum())
    if found < _POSTINGS_MIN:
        # The most that is likely, of a number that varies by its square root.
        most = found + _TWO_ERRORS * (found + 1) ** 0.5 + 1
        return WindowSize(_rounded(most / len(widths) * keys), None, at_least)
    mean = float(widths.mean())
    error = _TWO_ERRORS * float(widths.std(ddof=1)) / len(widths) ** 0.5 / mean
    return WindowSize(_rounded(mean * keys), error, at_least)


def _random_keys(plan: BlockPlan, seed: int) -> list[bytes]:
    rows = _ROWS.get(plan.key_bits, _ROWS_OF_LONG_KEYS)
    words = plan.bits // _WORDS
    random = np.random.default_rng(seed)
    codes = random.integers(0, 1 << _WORDS, (rows // plan.probes(0), words), np.uint64, endpoint=False)
    keys = plan.keys(codes).reshape(-1, plan.key_bytes)
    # Keys of a look-up differ; that two of these are equal is rare.
    return list(dict.fromkeys(key.tobytes() for key in keys))


def _rounded(articles: float) -> int:
    """Round to three digits: the others are chance."""
    return int(float(f"{articles:.2e}"))
