"""What a check finds, and how checks are run: one after the other, each within its deadline, none hiding another."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeVar

from confluent_kafka import KafkaException

from consumer.model.errors import ConfigError, Fatal, SinkError, SourceError, StoreBroken, StoreMismatch
from storage.errors import StoreError, StoreRefused

Status = Literal["ok", "warning", "wrong", "unchecked"]
DEADLINE_S: Final = 15.0
"""What a check may take when nothing else is said."""

_REMEDIES: Final[dict[type[Fatal], str]] = {
    ConfigError: "Correct the setting that it names.",
    SourceError: "Start it, or correct source.url and what stands under [kafka.client].",
    SinkError: "Start it, or correct sink.url and what stands under [kafka.client].",
}

_Answer = TypeVar("_Answer")


class Finding(NamedTuple):
    """One sentence on what was found, and for all but ``ok`` one on what to do.

    ``means`` is the error that a run would end with because of what is ``wrong``; None where nothing is.
    """

    status: Status
    found: str
    remedy: str | None = None
    means: type[Fatal] | None = None


class Check(NamedTuple):
    """Something to be looked at. Where a check that it ``needs`` has found no ``ok``, it is not run."""

    name: str
    run: Callable[[], Iterable[Finding]]
    needs: str | None = None
    deadline_s: float = DEADLINE_S


class Result(NamedTuple):
    """What one check has found, at least one finding."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> bool:
        """Whether what this check looks at cannot be relied on by others."""
        return any(one.status in {"wrong", "unchecked"} for one in self.findings)


def sentence(text: str) -> str:
    """A phrase as a sentence: it begins with a capital letter, and ends."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def ok(found: str) -> Finding:
    """All is well."""
    return Finding("ok", found)


def warning(found: str, remedy: str) -> Finding:
    """A run works, and somebody should know."""
    return Finding("warning", found, remedy)


def wrong(means: type[Fatal], found: str, remedy: str) -> Finding:
    """A run does not work, or does not keep its promises."""
    return Finding("wrong", found, remedy, means)


def unchecked(found: str, remedy: str) -> Finding:
    """Nobody can tell from here."""
    return Finding("unchecked", found, remedy)


def examine(checks: Sequence[Check]) -> Iterator[Result]:
    """Run the checks in their order, and give the result of each as soon as it is there; never raises."""
    failed: set[str] = set()
    for check in checks:
        if check.needs in failed:
            skipped = unchecked(f"It needs what the check {check.needs!r} could not find right.", "Mend that first.")
            result = Result(check.name, (skipped,))
        else:
            result = Result(check.name, _bounded(check))
        if result.failed:
            failed.add(check.name)
        yield result


def exit_code(results: Iterable[Result]) -> int:
    """The code that a run would end with because of the first thing that is wrong; 0 where nothing is."""
    for result in results:
        for one in result.findings:
            if one.means is not None:
                return one.means.exit_code
    return 0


def first_of(ask: Callable[[], _Answer]) -> Callable[[], _Answer]:
    """The same answer for all who ask, who ask one after the other; an error is not kept."""
    kept: list[_Answer] = []

    def answer() -> _Answer:
        if not kept:
            kept.append(ask())
        return kept[0]

    return answer


def _bounded(check: Check) -> tuple[Finding, ...]:
    """Run a check on a thread, and leave that behind where it does not end: libraries have calls without a bound."""
    found: list[Finding] = []
    done = threading.Event()

    def run() -> None:
        try:
            found.extend(check.run())
        except Exception as error:  # noqa: BLE001  # one check that fails must not hide the others
            found.append(_of_error(error))
        done.set()

    threading.Thread(target=run, name=f"doctor {check.name}", daemon=True).start()
    if not done.wait(check.deadline_s):
        late = unchecked(
            f"There was no answer within {check.deadline_s:g} s.", "See whether the other end is up, and try again."
        )
        return (*found, late)
    return tuple(found)


def _of_error(error: Exception) -> Finding:
    if isinstance(error, Fatal):
        return wrong(type(error), sentence(str(error)), _REMEDIES.get(type(error), "Do what it says."))
    if isinstance(error, StoreRefused):
        return wrong(StoreMismatch, sentence(str(error)), "Do what it says, or name another store.")
    if isinstance(error, StoreError):
        return wrong(StoreBroken, sentence(str(error)), "Start what store.url names, or correct it.")
    if isinstance(error, KafkaException):
        return unchecked(f"The brokers said: {error.args[0].str()}.", "See whether this user may ask them that.")
    if isinstance(error, OSError):
        return wrong(ConfigError, sentence(str(error)), "Make it readable for this user, or correct the setting.")
    return unchecked(f"The check itself failed: {error!r}.", "Go by the other checks, and report this as a defect.")
