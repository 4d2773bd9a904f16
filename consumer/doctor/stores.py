"""Findings on the store: the checks of its kind, the settings that it is bound to, and its size."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import SystemRandom
from typing import Final

from consumer.config.config import Config
from consumer.doctor.finding import DoctorCheck, Finding, ok, unchecked, warning, wrong
from consumer.judge.binding import Binding, settings_in
from consumer.judge.plan_choice import LookUpSettings, look_up_cost, outgrown_articles, plan_to_move_to, rounded
from consumer.judge.settings import FACTS_REVISION, JudgeSettings, differences
from consumer.model.article import READER_REVISION
from consumer.model.errors import ConfigError, Fatal, StoreBroken, StoreMismatch
from consumer.store_tools.store_plan import WindowSize, counted_window, described_size, window_size
from consumer.wiring import stores
from consumer.wiring.feeds import source_side
from storage.errors import StoreUnavailable
from storage.kind import StoreCheck, StoreFinding
from storage.kinds import kind_of
from storage.records import CapacityPlan

_SETTINGS: Final = "settings of the store"
_ERRORS: Final[dict[str, type[Fatal]]] = {
    "misconfigured": ConfigError,
    "refused": StoreMismatch,
    "broken": StoreBroken,
}
_GROWTH_MAX: Final = 2
"""A window with more than this many times the expected articles is a reason to check the free disk space."""
_SEEDS: Final = 1 << 32
_COUNTED_MAX: Final = 100_000
"""Articles are counted if the store has at most this many versions and retractions. That takes a few seconds."""


def store_checks(config: Config, settings: Callable[[], JudgeSettings], needed: str) -> Iterator[DoctorCheck]:
    """Yield the checks of the configured store: those of its kind, and those of its settings and size.

    A store in memory, or whose file does not exist yet, has only the checks of its kind. The check of the settings
    needs the last check of a remote store, or else the check ``needed``.
    """
    url = config.store.url
    kind = kind_of(url)
    own = kind.checks(url, stores.configured_opening(config))
    for check in own:
        yield DoctorCheck(check.name, partial(_findings_of, check), deadline_s=check.deadline_s)
    place = kind.on_disk(url)
    if kind.outlives_run and (place is None or place.files[0].exists()):
        reached = own[-1].name if kind.remote and own else needed
        yield DoctorCheck(_SETTINGS, lambda: check_binding(config, settings), reached)
        yield DoctorCheck("size of the window", lambda: check_size(config, settings), _SETTINGS)


def _findings_of(check: StoreCheck) -> Iterator[Finding]:
    return map(finding_of, check.run())


def finding_of(found: StoreFinding) -> Finding:
    """Translate a finding of a kind of store into a finding of the doctor."""
    if found.status == "ok":
        return ok(found.found)
    if found.status == "warning":
        return warning(found.found, found.remedy)
    return wrong(_ERRORS[found.status], found.found, found.remedy)


def check_binding(config: Config, settings: Callable[[], JudgeSettings]) -> Iterator[Finding]:
    """Check that the store is bound to the configured settings, and that these settings are not outdated."""
    ours = settings()
    try:
        with stores.opened_store(config, readonly=True) as store:
            stored = store.settings()
            planned = None if stored is not None else store.planned()
    except StoreUnavailable as error:
        yield unchecked(f"The store does not answer: {error}", "Start the store, or correct store.url.")
        return
    if planned is not None and planned.plan != ours.plan.name:
        yield wrong(
            StoreMismatch,
            f"The store is made for the plan {planned.plan}, but judge.plan is {ours.plan.name}.",
            f'Set judge.plan to "{planned.plan}", or name another store.',
        )
    elif stored is None:
        yield ok(f"The store is not bound to any settings yet; the first run binds it to {ours.short_digest()}.")
    else:
        yield _settings_finding(config, stored, ours)
        yield from _guard_findings(ours)
        yield from _reader_findings(config)
        yield from _stretch_findings(ours)


def _guard_findings(ours: JudgeSettings) -> Iterator[Finding]:
    thresholds = ours.thresholds_for(*ours.sources)
    if thresholds.facts_shared_min and not thresholds.facts_shared_of_more_min:
        yield warning(
            "The fact guard (facts_shared_min) has revision 1: other articles in the same words are flagged as "
            "duplicates of an article with hardly any facts.",
            f"Fill a new store with revision {FACTS_REVISION}: use dupwatch migrate (docs/operate/migration.md).",
        )


def _reader_findings(config: Config) -> Iterator[Finding]:
    section = config.source
    if section.body_format != "text" and section.reader_revision < READER_REVISION:
        read = "Pages are" if section.body_format == "article" else "HTML is"
        yield warning(
            f"{read} read by revision {section.reader_revision}, for which the store was made: ruby annotations "
            "count as text, and some sloppy or doubly escaped markup is not read as a browser shows it.",
            f"Fill a new store with revision {READER_REVISION}: use dupwatch migrate (docs/operate/migration.md).",
        )


def _stretch_findings(ours: JudgeSettings) -> Iterator[Finding]:
    if not ours.stretches_max:
        yield warning(
            "A text that is changed and changed back, or retracted and published again, does not come back into force: "
            "judge.stretches_max is 0, as in stores made before this setting existed.",
            "Fill a new store with dupwatch migrate (docs/operate/migration.md).",
        )


def _settings_finding(config: Config, stored: bytes, ours: JudgeSettings) -> Finding:
    try:
        differing = differences(settings_in(stored), ours)
    except ValueError as error:
        return _unreadable_finding(error)
    if differing:
        return wrong(
            StoreMismatch,
            f"The store is bound to settings that differ from {ours.short_digest()}: {'; '.join(differing)}.",
            "Use the settings of the store (dupwatch store stats --json shows them), or name another store.",
        )
    try:
        stores.with_configured_secret(Binding.decode(stored), stores.configured_secret(config))
    except StoreMismatch as error:
        return wrong(StoreMismatch, f"{str(error)[0].upper()}{str(error)[1:]}", "See docs/operate/security.md.")
    except ValueError as error:
        # An empty member counts as a missing one when settings are compared, but not when they are decoded.
        return _unreadable_finding(error)
    return ok(f"The store is bound to these settings, {ours.short_digest()}.")


def _unreadable_finding(error: ValueError) -> Finding:
    return wrong(StoreMismatch, f"The settings of the store cannot be read: {error}.", "Name another store.")


@dataclass(frozen=True, slots=True)
class StoreWindow:
    """The size of a store's window, the capacity that was planned for it, and the settings of its consumers."""

    size: WindowSize
    planned: CapacityPlan | None
    settings: JudgeSettings
    remote: bool

    @property
    def larger_plan(self) -> str | None:
        """The plan to move to, or None if the store has not outgrown its own plan.

        A store with too few postings for an estimate has not outgrown its plan, nor has a store with at most the
        planned number of articles, for which its plan was chosen.
        """
        if self.size.error is None or (self.planned is not None and self.size.low <= self.planned.articles):
            return None
        return plan_to_move_to(self.settings.plan, self.size.low, LookUpSettings.of(self.settings), remote=self.remote)


