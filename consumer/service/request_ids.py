"""Ids of requests, in answers, problems and logs: the client's own where it is sane."""

import re
import uuid
from typing import Final

from consumer.text.redaction import without_credentials

HEADER: Final = "x-request-id"
CHARS_MAX: Final = 128
_SANE: Final = re.compile(rf"[!-~]{{1,{CHARS_MAX}}}", re.ASCII)


def request_id(sent: str | None) -> str:
    """Return what the client sent if it is visible ASCII, not too long and no secret, otherwise a new id."""
    if sent is not None and _SANE.fullmatch(sent) and without_credentials(sent) == sent:
        return sent
    return uuid.uuid4().hex
