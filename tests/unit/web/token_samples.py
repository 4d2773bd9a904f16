"""Tokens for tests, and the system's calls that a test lets fail."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from consumer.web.token import Role
from consumer.web.token_file import NewToken, add_token

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def add(
    path: Path,
    name: str,
    *roles: Role,
    now: datetime = NOON,
    lifetime: timedelta = timedelta(days=90),
    owner: str = "An Na",
) -> str:
    """Add a token and return its secret."""
    shown: list[str] = []
    add_token(path, NewToken(name, owner, roles or (Role.READER,), lifetime), now, shown.append)
    return shown[0]
