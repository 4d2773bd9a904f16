"""Checks and their findings.

Checks run one after the other, each with a deadline. A failed check does not hide the others.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from consumer.model.errors import ConfigError, Fatal, SinkError, SourceError, StoreBroken, StoreMismatch
from storage.errors import StoreError, StoreRefused

Status = Literal["ok", "warning", "wrong", "unchecked"]
DEADLINE_S: Final = 15.0
"""Default deadline of a check."""

_REMEDIES: Final[dict[type[Fatal], str]] = {
    ConfigError: "Correct the setting that the message names.",
    SourceError: "Start the server, or correct source.url and the settings under [kafka.client].",
    SinkError: "Start the server, or correct sink.url and the settings under [kafka.client].",
}

_NO_ANSWER: Final = frozenset(
    {
        KafkaError._TIMED_OUT,  # noqa: SLF001  # the library's own name
        KafkaError._TRANSPORT,  # noqa: SLF001  # as above
        KafkaError.REQUEST_TIMED_OUT,
    }
)
"""Errors that mean that brokers did not answer. With two of three down, the last broker still answers some requests."""


class Finding(NamedTuple):
    """A sentence that says what was found and, unless the status is "ok", a sentence that says what to do.

    ``run_error`` is the error with which a run would fail; only findings with the status "wrong" have it.
    """

    status: Status
    found: str
    remedy: str | None = None
    run_error: type[Fatal] | None = None


class DoctorCheck(NamedTuple):
    """A named check. It is skipped if the check that it ``needs`` has failed.

    ``silent_error`` is the error of a run for which the brokers that the check asks do not answer.
    """

    name: str
    run: Callable[[], Iterable[Finding]]
    needs: str | None = None
    deadline_s: float = DEADLINE_S
    silent_error: type[Fatal] = SourceError


class CheckFindings(NamedTuple):
    """The findings of one check, at least one."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> bool:
        """Whether the check failed or could not be completed. Checks that need it are skipped."""
        return any(finding.status in {"wrong", "unchecked"} for finding in self.findings)


def sentence(text: str) -> str:
    """Return a phrase as a sentence, with a full stop, and a capital letter unless it begins with a setting's name."""
    names_setting = "." in text.partition(" ")[0].rstrip(".:")
    capitalised = text if names_setting else f"{text[:1].upper()}{text[1:]}"
    return capitalised if capitalised.endswith(".") else f"{capitalised}."


def ok(found: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding("ok", found)


def warning(found: str, remedy: str) -> Finding:
    """Return a finding on a problem with which a run still works."""
    return Finding("warning", found, remedy)


def wrong(run_error: type[Fatal], found: str, remedy: str) -> Finding:
    """Return a finding on a problem with which a run fails, with ``run_error``, or breaks a guarantee."""
    return Finding("wrong", found, remedy, run_error)


def unchecked(found: str, remedy: str) -> Finding:
    """Return a finding for something that could not be checked."""
    return Finding("unchecked", found, remedy)


def examine(checks: Sequence[DoctorCheck]) -> Iterator[CheckFindings]:
    """Run the checks in order and yield each result as soon as it is known. Never raises."""
    failed: dict[str | None, CheckFindings] = {}
    for check in checks:
        needed = failed.get(check.needs)
        result = CheckFindings(
            check.name, _findings_by_deadline(check) if needed is None else (_skipped_finding(needed),)
        )
        if result.failed:
            failed[check.name] = result
        yield result


def _skipped_finding(needed: CheckFindings) -> Finding:
    if any(finding.status == "wrong" for finding in needed.findings):
        return unchecked(f"Skipped because the check {needed.name!r} failed.", "Fix that check first.")
    return unchecked(f"Skipped because the check {needed.name!r} was not completed.", "See its result above.")


def exit_code(results: Iterable[CheckFindings]) -> int:
    """Return the exit code of a run that fails with the first wrong finding; 0 if nothing is wrong."""
    for result in results:
        for finding in result.findings:
            if finding.run_error is not None:
                return finding.run_error.exit_code
    return 0


def _findings_by_deadline(check: DoctorCheck) -> tuple[Finding, ...]:
    """Run a check on a thread and return its findings. Abandon it at the deadline: some calls have no time-out."""
    found: list[Finding] = []
    done = threading.Event()

    def run() -> None:
        try:
            found.extend(check.run())
        except Exception as error:  # noqa: BLE001  # one check that fails must not hide the others
            found.append(_finding_of(error, check.silent_error))
        done.set()

    threading.Thread(target=run, name=f"doctor {check.name}", daemon=True).start()
    if not done.wait(check.deadline_s):
        late = unchecked(f"No answer within {check.deadline_s:g} s.", "Check that the server is up, and try again.")
        return (*found, late)
    return tuple(found)


def _finding_of(error: Exception, silent_error: type[Fatal]) -> Finding:
    if isinstance(error, Fatal):
        return wrong(type(error), sentence(str(error)), _REMEDIES.get(type(error), "Follow the message."))
    if isinstance(error, StoreRefused):
        return wrong(StoreMismatch, sentence(str(error)), "Follow the message, or name another store.")
    if isinstance(error, StoreError):
        return wrong(StoreBroken, sentence(str(error)), "Start the store that store.url names, or correct store.url.")
    if isinstance(error, KafkaException):
        return _kafka_finding(error.args[0], silent_error)
    if isinstance(error, OSError):
        return wrong(ConfigError, sentence(str(error)), "Make the file readable for this user, or correct the setting.")
    return unchecked(f"The check itself failed: {error!r}.", "Rely on the other checks, and report this as a bug.")


def _kafka_finding(error: KafkaError, silent_error: type[Fatal]) -> Finding:
    if error.code() in _NO_ANSWER:
        return wrong(
            silent_error,
            f"The brokers do not answer in time: {error.str().rstrip('.')}.",
            "Start the brokers that are down: the others have no controller without a majority.",
        )
    return unchecked(f"The brokers answered with an error: {error.str()}.", "Check the permissions of this Kafka user.")