def check_size(config: Config, settings: Callable[[], JudgeSettings]) -> Iterator[Finding]:
    """Check whether the window has outgrown the plan of the store.

    The size of the window is estimated from a sample of its postings. In a small embedded store, articles are counted.
    """
    try:
        with stores.opened_store(config, readonly=True) as store:
            if store.settings() is None:
                yield ok("The store is empty: no articles have been judged with it yet.")
                return
            judge = settings()
            remote = stores.is_remote(config)
            size = window_size(store, judge.plan, judge.window_ms, SystemRandom().randrange(_SEEDS))
            if size.error is None and not remote:
                size = counted_window(store, judge.window_ms, _COUNTED_MAX) or size
            window = StoreWindow(size, store.planned(), judge, remote)
    except StoreUnavailable as error:
        yield unchecked(f"The store does not answer: {error}", "Start the store, or correct store.url.")
        return
    yield size_finding(window, config)


def size_finding(window: StoreWindow, config: Config) -> Finding:
    """Return a finding on whether the window of a store has outgrown its plan, or may outgrow its disks."""
    plan, planned = window.settings.plan.name, window.planned
    expected = f", of {planned.articles:,} expected" if planned is not None else ""
    summary = f"The window has {described_size(window.size)}{expected}"
    larger = window.larger_plan
    if larger is not None:
        look_up = LookUpSettings.of(window.settings)
        limit = rounded(outgrown_articles(window.settings.plan, look_up, remote=window.remote))
        cost = look_up_cost(window.settings.plan, window.size.articles, look_up)
        return warning(
            f"{summary}, and has outgrown the plan {plan}: a look-up reads about {cost}, and from {limit:,} articles "
            f"on, judging takes twice as long as with {larger}.",
            _move_commands(config, window.size.articles, larger),
        )
    if planned is not None and window.size.low > _GROWTH_MAX * planned.articles:
        return warning(
            f"{summary}. The plan {plan} still fits.",
            "Check the free space on the disks. To see what a store of this size needs: dupwatch store init --articles"
            f" {window.size.articles} --store {config.store.url}.",
        )
    return ok(f"{summary}; the plan {plan} fits.")


def _move_commands(config: Config, articles: int, larger: str) -> str:
    """Return the commands that move to a larger plan."""
    new = f'a copy of the configuration with judge.plan = "{larger}" and a store.url of its own'
    if not source_side(config).is_shared:
        return f"Judge the window again, with a new store: dupwatch backfill FILE --config NEW, where NEW is {new}."
    return (
        f"Run dupwatch store init --config NEW --articles {articles} --apply, then dupwatch migrate --config NEW"
        f" --from-group {config.kafka.group} --from-store {config.store.url}, where NEW is {new}, and a kafka.group of"
        " its own (docs/operate/migration.md)."
    )
