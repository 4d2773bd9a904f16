"""Lets the process open a descriptor for every connection that it may have.

Systems often begin with 1,024 open files, and let every process raise that to a higher limit. At the limit no
connection is accepted any more, so that none would be closed in favour of a new one: clients that do nothing would keep
out others.
"""

import resource
from typing import Final

from consumer.model.errors import ConfigError

OTHERS: Final = 256
"""Descriptors for all but connections of clients: the store, the sink, logs and libraries."""


def allow_connections(connections_max: int, setting: str = "service.connections_max") -> None:
    """Raise this process's limit of open files where it is too low. Raises ``ConfigError`` where it must not be."""
    needed = connections_max + OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise ConfigError(
            f"{setting} = {connections_max} needs {needed} open files, and this process may have {hard}: "
            f"raise the limit (ulimit -Hn, or LimitNOFILE= of the unit), or set a lower {setting}"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
