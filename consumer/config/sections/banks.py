"""Known texts: ``[banks]``."""

from consumer.config.setting_types import Section, Text


class BanksSection(Section):
    """Known texts that articles are compared with, whatever their age."""

    url: Text | None = None
    """A file of banks, or kafka://HOST:PORT/PREFIX for the topic PREFIX.banks. dupwatch bank changes them, and runs
    follow the changes. When unset, there are no banks."""
