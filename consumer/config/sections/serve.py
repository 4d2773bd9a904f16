"""The HTTP service of ``dupwatch serve``: ``[service]``."""

from consumer.config.setting_types import Section, Text


class ServiceSection(Section):
    """Who may use the HTTP service, and where their changes are recorded."""

    tokens: Text | None = None
    """The file with the hashes of tokens, which dupwatch tokens edits."""
    audit: Text | None = None
    """The file to which a line is appended for each change of state."""
