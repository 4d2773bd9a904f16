"""The outcome of a repair: why it was refused, or the change of a story that other systems are told of."""

from typing import Literal

from sqlalchemy import Connection

from consumer.reviews.outbox.story_events import StoryChange, tell_of_growth, tell_of_stories
from consumer.reviews.ranking.preferred import MemberChanges
from consumer.reviews.ranking.preferring import prefer_again

RepairRefusal = Literal["gone", "kind", "released", "root", "split", "merged"]
"""Why a repair was refused.

``gone``: there is no such flag or story, or nothing to undo. ``kind``: an entry is not a copy. ``released``: a flag was
released, so its version is kept. ``root``: a version belongs to the original of its story. ``split``: it is split off
already. ``merged``: the two are one story already.
"""


class RepairRefused(Exception):  # noqa: N818  # named for the repair: nothing failed
    """A repair was refused, and nothing was changed."""

    def __init__(self, why: RepairRefusal) -> None:
        super().__init__(why)
        self.why = why


def tell(connection: Connection, change: StoryChange, now_ms: int) -> None:
    """Write the events of a repair into the outbox: of itself, of growth, and of members preferred from now on."""
    tell_of_stories(connection, [change], now_ms)
    concerned = {change.story_id} if change.into is None else {change.story_id, change.into}
    tell_of_growth(connection, concerned, now_ms)
    prefer_again(connection, MemberChanges(stories=concerned), now_ms)
