"""What a store is made for: a block plan, and the number of articles that are expected in the window.

``dupwatch store init --articles`` writes it into ``meta``. It is no setting: a store is bound to its settings by the
first consumer, as any other store, but that consumer is refused with another plan.
"""

from typing import Annotated

import msgspec


class Planned(msgspec.Struct, frozen=True):
    """The plan of a store, and the number of articles expected in its window."""

    articles: Annotated[int, msgspec.Meta(ge=1)]
    plan: str


def encode_planned(planned: Planned) -> bytes:
    """Return the JSON that ``meta`` holds."""
    return msgspec.json.encode(planned)


def decode_planned(value: bytes) -> Planned:
    """Decode it. Unknown members are skipped. Raises ``ValueError``."""
    return msgspec.json.decode(value, type=Planned)
