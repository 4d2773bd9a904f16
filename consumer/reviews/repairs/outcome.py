"""The outcome of a repair: the reason for a refusal, or events of the changed stories."""

from typing import Literal

from sqlalchemy import Connection

from consumer.reviews.outbox.story_events import StoryChange, write_growth_events, write_story_events
from consumer.reviews.ranking.preferred import MemberChanges
from consumer.reviews.ranking.preferring import refresh_preferred

RepairRefusal = Literal["gone", "kind", "released", "root", "split", "merged"]
"""Why a repair was refused.

``gone``: there is no such flag or story, or nothing to undo. ``kind``: the entry is not a copy. ``released``: the flag
was released, so its version is kept. ``root``: the version belongs to the original of its story. ``split``: the version
is already split off. ``merged``: the stories are already one.
"""


class RepairRefused(Exception):  # noqa: N818  # named for the repair; it is not a failure
    """A repair was refused, and nothing was changed."""

    def __init__(self, refusal: RepairRefusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


def write_repair_events(connection: Connection, change: StoryChange, now_ms: int) -> None:
    """Write the events of a repair into the outbox: the repair, growth of stories, and new preferred members."""
    write_story_events(connection, [change], now_ms)
    concerned = {change.story_id} if change.into is None else {change.story_id, change.into}
    write_growth_events(connection, concerned, now_ms)
    refresh_preferred(connection, MemberChanges(stories=concerned), now_ms)
