"""Types of settings that several sections share, and the base of sections."""

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from consumer.config.values import with_dotted_names
from consumer.feeds.kinds import sink_of, source_of
from consumer.text.visible import safe_url

SECTION_VALIDATION: Final = ConfigDict(extra="forbid", validate_default=True)
"""The validation of all sections. Sections derived from a dataclass pass it to their decorator."""


def _without_nul(text: str) -> str:
    # Without this check, Python raises ValueError when a path is first used.
    if "\0" in text:
        raise ValueError("it contains a NUL character; remove it")
    return text


Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Share = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, Field(min_length=1), AfterValidator(_without_nul)]
"""A name, path or URL: not empty, and without NUL."""
ClientSettings = Annotated[dict[str, str | int | float | bool], BeforeValidator(with_dotted_names)]
"""Settings of a client library; their names contain dots."""
Ranks = Annotated[dict[Text, Annotated[int, Field(ge=-1_000, le=1_000)]], BeforeValidator(with_dotted_names)]
"""Ranks of sources by name; the names may contain dots."""
SecretFiles = Annotated[dict[str, Text], BeforeValidator(with_dotted_names)]
"""Files that hold the values of a client library's settings."""


class Section(BaseModel):
    """A section that is declared in ``config``, not by the code that it configures."""

    model_config = ConfigDict(frozen=True, **SECTION_VALIDATION)


def _source_url(url: str) -> str:
    source_of(url)
    return url


def _sink_url(url: str) -> str:
    sink_of(url)
    return url


SourceUrl = Annotated[Text, AfterValidator(_source_url)]
"""The URL of a source of one of the kinds in ``feeds.kinds``."""
SinkUrl = Annotated[Text, AfterValidator(_sink_url)]
"""The URL of a sink of one of the kinds in ``feeds.kinds``."""


def _file_mode(mode: str) -> str:
    if not re.fullmatch("06[046][046]", mode):
        raise ValueError(
            'write it in octal: "0600" for the owner alone, or "0640" to let the group read; the owner must be able to '
            "read and write, and nobody may execute"
        )
    return mode


FileMode = Annotated[str, AfterValidator(_file_mode)]
"""The mode of a file in octal, such as 0640."""


def _site_url(url: str) -> str:
    """Return the address of a site without a trailing slash. Raises ``ValueError`` for any other URL."""
    parts = urlsplit(url) if safe_url(url) else None
    if parts is None or parts.netloc != url.rstrip("/").removeprefix(f"{parts.scheme}://") or "@" in parts.netloc:
        raise ValueError("write it as https://HOST or http://HOST:PORT, without a path or a password")
    try:
        # urlsplit parses the port only here.
        _ = parts.port
    except ValueError as error:
        raise ValueError("its port must be a number from 0 to 65535") from error
    return f"{parts.scheme}://{parts.netloc}"


SiteUrl = Annotated[Text, AfterValidator(_site_url)]
"""The address of a site: http:// or https:// with a host, without a path."""
