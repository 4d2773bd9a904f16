"""Updates stories after the ranks of sources have changed, in the configuration or on the page of sources."""

import logging
from collections.abc import Callable, Mapping

from consumer.reviews.database import Database
from consumer.reviews.ranking.rank_changes import apply_ranks, configure_ranks
from consumer.reviews.ranking.ranks import rank_progress

log = logging.getLogger("dupwatch")


class RankUpdates:
    """The work that stores the configured ranks once, then updates the stories that lack the latest ranks.

    Used by one thread. Consoles of one database share the work. While ``has_room`` returns False, no story is updated,
    since each update may cause an event.
    """

    def __init__(
        self,
        database: Database,
        authority: Mapping[str, int],
        now_ms: Callable[[], int],
        has_room: Callable[[], bool] = lambda: True,
    ) -> None:
        self._database = database
        self._authority = authority
        self._now_ms = now_ms
        self._has_room = has_room
        self._is_configured = False

    def work(self) -> bool:
        """Update some stories, and return whether more may be updated now. Raises ``DatabaseUnavailable``."""
        if not self._is_configured:
            changed = self._database.write(lambda c: configure_ranks(c, self._authority, self._now_ms()))
            if changed:
                log.info("The ranks of %d sources have changed in the configuration; stories are updated.", changed)
            self._is_configured = True
        with self._database.read_connection() as connection:
            is_done = rank_progress(connection) is None
        if is_done or not self._has_room():
            return False
        return self._database.write(lambda c: apply_ranks(c, self._now_ms()))
