"""The one way in which a payload is refused that does not match its schema, whatever the format."""

from consumer.model.article import Reason
from consumer.model.errors import BadRecord


def mismatch(why: str) -> BadRecord:
    """Return the error for a payload that does not match its schema."""
    return BadRecord(Reason.SCHEMA_MISMATCH, f"the payload does not match its schema: {why}")
