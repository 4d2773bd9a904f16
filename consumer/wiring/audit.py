"""Opens the audit log, and records the changes that commands make."""

import os
import pwd
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from consumer.config.config import Config
from consumer.model.errors import SinkError
from consumer.web.audit_log import AuditLog, ChangeRecord
from consumer.wiring.components import write_options
from storage.clock import now_ms


@contextmanager
def opened_audit_log(config: Config, report: Callable[[object], None] = lambda _: None) -> Iterator[AuditLog | None]:
    """Open the configured audit log, or yield None if none is configured. Raises ``SinkError`` if it cannot be written.

    ``report`` gets the occurrences that ``AuditLog`` reports. Commands need none, because a failure ends them with a
    message.
    """
    if config.service.audit is None:
        yield None
        return
    with closing(AuditLog(Path(config.service.audit), write_options(config), report)) as log:
        yield log


def record_change(audit_log: AuditLog | None, action: str, name: str, result: str) -> None:
    """Record a change in the audit log, if there is one. Raises ``SinkError``; the change is not undone."""
    try:
        record_changes(audit_log, action, [name], result)
    except SinkError as error:
        raise SinkError(f"{name} is {result}, but {error}") from error


def record_changes(audit_log: AuditLog | None, action: str, names: Sequence[str], result: str) -> None:
    """Record the same change of several things in the audit log, if there is one.

    Raises ``SinkError``; nothing is undone.
    """
    if audit_log is not None and names:
        at_ms, owner = now_ms(), current_user()
        audit_log.append(
            [ChangeRecord(at_ms=at_ms, owner=owner, action=action, id=name, result=result) for name in names]
        )


def current_user() -> str:
    """Return the name of the user who runs this process, from the system and not from the environment."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"
