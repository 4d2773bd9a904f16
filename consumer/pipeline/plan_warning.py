"""Warns when a window has outgrown its block plan."""

import logging

log = logging.getLogger("dupwatch")


class PlanWarning:
    """Warns once, when the articles of a batch read more than ``postings_max`` postings on average.

    ``larger`` is the plan to move to, None if there is none.
    """

    def __init__(self, plan_name: str, larger: str | None, postings_max: int) -> None:
        self._plan_name = plan_name
        self._larger = larger
        self._postings_max = postings_max
        self._warned = False

    def see(self, versions: int, postings_read: int) -> None:
        """Look at one batch: how many versions were judged, and how many postings that took."""
        if self._warned or not versions or postings_read / versions <= self._postings_max:
            return
        self._warned = True
        log.warning(
            "Articles read %d postings on average, more than %d: the window is too large for the plan %s; %s.",
            postings_read // versions,
            self._postings_max,
            self._plan_name,
            f"move to {self._larger} with dupwatch migrate, or shorten the window"
            if self._larger
            else "shorten the window",
        )
