"""The advice to install an optional package can be followed as it is printed."""

import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import get_args

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from consumer.text.install_advice import Extra, install_command, requirements
from tests.examples import drawn

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("extra", drawn(get_args(Extra), 4))
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
    assert requirements("pages") == ["lxml-html-clean>=0.4.6", "trafilatura<2.4,>=2.3.1"]
    assert [requirement.partition(">")[0] for requirement in requirements("tracing")] == [
        "opentelemetry-exporter-otlp-proto-http",
        "opentelemetry-sdk",
    ]
    assert [requirement.partition(">")[0] for requirement in requirements("schemas")] == [
        "confluent-kafka[avro,protobuf,schemaregistry]"
    ]


def needed(requirement: Requirement) -> list[Requirement]:
    """What a requirement needs with its extras, as newer pips understand their names."""
    extras: list[str] = [*map(canonicalize_name, requirement.extras)] or [""]
    declared = map(Requirement, metadata.requires(requirement.name) or [])
    return [each for each in declared if each.marker is None or any(each.marker.evaluate({"extra": e}) for e in extras)]


@pytest.mark.parametrize("extra", get_args(Extra))
def test_no_package_comes_by_an_extra_that_pip_may_not_know(extra: Extra) -> None:
    """Pip 23.2 compares names of extras letter by letter, and goes on without: such packages are named here."""
    named = {canonicalize_name(Requirement(requirement).name) for requirement in requirements(extra)}
    waiting = [Requirement(requirement) for requirement in requirements(extra)]
    known: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in known:
            continue
        known.add(str(requirement))
        provided = metadata.metadata(requirement.name).get_all("Provides-Extra") or []
        if not requirement.extras <= set(provided):
            alone = needed(Requirement(requirement.name))
            by_extra = [each for each in needed(requirement) if each not in alone]
            assert {canonicalize_name(each.name) for each in by_extra} <= named, requirement
        waiting += needed(requirement)
    assert len(known) >= len(named)


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
