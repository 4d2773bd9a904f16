"""Events of stories: an original and its copies, and what became of them in the console."""

from typing import Annotated, Final, Literal

import msgspec

from consumer.model.verdict import Timestamp

STORY_SCHEMA: Final = "dupwatch.story/1"

StoryCause = Literal["began", "grew", "flood", "preferred", "decided", "split", "merged"]
Count = Annotated[int, msgspec.Meta(ge=0)]
Number = Annotated[int, msgspec.Meta(ge=1)]


class StoryMember(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a story. ``version`` and ``source`` are null where they are not known."""

    id: str
    version: str | None
    source: str | None


class StoryEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a story, and the story as it is after it; ``docs/use/events.md`` describes the fields.

    Sent at least once, and in the order of ``event`` for each story. ``story`` is a number of the console. ``sources``
    counts the sources of the original and its copies, as far as known. ``preferred`` is the member that stands for the
    story. ``person`` is who decided, split or merged, null where the console did. ``member`` is the version that was
    split off, and ``into`` the number of the story that this one was split into or merged into; both are null for
    other causes.
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
