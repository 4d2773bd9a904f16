"""``dupwatch reviews``: write the decisions made in the console, for ``dupwatch evaluate --reviews``."""

from typing import Any, Final

from consumer.cli.extras import open_database
from consumer.cli.options import ConfigOption, SetOption, command_config
from consumer.cli.results import results, write_json
from consumer.evaluation.reviewed_pairs import SCHEMA
from consumer.text.install_advice import CONSOLE_PACKAGES, import_extra
from consumer.text.timestamps import rfc3339

_COMMAND: Final = "dupwatch reviews"


def reviews(config: ConfigOption = None, overrides: SetOption = None) -> None:
    """Write all flags and near misses of the console, one JSON line each, with the decisions about them.

    The lines include pairs without a decision, copies that people reported as missed, and stories that were split or
    merged. dupwatch evaluate --reviews reads them.
    """
    with open_database(command_config(config, overrides), _COMMAND) as database:
        reviewed_pairs = import_extra("consumer.reviews.pairs.reviewed_pairs", CONSOLE_PACKAGES, "console", _COMMAND)
        with results(), database.read_connection() as connection:
            for pair in reviewed_pairs.pairs(connection):
                write_json(_line(pair))


def _line(pair: Any) -> dict[str, object]:  # noqa: ANN401  # of an extra
    return {
        "schema": SCHEMA,
        "kind": pair.kind,
        "similarity": pair.similarity,
        "distance": pair.distance,
        "source": pair.source or "",
        "original_source": pair.original_source or "",
        "sampled_in": pair.sampled_in,
        "decision": pair.decision,
        "arrived_at": None if pair.arrived_ms is None else rfc3339(pair.arrived_ms),
        "at": None if pair.at_ms is None else rfc3339(pair.at_ms),
        "person": pair.person,
        "reason": pair.reason,
        **({} if pair.repaired is None else pair.repaired._asdict()),
    }
