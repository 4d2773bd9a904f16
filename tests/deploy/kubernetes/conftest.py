"""The overlays as kustomize makes them. Tests that build one have the mark ``servers``: they need more than Python."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import pytest

from deploy.kubernetes import check, manifests, program, tools
from deploy.kubernetes.schemas import Schemas, read_schemas
from deploy.local.packages import MissingTools
from tests.cli.command import TIMEOUT_S, start

KUBERNETES: Final = Path(tools.__file__).parent
OVERLAYS: Final = tuple(sorted(path for path in (KUBERNETES / "overlays").iterdir() if path.is_dir()))


class Rendered(NamedTuple):
    """An overlay's documents and the secrets that it leaves to others; a test may change both."""

    documents: list[Any]
    secrets: list[Any]


class Cluster:
    """kustomize and the schemas; each overlay is built once."""

    def __init__(self, kustomize: list[str], schemas: Schemas) -> None:
        self.kustomize = kustomize
        self.schemas = schemas
        self._built: dict[str, Rendered] = {}

    def rendered(self, name: str) -> Rendered:
        """A copy of an overlay's documents."""
        if name not in self._built:
            folder = KUBERNETES / "overlays" / name
            self._built[name] = Rendered(list(manifests.build(self.kustomize, folder)), list(check.secrets_of(folder)))
        return deepcopy(self._built[name])

    def faults(self, rendered: Rendered) -> list[str]:
        """What is wrong with it."""
        return check.faults(rendered.documents, rendered.secrets, self.schemas)


def _forked(asked: Sequence[str | Path], *, env: dict[str, str], **_: object) -> "subprocess.CompletedProcess[str]":
    """Run the program as ``subprocess.run`` does, off one that has imported everything."""
    process = start(*asked[1:], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=TIMEOUT_S)
    return subprocess.CompletedProcess(asked, process.returncode, out.decode(), err.decode())


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The tools; the test is skipped where they are missing, and fails in CI."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(program, "subprocess", SimpleNamespace(run=_forked))
            yield Cluster(tools.kustomize(), read_schemas(tools.schemas()))
    except (MissingTools, subprocess.CalledProcessError) as error:
        if os.environ.get("CI", "").lower() in {"", "0", "false"}:
            pytest.skip(str(error))
        pytest.fail(str(error), pytrace=False)
