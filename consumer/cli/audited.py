"""Records what a command changed in the audit log, where one is configured."""

import os
import pwd

from consumer.audit.audit_log import AuditLog
from consumer.audit.change import Change
from consumer.model.errors import SinkError
from storage.clock import now_ms


def nobody(_occurrence: object) -> None:
    """Report to nobody: a failure ends the command with a message."""


def record_change(audit_log: AuditLog | None, action: str, name: str, result: str) -> None:
    """Record a change in the audit log, if there is one. The change stays whatever happens. Raises ``SinkError``."""
    if audit_log is None:
        return
    try:
        audit_log.append([Change(at_ms=now_ms(), owner=_user(), action=action, id=name, result=result)])
    except SinkError as error:
        raise SinkError(f"{name} is {result}, but {error}") from error


def _user() -> str:
    """Return who runs the command, by the system and not by the environment."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"
