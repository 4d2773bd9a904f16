"""Opens the audit log that the configuration names."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from consumer.audit.audit_log import AuditLog
from consumer.config.config import Config
from consumer.wiring.components import file_writing


@contextmanager
def opened_audit_log(config: Config, report: Callable[[object], None]) -> Iterator[AuditLog | None]:
    """Open the audit log; None where none is named. Raises ``SinkError`` if it cannot be written."""
    if config.service.audit is None:
        yield None
        return
    with closing(AuditLog(Path(config.service.audit), file_writing(config), report)) as log:
        yield log
