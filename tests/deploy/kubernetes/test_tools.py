"""Where kustomize and the schemas come from, with a Go that only pretends."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.kubernetes import tools
from deploy.local import fetch
from deploy.local.packages import MissingTools
from tests.cli.command import TIMEOUT_S

_GO = """#!{python}
import json, os, pathlib, sys, time
with open({calls!r}, "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
if {fails}:
    sys.exit(1)
time.sleep({sleeps_s})
if sys.argv[1] == "install":
    for name in ("kustomize", "helm"):
        (pathlib.Path(os.environ["GOBIN"]) / name).write_text("")
else:
    modules = pathlib.Path(os.environ["GOMODCACHE"])
    for name in {schemas!r}:
        (modules / name).parent.mkdir(parents=True, exist_ok=True)
        (modules / name).write_text("schema")
    print(json.dumps({{"Sum": {sums!r}.get(sys.argv[-1], ""), "Dir": str(modules)}}))
"""

Pretend = Callable[..., Path]


def program(folder: Path, name: str, text: str) -> Path:
    """Put a program into a folder."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pretend:
    """Put a Go on an else empty path; the file with its calls."""

    def pretend(*, fails: bool = False, sums: dict[str, str] | None = None, sleeps_s: float = 0) -> Path:
        calls = tmp_path / "calls"
        right = {f"{module.path}@{module.version}": module.digest for module in tools.MODULES}
        schemas = [schema for module in tools.MODULES for schema in module.schemas]
        values = {"python": sys.executable, "calls": str(calls), "fails": fails, "schemas": schemas}
        values["sleeps_s"] = sleeps_s
        program(tmp_path / "bin", "go", _GO.format(sums=right if sums is None else sums, **values))
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        return calls

    return pretend


def test_kustomize_is_built_once(go: Pretend) -> None:
    """Where there is no kustomize it is built, once, in the version that is named here."""
    calls = go()
    command = tools.kustomize()
    assert tools.kustomize() == command
    assert Path(command[0]).exists()
    assert calls.read_text().splitlines() == [f"install -ldflags=-s -w {tools.KUSTOMIZE}"]


def test_helm_is_built_once(go: Pretend) -> None:
    """In the version that is named here, for the Kubernetes that this version is for; kustomize is built besides."""
    calls = go()
    command = tools.helm()
    assert tools.helm() == command
    assert Path(command[0]).exists()
    (call,) = calls.read_text().splitlines()
    assert call.endswith(f" {tools.HELM}")
    assert "-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=27" in call
    assert tools.kustomize()[0] != command[0]


@pytest.mark.parametrize(
    ("version", "taken"), [("v3.18.4", True), ("v3.12", True), ("v4.2.1", False), ("v2.17", False)]
)
def test_a_helm_that_is_there_is_taken(go: Pretend, tmp_path: Path, version: str, *, taken: bool) -> None:
    """One of version 3; others have other templates or commands."""
    calls = go()
    path = program(tmp_path / "bin", "helm", f"#!/bin/sh\necho '{version}'\n")
    assert (tools.helm() == [str(path)]) == taken
    assert calls.exists() != taken


@pytest.mark.parametrize(
    ("name", "version", "taken"),
    [
        ("kustomize", "v5.4.3", "build"),
        ("kubectl", "Client Version: v1.32.4\nKustomize Version: v5.5.0", "kustomize"),
        ("kubectl", "Client Version: v5.0.0\nKustomize Version: v4.5.7", None),
        ("kubectl", "Client Version: v1.20.2", None),
        ("kustomize", "v3.8.7", None),
    ],
)
def test_one_that_is_there_is_taken(go: Pretend, tmp_path: Path, name: str, version: str, taken: str | None) -> None:
    """A kustomize of version 5 on the path, or in a kubectl, saves the building; older ones do not know the files."""
    calls = go()
    path = program(tmp_path / "bin", name, f"#!/bin/sh\necho '{version}'\n")
    assert (tools.kustomize() == [str(path), taken]) == (taken is not None)
    assert calls.exists() == (taken is None)


def test_schemas_are_fetched_once(go: Pretend) -> None:
    """The schemas that are named, and nothing else, are in the folder; modules are thrown away."""
    calls = go()
    folder = tools.schemas()
    assert tools.schemas() == folder
    wanted = [Path(schema).name for module in tools.MODULES for schema in module.schemas]
    assert sorted(path.name for path in folder.iterdir()) == sorted(wanted)
    assert len(calls.read_text().splitlines()) == len(tools.MODULES)
    assert [path for path in fetch.home().iterdir() if path.is_dir()] == [folder]


def test_two_processes_fetch_once(go: Pretend) -> None:
    """Of two processes that need the schemas at once one fetches, and both get them."""
    calls = go(sleeps_s=0.3)
    ask = [sys.executable, "-c", "from deploy.kubernetes import tools; print(tools.schemas())"]
    both = [subprocess.Popen(ask, stdout=subprocess.PIPE) for _ in range(2)]
    outputs = [process.communicate(timeout=TIMEOUT_S)[0] for process in both]
    assert outputs[0] == outputs[1] != b""
    assert len(calls.read_text().splitlines()) == len(tools.MODULES)


def test_another_module_than_named_is_refused(go: Pretend) -> None:
    """A module whose digest is another one leaves nothing in the cache."""
    first = tools.MODULES[0]
    go(sums={f"{first.path}@{first.version}": "h1:other="})
    with pytest.raises(tools.WrongModule, match="h1:other="):
        tools.schemas()
    assert not any(path.is_dir() for path in fetch.home().iterdir())


def test_what_go_cannot_do_is_told(go: Pretend, capsys: pytest.CaptureFixture[str]) -> None:
    """A Go that fails leaves no cache, and an exit code."""
    go(fails=True)
    assert tools.main() == 1
    assert "failed (exit code 1)" in capsys.readouterr().err
    assert not any(path.is_dir() for path in fetch.home().iterdir())


def test_without_go_it_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                       capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """Where there is no Go all that is said is what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(MissingTools, match="apt-get install golang-go"):
        tools.schemas()
    assert tools.main() == 1
    assert capsys.readouterr().err == f"{tools.MISSING}\n"


def test_go_is_told_to_keep_to_itself(tmp_path: Path, go: Pretend, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Go downloads and compiles lies within the cache, and the user's flags stay."""
    go()
    recorded = tmp_path / "told"
    program(tmp_path / "bin", "go", f"#!{sys.executable}\nimport json, os\n"
            f"open({str(recorded)!r}, 'w').write(json.dumps(dict(os.environ)))\nraise SystemExit(1)\n")  # fmt: skip
    monkeypatch.setenv("GOFLAGS", "-buildvcs=false")
    assert tools.main() == 1
    variables = json.loads(recorded.read_text())
    assert variables["GOFLAGS"] == "-buildvcs=false -modcacherw -trimpath"
    assert variables["GOTOOLCHAIN"] == "local"
    cache = str(fetch.home()) + os.sep
    assert variables["GOMODCACHE"].startswith(cache)
    assert variables["GOCACHE"].startswith(cache)
