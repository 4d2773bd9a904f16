"""Helm and kustomize, with which the chart and the overlays are rendered."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from deploy.helm import comparison
from deploy.kubernetes import tools
from deploy.kubernetes.manifests import read
from deploy.local.packages import MissingTools

NAMES: Final = [path.name for path in comparison.overlays()]


class Chart:
    """The chart, as Helm renders it."""

    def __init__(self, helm: list[str]) -> None:
        self.helm = helm

    def text(self, overlay: str, values: Mapping[str, Any], *options: str, **names: str) -> str:
        """What Helm prints for the values of an overlay, some of them replaced."""
        given = ["--values", str(comparison.VALUES / f"{overlay}.yaml")]
        for name, value in values.items():
            given += ["--set-json", f"{name}={json.dumps(value)}"]
        return comparison.render(self.helm, *given, *options, **names)

    def rendered(self, overlay: str, values: Mapping[str, Any] | None = None, **names: str) -> list[Any]:
        """The documents."""
        return list(read(self.text(overlay, values or {}, **names)))

    def lint(self, *options: str | Path) -> "subprocess.CompletedProcess[str]":
        """What ``helm lint`` says."""
        command = [*self.helm, "lint", "--strict", comparison.CHART, *options]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


@pytest.fixture(scope="session")
def chart() -> Chart:
    """The chart; whoever asks for these tests wants Helm, so without it they fail."""
    try:
        return Chart(tools.helm())
    except (MissingTools, subprocess.CalledProcessError) as error:
        pytest.fail(str(error), pytrace=False)
