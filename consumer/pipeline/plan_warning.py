"""Warns when a window has outgrown its block plan."""

import logging
from typing import Final

log = logging.getLogger("dupwatch")

_LARGER_PLANS: Final = {"4x16": "16x28", "8x16": "4x32"}
"""The plan to move to when a window outgrows its own: rows under a wider key are shorter."""


class PlanWarning:
    """Warns once, when the articles of a batch read more than ``postings_max`` postings on average."""

    def __init__(self, plan_name: str, postings_max: int) -> None:
        self._plan_name = plan_name
        self._postings_max = postings_max
        self._warned = False

    def see(self, versions: int, postings_read: int) -> None:
        """Look at one batch: how many versions were judged, and how many postings that took."""
        if self._warned or not versions or postings_read / versions <= self._postings_max:
            return
        self._warned = True
        larger = _LARGER_PLANS.get(self._plan_name)
        log.warning(
            "Articles read %d postings on average, more than %d: the window is too large for the plan %s; %s.",
            postings_read // versions,
            self._postings_max,
            self._plan_name,
            f"migrate to {larger}, or shorten the window" if larger else "shorten the window",
        )
