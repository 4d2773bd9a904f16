"""The checked request of ``dupwatch size``."""

import math
from pathlib import Path
from typing import Final, NamedTuple

from consumer.config.config import Config
from consumer.files.kind import FILE
from consumer.model.errors import ConfigError
from consumer.store_tools.sizing import CHARS, COPIES, DAY_S, PEAK, Feed
from consumer.store_tools.store_plan import ARTICLES_MAX
from consumer.store_tools.text_sizes import LANGUAGES, Language
from consumer.text.timestamps import option_duration
from storage.hbase.kind import HBASE
from storage.hbase.schema import FOREVER_S
from storage.kind import StoreKind
from storage.kinds import kind_of
from storage.lmdb.kind import LMDB

_KINDS: Final = {"lmdb": LMDB, "hbase": HBASE}
_SECONDS_MAX: Final = 3_600
_PEAK_MAX: Final = 1_000


class SizeOptions(NamedTuple):
    """The options as given. Absent options are None."""

    articles_a_day: int
    chars: int | None
    lang: str
    window: str | None
    copies: float | None
    peak: float | None


class SizeRequest(NamedTuple):
    """A feed to plan a store for.

    ``place`` (the store's URL) and ``options`` go into the printed commands. ``chars`` is the length of an article, and
    ``given`` says which values the user chose.
    """

    config: Config
    kind: StoreKind
    place: str
    feed: Feed
    chars: int
    language: Language
    given: SizeOptions
    options: tuple[str, ...]


def size_request(config: Config, store: str | None, numbers: SizeOptions, options: tuple[str, ...] = ()) -> SizeRequest:
    """Return the request. Raises ``ConfigError`` for impossible values; the message says what to write."""
    if numbers.window is not None:
        window_s = int(option_duration("--window", numbers.window).total_seconds())
        if not window_s:
            raise ConfigError("--window is 0; write how far back copies are found, such as 7d")
        if window_s != config.judge.window_s:
            options = (*options, "--set", f"judge.window_s={window_s}")
        judge = config.judge.model_copy(update={"window_s": window_s})
        config = config.model_copy(update={"judge": judge})
    kind, place = _kind(config, store)
    lifetime_s = config.lifetime_s
    if kind is HBASE and lifetime_s > FOREVER_S:
        raise ConfigError(
            f"--window: window and slack are {lifetime_s:,} seconds, but HBase keeps cells up to {FOREVER_S:,}; write "
            f"at most {(FOREVER_S - config.store.slack_s) // DAY_S}d"
        )
    feed = Feed(
        articles_a_day=_articles(numbers.articles_a_day, config.judge.window_s),
        copies=COPIES if numbers.copies is None else _copies(numbers.copies),
        window_s=config.judge.window_s,
        lifetime_s=lifetime_s,
        peak=PEAK if numbers.peak is None else _peak(numbers.peak),
    )
    return SizeRequest(
        config,
        kind,
        place,
        feed,
        CHARS if numbers.chars is None else _chars(numbers.chars, config),
        _language(numbers.lang),
        numbers,
        options,
    )


def check_measuring(sample: str | None, seconds: float) -> None:
    """Raise ``ConfigError`` for a sample that is not a file, or for a measuring time that is out of range."""
    if sample is not None and not (FILE.matches(sample) and Path(sample).is_file()):
        raise ConfigError(f"--sample {sample}: this is not a file; name a file of articles")
    if not 0 < seconds <= _SECONDS_MAX:
        raise ConfigError(
            f"--calibrate-seconds {seconds:g}: write a time above 0, and at most {_SECONDS_MAX:,} seconds"
        )


def _kind(config: Config, store: str | None) -> tuple[StoreKind, str]:
    """Return the kind and the URL of the named store, or else of the configured one.

    If ``store`` names only a kind, the URL is that of a configured store of this kind, or else an example. LMDB
    replaces a configured store that ends with its run. Raises ``ConfigError`` if ``store`` names such a store, or no
    store at all.
    """
    if store in _KINDS:
        kind = _KINDS[store]
        configured = config.store.url
        return kind, configured if kind_of(configured) is kind else kind.example
    try:
        kind = kind_of(config.store.url if store is None else store)
    except ValueError:
        raise ConfigError(f"--store {store}: write lmdb or hbase, or the URL of a store") from None
    if kind.outlives_run:
        return kind, config.store.url if store is None else store
    if store is None:
        return LMDB, LMDB.example
    raise ConfigError(f"--store {store}: a store in {kind.name} ends with its run; write lmdb or hbase")


def _articles(a_day: int, window_s: int) -> int:
    most = ARTICLES_MAX * DAY_S // window_s
    if a_day < 1:
        raise ConfigError(f"--articles-a-day {a_day}: write how many articles arrive in a day, at least 1")
    if a_day > most:
        raise ConfigError(
            f"--articles-a-day {a_day}: a store can have up to {ARTICLES_MAX:,} articles in the window; write at most "
            f"{most:,}, or a shorter --window"
        )
    return a_day


def _chars(chars: int, config: Config) -> int:
    most = config.source.body_chars_max
    if chars < 1:
        raise ConfigError(f"--chars {chars}: write how many characters an article has on average, at least 1")
    if chars > most:
        raise ConfigError(
            f"--chars {chars}: longer articles than {most:,} characters are refused; write at most that, or raise "
            "source.body_chars_max"
        )
    return chars


def _copies(share: float) -> float:
    if 1 < share < 100:  # noqa: PLR2004  # per cent
        raise ConfigError(f"--copies {share:g}: write a share, not per cent: {share / 100:g}")
    if not 0 <= share < 1:
        raise ConfigError(f"--copies {share:g}: write a share from 0 to 0.99, such as 0.2 for one in five")
    return share


def _peak(factor: float) -> float:
    if not 1 <= factor <= _PEAK_MAX or math.isnan(factor):
        raise ConfigError(
            f"--peak {factor:g}: write how many times the average the busiest minute is, from 1 to {_PEAK_MAX:,}"
        )
    return factor


def _language(name: str) -> Language:
    for language in LANGUAGES:
        if name == language:
            return language
    raise ConfigError(
        f"--lang {name}: write zh for Chinese, Japanese and Korean, en for languages in Latin letters, or mixed; for "
        "others measure a --sample"
    )
