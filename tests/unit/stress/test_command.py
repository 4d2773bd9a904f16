"""What ``dupwatch stress`` refuses."""

import pytest
from typer.testing import CliRunner

from consumer.cli.main import app
from consumer.model.errors import ConfigError, DupwatchError, SinkError

NO_BROKER = ("--source", "kafka://127.0.0.1:1/a", "--sink", "kafka://127.0.0.1:1/p")


@pytest.mark.parametrize(
    ("arguments", "kind", "expected"),
    [
        ((), ConfigError, "name --source TOPIC and --sink PREFIX, or --service URL"),
        (("--source", "feed.jsonl", "--sink", "kafka://127.0.0.1:1/p"), ConfigError, "nowhere to send"),
        (("--source", "kafka://127.0.0.1:1/a,b", "--sink", "kafka://127.0.0.1:1/p"), ConfigError, "names 2 topics"),
        (("--source", "kafka://127.0.0.1:1/a", "--sink", "kafka://127.0.0.1:1/p,q"), ConfigError, "name one"),
        (("--source", "kafka://127.0.0.1:1/a", "--service", "http://127.0.0.1:1"), ConfigError, "cannot be combined"),
        (("--check",), ConfigError, "name it with --service"),
        (("--service", "http://127.0.0.1:1", "--burst", "10x9s/5s"), ConfigError, "shorter than its period"),
        (("--service", "http://127.0.0.1:1", "--language", "fr"), ConfigError, "choose from zh, en, ja"),
        (("--service", "http://127.0.0.1:1", "--warm-up", "60"), ConfigError, "must be less than --seconds"),
        (("--service", "http://127.0.0.1:1", "--rate", "9999", "--seconds", "9999"), ConfigError, "at most 1,000,000"),
        (("--service", "http://127.0.0.1:1", "--plot", "plot.gif"), ConfigError, ".png"),
        (("--service", "http://127.0.0.1:1"), SinkError, "Connection refused"),
        (
            ("--source", "kafka://127.0.0.1:1/a", "--sink", "kafka://127.0.0.1:1/p", "--wait", "0.5"),
            SinkError,
            "no broker",
        ),
    ],
)
def test_mistakes_are_told(arguments: tuple[str, ...], kind: type[DupwatchError], expected: str) -> None:
    """Before anything is sent."""
    ended = CliRunner().invoke(app, ["stress", *arguments])
    assert isinstance(ended.exception, kind)
    assert expected in str(ended.exception)
