"""The actions of ``dupwatch bank scan`` on stored articles: count, ask for confirmation, scan again and act."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from consumer.banks.bank import Banks
from consumer.cli import render
from consumer.cli.banks.store_scan import compare_versions, show_counts
from consumer.cli.prompts import ask_confirmation
from consumer.cli.results import results, write
from consumer.config.config import Config
from consumer.store_tools.bank_actions import AllowedFlag, DeniedArticle, allowed_flags, denied_articles
from consumer.store_tools.bank_matches import StoredMatch
from consumer.store_tools.bank_scan import ScanCounts
from consumer.store_tools.releases import Attribution
from consumer.text.counts import counted
from consumer.web.audit_log import AuditLog
from consumer.wiring.audit import opened_audit_log, record_change, record_changes
from consumer.wiring.comparable_store import bound_store
from consumer.wiring.feeds import is_followed
from consumer.wiring.retroaction import BankReleases, ReleasedFlags, TopicEventWriter, report_denied

_NAMES_SHOWN_MAX: Final = 10
_Choice = Callable[[Iterable[StoredMatch]], Iterator[AllowedFlag | DeniedArticle]]


def release_allowed(config: Config, items: Banks, by: str, reason: str | None, *, yes: bool) -> None:
    """Release the flagged articles that repeat these items, and write the events.

    Events of earlier releases with the same ``by`` and ``reason`` are written again, since the earlier command may have
    ended before it wrote them.
    """
    # Raises ConfigError for an invalid name or reason.
    Attribution(by, reason)

    def chosen(found: Iterable[StoredMatch]) -> Iterator[AllowedFlag]:
        return allowed_flags(found, by, reason)

    if not yes and not _confirm(_preview(config, items, chosen), "Flagged articles to release", "Release them?"):
        return
    counts, released, repeated = ScanCounts(), 0, 0

    def so_far() -> str:
        return f"Released: {released:,}. Run the command again, with the same --by and --reason, to release the others"

    with (
        _report_when_stopped(counts, so_far),
        opened_audit_log(config) as audit_log,
        bound_store(config, readonly=False) as opened,
        BankReleases.opened(opened) as releases,
        results(),
    ):
        for compared in compare_versions(opened, items, counts):
            done = _release_flags(releases, list(chosen(compared.stored_matches())), audit_log)
            released, repeated = released + len(done.events) - done.again, repeated + done.again
            for event in done.events:
                write(event.encoded + b"\n")
    show_counts(counts)
    _print_message(f"Released: {released:,}.")
    if repeated:
        _print_message(f"Released by an earlier run, and written again: {repeated:,}.")
    if released and not is_followed(config):
        _print_message("No events were sent: releases go to topics, --sink kafka://HOST:PORT/PREFIX.")


def _release_flags(releases: BankReleases, flags: Sequence[AllowedFlag], audit_log: AuditLog | None) -> ReleasedFlags:
    """Release flags, and record each new release in the audit log. If an error is raised, record all as unknown."""
    fresh = [flag.stored.record.id for flag in flags if not flag.is_released]
    try:
        done = releases.release(flags)
    except BaseException:
        record_changes(audit_log, "articles.release", fresh, "unknown")
        raise
    released = [event.verdict.id for event in done.events if event.verdict.id in fresh]
    record_changes(audit_log, "articles.release", released, "unique")
    return done


def send_denied(config: Config, items: Banks, target: str, *, yes: bool) -> None:
    """Send an event for each of these items that a version in force repeats but its verdict does not name.

    Versions without a verdict are left out. The events are written to standard output, too.
    """
    with TopicEventWriter.opened(config) as events:
        if not yes and not _confirm(_preview(config, items, denied_articles), "Events to send", "Send them?"):
            return
        counts, sent = ScanCounts(), 0

        def so_far() -> str:
            return f"Sent events: {sent:,}. Run the command again: it sends the same events again, and then the others"

        with (
            _report_when_stopped(counts, so_far),
            opened_audit_log(config) as audit_log,
            bound_store(config) as opened,
        ):
            try:
                with results():
                    for compared in compare_versions(opened, items, counts):
                        articles = list(denied_articles(compared.stored_matches()))
                        report_denied(events, articles)
                        for article in articles:
                            write(article.match + b"\n")
                        sent += len(articles)
            finally:
                if sent:
                    record_change(audit_log, "banks.send", target, counted(sent, "event"))
    show_counts(counts)
    _print_message(f"Sent events: {sent:,}.")


@contextmanager
def _report_when_stopped(counts: ScanCounts, so_far: Callable[[], str]) -> Iterator[None]:
    """If a scan is stopped or fails, print how far it got."""
    try:
        yield
    except BaseException:
        if counts.versions:
            stopped = f"Stopped after {counts.versions:,} compared versions"
            _print_message(f"{stopped}; it is unknown what was done about the last ones. {so_far()}.")
        raise


@dataclass(slots=True)
class _Preview:
    """The number of releases to make or events to send, and the article ids of the first few.

    ``already_released`` counts the articles that an earlier run released.
    """

    count: int = 0
    already_released: int = 0
    names: list[str] = field(default_factory=list)

    def add(self, each: AllowedFlag | DeniedArticle) -> None:
        if isinstance(each, AllowedFlag) and each.is_released:
            self.already_released += 1
            return
        self.count += 1
        if len(self.names) < _NAMES_SHOWN_MAX:
            self.names.append(each.stored.record.id)


def _preview(config: Config, items: Banks, chosen: _Choice) -> _Preview:
    preview = _Preview()
    with bound_store(config) as opened:
        for compared in compare_versions(opened, items, ScanCounts()):
            for each in chosen(compared.stored_matches()):
                preview.add(each)
    return preview


def _confirm(preview: _Preview, heading: str, question: str) -> bool:
    """Print how much there is to do, ask for confirmation on the terminal, and return the answer.

    Return False without a prompt if there is nothing to do.
    """
    shown = ", ".join(map(render.plain, preview.names))
    more = f" and {preview.count - len(preview.names):,} more" if preview.count > len(preview.names) else ""
    _print_message(f"{heading}: {preview.count:,}" + (f" ({shown}{more})." if shown else "."))
    if preview.already_released:
        _print_message(f"Released by an earlier run, to be written again: {preview.already_released:,}.")
    if not preview.count + preview.already_released:
        return False
    return ask_confirmation(question)


def _print_message(sentence: str) -> None:
    render.console(stderr=True).print(sentence)
