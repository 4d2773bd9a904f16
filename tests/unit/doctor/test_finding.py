"""Checks run one after the other, and a failed one hides no other."""

import threading
import time
from collections.abc import Iterator

from confluent_kafka import KafkaError, KafkaException

from consumer.doctor.finding import (
    CheckFindings,
    DoctorCheck,
    Finding,
    examine,
    exit_code,
    ok,
    unchecked,
    warning,
    wrong,
)
from consumer.model.errors import ConfigError, SinkError, SourceError, StoreBroken, StoreMismatch
from storage.errors import StoreRefused, StoreUnavailable


def failing(error: Exception) -> DoctorCheck:
    """Yield one finding that is ok, then fail."""

    def run() -> Iterator[Finding]:
        yield ok("So far.")
        raise error

    return DoctorCheck("failing", run)


def test_a_check_that_fails_hides_neither_itself_nor_others() -> None:
    """Its earlier findings stay, its error is reported, and the next check runs."""
    first, second = examine([failing(RuntimeError("oops")), DoctorCheck("other", lambda: [ok("Fine.")])])
    assert [finding.status for finding in first.findings] == ["ok", "unchecked"]
    assert "oops" in first.findings[1].found
    assert second == CheckFindings("other", (ok("Fine."),))


def test_a_check_without_an_end_is_left_behind() -> None:
    """At its deadline it counts as unchecked, and the next check runs."""
    forever = threading.Event()

    def hang() -> Iterator[Finding]:
        yield ok("Begun.")
        forever.wait(60)

    began_s = time.monotonic()
    first, second = examine([DoctorCheck("hangs", hang, deadline_s=2.0), DoctorCheck("other", lambda: [ok("Fine.")])])
    assert time.monotonic() - began_s < 30
    assert [finding.status for finding in first.findings] == ["ok", "unchecked"]
    assert "within 2 s" in first.findings[1].found
    assert second.findings == (ok("Fine."),)
    forever.set()


def test_what_needs_a_check_that_failed_is_not_run() -> None:
    """It names the failed check, as do checks that need it in turn; a warning does not count as failed."""
    ran = []

    def note(name: str) -> list[Finding]:
        ran.append(name)
        return [warning("Hm.", "Look.")]

    checks = [
        DoctorCheck("a", lambda: [wrong(ConfigError, "No.", "Mend.")]),
        DoctorCheck("b", lambda: note("b"), "a"),
        DoctorCheck("c", lambda: note("c"), "b"),
        DoctorCheck("d", lambda: note("d")),
        DoctorCheck("e", lambda: note("e"), "d"),
    ]
    results = list(examine(checks))
    assert ran == ["d", "e"]
    assert [result.findings[0].status for result in results] == [
        "wrong",
        "unchecked",
        "unchecked",
        "warning",
        "warning",
    ]
    assert [result.findings[0].found for result in results[1:3]] == [
        "Skipped because the check 'a' failed.",
        "Skipped because the check 'b' was not completed.",
    ]


def test_errors_become_findings_by_kind() -> None:
    """An error that stops a run is wrong, a missing permission is unchecked; each finding has a remedy."""
    statuses = {
        ConfigError("a setting"): ("wrong", ConfigError),
        StoreRefused("other tables"): ("wrong", StoreMismatch),
        StoreUnavailable("no answer"): ("wrong", StoreBroken),
        PermissionError(13, "Permission denied"): ("wrong", ConfigError),
        KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)): ("unchecked", None),
        KafkaException(KafkaError(KafkaError._TIMED_OUT, "waiting for controller")): ("wrong", SourceError),
    }
    for error, (status, means) in statuses.items():
        (result,) = examine([failing(error)])
        last = result.findings[-1]
        assert (last.status, last.run_error) == (status, means), error
        assert last.remedy, error


def test_the_exit_code_is_that_of_the_first_thing_that_is_wrong() -> None:
    """Warnings and unchecked findings do not change the exit code."""
    fine = CheckFindings("a", (ok("Fine."), warning("Hm.", "Look."), unchecked("Who knows.", "Look.")))
    assert exit_code([fine]) == 0
    bad = CheckFindings("b", (wrong(SinkError, "No.", "Mend."), wrong(ConfigError, "No.", "Mend.")))
    assert exit_code([fine, bad, CheckFindings("c", (wrong(ConfigError, "No.", "Mend."),))]) == SinkError.exit_code
