"""Settings that a user requests for a command on a store, which has its own settings.

A store is bound to the settings that it was made with, and commands that inspect it use the store's settings. A setting
is requested if it is in the configuration file, the environment or an option.
"""

from consumer.config.config import Config
from consumer.config.judging import requested_settings
from consumer.judge.settings import JudgeSettings, differences
from consumer.model.errors import ConfigError, StoreMismatch


def check_unchanged(config: Config, stored: JudgeSettings) -> None:
    """Raise ``StoreMismatch`` if requested settings differ from the store's, and ``ConfigError`` if they are invalid.

    For commands that show verdicts reached with the store's settings.
    """
    differing = differences(stored.encode(), _requested(config, stored))
    if differing:
        raise StoreMismatch(
            f"{'; '.join(differing)}. The verdicts in the store were reached with its own settings. Leave these out; "
            "to try them, use dupwatch explain on one pair or dupwatch replay on a feed."
        )


def settings_to_compare(config: Config, stored: JudgeSettings) -> JudgeSettings:
    """Return the settings for comparing stored versions: the store's, overridden by the requested ones.

    Raises ``StoreMismatch`` if a requested setting would need other records, and ``ConfigError`` if one is invalid.
    """
    requested = _requested(config, stored)
    kept = (requested.scheme, requested.plan, requested.lane1, requested.sketched, requested.extractor)
    if kept != (stored.scheme, stored.plan, stored.lane1, stored.sketched, stored.extractor):
        raise StoreMismatch(
            f"{'; '.join(differences(stored.encode(), requested))}. The records in the store were made with these "
            "settings. Leave them out, or compare two files without a store."
        )
    return requested


def _requested(config: Config, stored: JudgeSettings) -> JudgeSettings:
    try:
        return requested_settings(config, stored)
    except ValueError as error:
        raise ConfigError(f"judge: {error}") from error
