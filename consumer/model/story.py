"""Story events: how an original and its copies develop in the console."""

from typing import Annotated, Final, Literal

import msgspec

from consumer.model.verdict import Timestamp

STORY_SCHEMA: Final = "dupwatch.story/1"

StoryCause = Literal["began", "grew", "flood", "preferred", "decided", "split", "merged"]
Count = Annotated[int, msgspec.Meta(ge=0)]
Number = Annotated[int, msgspec.Meta(ge=1)]


class StoryMember(msgspec.Struct, frozen=True, kw_only=True):
    """A version in a story. ``version`` and ``source`` are null if unknown."""

    id: str
    version: str | None
    source: str | None


class StoryEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a story, with the story after the change; ``docs/use/events.md`` describes the fields.

    Each event is sent at least once. Events of one story are sent in the order of ``event``. The console assigns the
    numbers ``event`` and ``story``. ``sources`` counts the known sources of the original and its copies. ``preferred``
    is the member that represents the story. ``person`` names who decided, split or merged; it is null if the console
    made the change itself. ``member`` is the version that was split off, and ``into`` the number of the story that this
    one was split into or merged into. Both are null for other causes.
    """

    schema: Literal["dupwatch.story/1"] = STORY_SCHEMA
    event: Number
    cause: StoryCause
    at: Timestamp
    story: Number
    original: str
    source: str | None
    copies: Count
    open_copies: Count
    sources: Count
    preferred: StoryMember
    first_at: Timestamp
    last_at: Timestamp
    person: str | None
    member: StoryMember | None
    into: Number | None


def encode_story(event: StoryEvent) -> bytes:
    """Return the event as JSON without a line end; equal events give equal bytes."""
    return msgspec.json.encode(event)
