"""Opens the banks of a run, and follows their changes."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Final

from consumer.banks.bank import BankError, Banks, BanksUnreachable
from consumer.banks.bank_log import BankLog, news
from consumer.banks.busy_items import BusyItems, BusyLimit
from consumer.banks.known_texts import BanksRead, BanksUnreadable, KnownTexts
from consumer.config.config import Config
from consumer.feeds.kinds import banks_at
from consumer.fingerprint import Lexicon
from consumer.judge.attempt import BankMatcher
from consumer.judge.binding import Binding
from consumer.lifecycle.background import Following, Starting
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks, Outage
from consumer.wiring import components
from consumer.wiring.feeds import is_followed, sink_opening
from storage.clock import now_ms

log = logging.getLogger("dupwatch")

LAG_S: Final = 30.0
"""How long the banks may be unreadable before the run is no longer ready."""
AGAIN_S: Final = 1.0
"""The pause before banks are read again that did not answer at the start."""


class BankReader:
    """Keeps known texts as the banks say. One thread calls ``look``, about every second."""

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
        """Read what is new in the banks. Raises ``BankError`` for banks that cannot be read; then nothing changes."""
        with news(self._banks) as found:
            if found.is_whole:
                self._known.replace(found.entries)
            elif found.entries:
                self._known.change(found.entries)
        if found.invalid:
            log.warning("Invalid entries of banks were left out: %d. dupwatch bank writes valid ones.", found.invalid)
        self._hooks.report(BanksRead(len(self._known), found.invalid))
        self._read_s = self._clock_s()

    def look(self) -> None:
        """Read what is new in the banks. While they cannot be read, they stay as they are.

        After ``LAG_S`` the run is not ready: it may not know what was added since.
        """
        try:
            self.read()
        except BankError as error:
            fault = str(error)
            if fault != self._fault:
                log.warning("The banks stay as they are: %s", fault)
            self._fault = fault
            self._hooks.report(BanksUnreadable(fault))
            if self._clock_s() - self._read_s > LAG_S:
                self._hooks.report(Outage("banks", "reader", fault))
        else:
            self._fault = ""
            self._hooks.report(Outage("banks", "reader", None))


@contextmanager
def opened_banks(config: Config) -> Iterator[BankLog]:
    """Open the configured banks. Raises ``ConfigError`` where none are configured."""
    if config.banks.url is None:
        raise ConfigError(
            "no banks are named: add --banks FILE or --banks kafka://HOST:PORT/PREFIX, or set banks.url in the "
            "configuration"
        )
    try:
        banks = banks_at(config.banks.url, sink_opening(config, Hooks(), ""))
    except ValueError as error:
        raise ConfigError(f"banks.url: {error}") from error
    with closing(banks):
        yield banks


def read_banks(config: Config) -> Banks:
    """Return the configured banks. Raises ``BankError`` where they cannot be read."""
    with opened_banks(config) as banks:
        return Banks.of(banks.read().entries)


@contextmanager
def followed_banks(
    config: Config, bound: Binding, lexicon: Lexicon, hooks: Hooks, starting: Starting | None = None
) -> Iterator[KnownTexts | None]:
    """Read the configured banks, and follow them while the context is open; None where there are none.

    With ``starting`` it waits at the start for what holds the banks, and may raise ``NotBegun``. Raises ``BankError``,
    a ``ConfigError``, where they cannot be read.
    """
    if config.banks.url is None:
        yield None
        return
    known = KnownTexts(components.engine(config, bound, lexicon), bound.settings, now_ms, hooks.report)
    with opened_banks(config) as banks:
        reader = BankReader(banks, known, hooks)
        if starting is None:
            reader.read()
        else:
            _read_when_reachable(reader, starting)
        with Following("banks", reader.look):
            yield known


def _read_when_reachable(reader: BankReader, starting: Starting) -> None:
    while True:
        try:
            return starting.call(reader.read)
        except BanksUnreachable as error:
            log.warning("Waiting for the banks: %s", error)
            starting.call(partial(time.sleep, AGAIN_S))


def busy_items(config: Config, known: KnownTexts | None, hooks: Hooks) -> BusyItems | None:
    """Return what finds the busy items of a run, and follows the changes of its banks; None without banks."""
    if known is None:
        return None
    section = config.banks
    limit = BusyLimit(section.busy_share, section.busy_articles_min)
    # Only topics have bank matches of their own.
    busy = BusyItems(known, limit, hooks.report, withholds=is_followed(config))
    hooks.on(BanksRead, lambda _: busy.review())
    busy.review()
    return busy


def matcher_of(known: KnownTexts | None) -> BankMatcher:
    """Return what finds known texts for a judge; without any, versions stay as they are."""
    return list if known is None else known.with_matches
