"""Known texts: ``[banks]``."""

from typing import Annotated

from pydantic import Field

from consumer.config.setting_types import Section, Text


class BanksSection(Section):
    """Known texts that articles are compared with, whatever their age."""

    url: Text | None = None
    """A file of banks, or kafka://HOST:PORT/PREFIX for the topic PREFIX.banks. dupwatch bank changes them, and runs
    follow the changes. When unset, there are no banks."""
    cache: Text | None = None
    """A directory that caches the fingerprints of items, for faster starts; dupwatch creates it. When unset, every
    start computes them."""

    busy_share: Annotated[float, Field(gt=0, le=1)] = 0.01
    """An item that matches more than this share of recent articles is busy. An alert fires, and bank matches whose
    denied items are all busy are withheld, until dupwatch bank confirm. 1 switches this off."""

    busy_articles_min: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """busy_share is computed over the most recent articles: at least this many, and less than twice as many."""
