"""Opens the banks of a run, and follows their changes."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final

from consumer.banks.bank import BankError, Banks, BanksUnreachable
from consumer.banks.bank_log import BankLog, new_entries
from consumer.banks.busy_items import BusyItems, BusyLimit
from consumer.banks.known_texts import PART_LETTERS_MIN, BanksLoaded, BanksUnreadable, KnownTexts
from consumer.config.config import Config
from consumer.feeds.kinds import banks_at
from consumer.files.bank_cache import BankCache, CacheIdentity
from consumer.fingerprint import Lexicon
from consumer.fingerprint.compiled import REVISION
from consumer.fingerprint.known_shingles import SHINGLES_KEPT
from consumer.judge.attempt import BankMatcher
from consumer.judge.binding import Binding
from consumer.lifecycle.background import Call, PeriodicCheck, StartUpCalls
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks, Outage
from consumer.wiring import components
from consumer.wiring.feeds import is_followed, sink_opening
from storage.clock import now_ms
from storage.files import WriteOptions

log = logging.getLogger("dupwatch")

LAG_S: Final = 30.0
"""How long the run stays ready after the banks were last read successfully."""
RETRY_S: Final = 1.0
"""The pause before unreachable banks are read again at the start."""
_CACHED_SHARE: Final = 16
"""The cache is written once fingerprints of more than one in this many items were computed after the last write."""
_LAST_WRITE_S: Final = 10.0
"""How long to wait at the end for the cache to be written. If that takes longer, the next process writes it."""


class BankReader:
    """A reader of banks that keeps known texts up to date.

    One thread calls ``refresh`` about every second, and another one ``check_lag``.
    """

    def __init__(
        self, banks: BankLog, known: KnownTexts, hooks: Hooks, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._banks = banks
        self._known = known
        self._hooks = hooks
        self._clock_s = clock_s
        self._fault = ""
        self._read_s = clock_s()

    def read(self) -> None:
        """Read new entries of the banks. If that fails, raises ``BankError`` and changes no known texts."""
        with new_entries(self._banks) as new:
            if new.is_whole:
                before = len(self._known)
                self._known.replace(new.entries)
                if len(self._known) < before:
                    log.warning(
                        "The banks were replaced, and have fewer active items: %d instead of %d",
                        len(self._known),
                        before,
                    )
            elif new.entries:
                self._known.change(new.entries)
        if new.invalid:
            log.warning("Ignored %d invalid entries of banks. Change banks only with dupwatch bank", new.invalid)
        self._hooks.report(BanksLoaded(len(self._known), new.invalid))
        self._read_s = self._clock_s()

    def refresh(self) -> None:
        """Read new entries of the banks. While they cannot be read, the known texts do not change.

        After ``LAG_S`` the run is no longer ready, since it may lack new items.
        """
        try:
            self.read()
        except BankError as error:
            fault = str(error)
            if fault != self._fault:
                log.warning("The banks cannot be read, so the banks that were read last stay in use: %s", fault)
            self._fault = fault
            self._hooks.report(BanksUnreadable(fault))
            if self._clock_s() - self._read_s > LAG_S:
                self._hooks.report(Outage("banks", "reader", fault))
        else:
            self._fault = ""
            self._hooks.report(Outage("banks", "reader", None))

    def check_lag(self) -> None:
        """If no read has succeeded for ``LAG_S``, report that the run is not ready.

        A read with many new items may take that long. The next successful ``refresh`` revokes the report.
        """
        lag_s = self._clock_s() - self._read_s
        if lag_s > LAG_S:
            why = self._fault or f"{lag_s:.0f} s behind: many items have changed, or the banks answer slowly"
            self._hooks.report(Outage("banks", "reader", why))


class CacheWriter:
    """The writer of the cache of fingerprints. It writes once enough new fingerprints have been computed."""

    def __init__(self, cache: BankCache, known: KnownTexts) -> None:
        self._cache = cache
        self._known = known
        self._written = 0
        self._lock = Lock()

    def write_if_due(self) -> None:
        """Write the cache if enough fingerprints are missing from it. Waits for a write by another thread first."""
        with self._lock:
            fingerprints = self._known.fingerprints()
            due = fingerprints.computed - self._written > len(self._known) // _CACHED_SHARE
            if due and self._cache.save(fingerprints.parts):
                self._written = fingerprints.computed


@contextmanager
def opened_banks(config: Config) -> Iterator[BankLog]:
    """Open the configured banks. Raises ``ConfigError`` if none are configured, or if ``banks.url`` is invalid."""
    if config.banks.url is None:
        raise ConfigError(
            "no banks are configured: add --banks FILE or --banks kafka://HOST:PORT/PREFIX, or set banks.url in the "
            "configuration"
        )
    try:
        banks = banks_at(config.banks.url, sink_opening(config, Hooks(), ""))
    except ValueError as error:
        raise ConfigError(f"banks.url: {error}") from error
    with closing(banks):
        yield banks


def read_banks(config: Config) -> Banks:
    """Return the configured banks. Raises ``BankError`` if they cannot be read, and the errors of ``opened_banks``."""
    with opened_banks(config) as banks:
        return Banks.of(banks.read().entries)


@contextmanager
def followed_banks(
    config: Config, bound: Binding, lexicon: Lexicon, hooks: Hooks, starting: StartUpCalls | None = None
) -> Iterator[KnownTexts | None]:
    """Read the configured banks, and follow them while the context is open; yield None if none are configured.

    With ``starting``, waits at the start while the banks are unreachable, and may raise ``StoppedBeforeStart``. Raises
    ``BankError``, a ``ConfigError``, if the banks cannot be read.
    """
    if config.banks.url is None:
        yield None
        return
    cache = _configured_cache(config, bound)
    known = _empty_known_texts(config, bound, lexicon, cache, hooks.report)
    with opened_banks(config) as banks:
        reader = BankReader(banks, known, hooks)
        if starting is None:
            reader.read()
        else:
            _read_when_reachable(reader, starting)
        with (
            PeriodicCheck("banks", reader.refresh),
            PeriodicCheck("bank-lag", reader.check_lag),
            _cache_writing(cache, known),
        ):
            yield known


def known_texts(config: Config, bound: Binding, lexicon: Lexicon, banks: Banks) -> KnownTexts:
    """Return the items of banks as known texts.

    Write the configured cache if enough fingerprints are missing from it.
    """
    cache = _configured_cache(config, bound)
    known = _empty_known_texts(config, bound, lexicon, cache, Hooks().report)
    known.replace(banks.entries())
    if cache is not None:
        CacheWriter(cache, known).write_if_due()
    return known


def _empty_known_texts(
    config: Config, bound: Binding, lexicon: Lexicon, cache: BankCache | None, report: Callable[[object], None]
) -> KnownTexts:
    """Return known texts without items. The first items will get their fingerprints from the cache, if it has them."""
    computing, load_cache = components.engine(config, bound, lexicon), None if cache is None else cache.load
    return KnownTexts(computing, bound.settings, now_ms, report, load_cache)


def _configured_cache(config: Config, bound: Binding) -> BankCache | None:
    """Return the configured cache of fingerprints; None if none is configured."""
    if config.banks.cache is None:
        return None
    described: dict[str, str | int] = {
        "banks": str(config.banks.url),
        "scheme": bound.scheme,
        "scheme_digest": bound.settings.scheme_digest,
        "revision": REVISION,
        "shingles": SHINGLES_KEPT,
        "part_letters": PART_LETTERS_MIN,
    }
    identity = CacheIdentity(described, bound.secret.seal_key)
    return BankCache(Path(config.banks.cache), identity, WriteOptions(durable=False, mode=config.files.bits))


@contextmanager
def _cache_writing(cache: BankCache | None, known: KnownTexts) -> Iterator[None]:
    """Write the cache whenever it is due: in a thread while the context is open, and when the context ends."""
    if cache is None:
        yield
        return
    writer = CacheWriter(cache, known)
    try:
        with PeriodicCheck("bank-cache", writer.write_if_due):
            yield
    finally:
        # A command may end before the first check.
        Call(writer.write_if_due).wait(_LAST_WRITE_S)


def _read_when_reachable(reader: BankReader, starting: StartUpCalls) -> None:
    while True:
        try:
            return starting.call(reader.read)
        except BanksUnreachable as error:
            log.warning("Waiting for the banks: %s", error)
            starting.call(partial(time.sleep, RETRY_S))


def busy_items(config: Config, known: KnownTexts | None, hooks: Hooks) -> BusyItems | None:
    """Build the busy items of a run, which follow the changes of its banks; None without banks."""
    if known is None:
        return None
    section = config.banks
    limit = BusyLimit(section.busy_share, section.busy_articles_min)
    # Only topics have separate events of bank matches, which can be withheld.
    busy = BusyItems(known, limit, hooks.report, withholds=is_followed(config))
    hooks.on(BanksLoaded, lambda _: busy.review())
    busy.review()
    return busy


def matcher_of(known: KnownTexts | None) -> BankMatcher:
    """Return the judge's function for bank matches; without known texts it leaves versions unchanged."""
    return list if known is None else known.with_matches
