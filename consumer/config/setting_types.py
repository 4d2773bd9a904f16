"""Types of settings that several sections share, and the base of sections."""

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from consumer.config.values import dotted
from consumer.feeds.kinds import sink_of, source_of
from consumer.text.visible import safe_url

DERIVED: Final = ConfigDict(extra="forbid", validate_default=True)
"""How a section is validated that is derived from a dataclass."""


def _without_nul(text: str) -> str:
    # The system raises ValueError for such a path, at the first use.
    if "\0" in text:
        raise ValueError("remove the NUL character: no name, path or URL has one")
    return text


Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Share = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, Field(min_length=1), AfterValidator(_without_nul)]
"""A name, path or URL: anything except the empty string, and without NUL."""
ClientSettings = Annotated[dict[str, str | int | float | bool], BeforeValidator(dotted)]
"""Settings of a client library, by their own names, which have dots in them."""
Ranks = Annotated[dict[Text, Annotated[int, Field(ge=-1_000, le=1_000)]], BeforeValidator(dotted)]
"""Ranks of sources, by the names of these, which may have dots in them."""
SecretFiles = Annotated[dict[str, Text], BeforeValidator(dotted)]
"""Files that hold the values of a client library's settings."""


class Section(BaseModel):
    """A section that is declared here, and not by the code that it configures."""

    model_config = ConfigDict(frozen=True, **DERIVED)


def _source_url(url: str) -> str:
    source_of(url)
    return url


def _sink_url(url: str) -> str:
    sink_of(url)
    return url


SourceUrl = Annotated[Text, AfterValidator(_source_url)]
"""One of the kinds in ``feeds.kinds`` that are read."""
SinkUrl = Annotated[Text, AfterValidator(_sink_url)]
"""One of the kinds in ``feeds.kinds`` that are written."""


def _file_mode(mode: str) -> str:
    if not re.fullmatch("06[046][046]", mode):
        raise ValueError(
            'write it in octal: "0600", or "0640" to let the group read; the owner reads and writes, others read, or '
            "read and write, or neither"
        )
    return mode


FileMode = Annotated[str, AfterValidator(_file_mode)]
"""The mode of a file in octal."""


def _site_url(url: str) -> str:
    """Return the address of a site without the slash at its end."""
    parts = urlsplit(url) if safe_url(url) else None
    if parts is None or parts.netloc != url.rstrip("/").removeprefix(f"{parts.scheme}://") or "@" in parts.netloc:
        raise ValueError("write it as https://HOST or http://HOST:PORT, without a path or a password")
    try:
        # urlsplit looks at the port only now.
        _ = parts.port
    except ValueError as error:
        raise ValueError("its port has to be a number from 0 to 65535") from error
    return f"{parts.scheme}://{parts.netloc}"


SiteUrl = Annotated[Text, AfterValidator(_site_url)]
"""The address of a site, http or https."""
