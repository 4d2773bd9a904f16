"""Which settings hold secrets, that no command prints."""

from typing import Final

SECRETS: Final = frozenset({"http.password"})
"""Settings that are secret as a whole."""
SECRETS_IN: Final = ("kafka.client", "kafka.consumer", "kafka.producer", "registry.client")
"""Settings of client libraries, some of which are secret by their name (``text.redaction.is_secret``)."""


def holds_secrets(name: str) -> bool:
    """Return whether this setting, or one below it, can be secret: a section may be given as one text by mistake."""
    return any(secret == name or secret.startswith(f"{name}.") for secret in (*SECRETS_IN, *SECRETS))
