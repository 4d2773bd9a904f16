"""The advice to install an optional package can be followed as it is printed."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from consumer.text.install_advice import Extra, install_command, requirements

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("extra", get_args(Extra))
def test_the_command_installs_the_packages_of_an_extra(extra: Extra) -> None:
    """It names packages of an index, not dupwatch, which is on none; pip takes it as it is. Here all are installed."""
    command = shlex.split(install_command(extra))
    assert command[:4] == [sys.executable, "-m", "pip", "install"]
    assert not [argument for argument in command[4:] if argument.startswith("dupwatch")]
    ended = subprocess.run([*command, "--no-index"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("already satisfied") >= len(requirements(extra)) > 0


def test_each_extra_has_its_packages() -> None:
    """All of them, and no marker is left behind one."""
    assert requirements("plot") == ["matplotlib>=3.8"]
    assert requirements("pages") == ["trafilatura<2.4,>=2.3.1"]
    assert [requirement.partition(">")[0] for requirement in requirements("tracing")] == [
        "opentelemetry-exporter-otlp-proto-http",
        "opentelemetry-sdk",
    ]
    assert [requirement.partition(">")[0] for requirement in requirements("schemas")] == [
        "confluent-kafka[avro,protobuf,schemaregistry]"
    ]


@pytest.mark.parametrize(
    ("page", "extra"),
    [
        ("console", "console"),
        ("evaluation", "plot"),
        ("formats", "pages"),
        ("streaming", "schemas"),
        ("tracing", "tracing"),
    ],
)
def test_the_documentation_has_both_ways(page: str, extra: Extra) -> None:
    """From a checkout by the extra, from anywhere else by its packages."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert f"pip install -e '.[{extra}]'" in text
    assert " ".join(f"'{requirement}'" for requirement in requirements(extra)) in text
    assert "dupwatch[" not in text
