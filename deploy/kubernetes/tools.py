"""kustomize, Helm, and the schemas of the operators' kinds: ``python -m deploy.kubernetes.tools``.

A kustomize or kubectl on the PATH is used if its kustomize has version 5, and a helm if it has version 3; otherwise Go
builds them. The schemas come from the operators' Go modules, whose digests are listed here. Each of these goes to its
own cache folder, named after a digest of the versions. A folder is created under another name, and renamed when it is
complete. As a program it fetches everything but Helm, which takes minutes to build.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Final, NamedTuple

from deploy.local.fetch import home
from deploy.local.packages import MissingTools

KUSTOMIZE: Final = "sigs.k8s.io/kustomize/kustomize/v5@v5.0.3"
"""The last version that the Go of Debian 12 (1.19) can build."""
HELM: Final = "helm.sh/helm/v3/cmd/helm@v3.12.3"
"""A version that the Go of Debian 12 can build."""
MISSING: Final = (
    "the checks of the cluster's manifests need Go; on Debian: apt-get install golang-go. Without it: make test-light"
)
_KUSTOMIZES: Final = (("kustomize", "version", "build"), ("kubectl", "version --client", "kustomize"))
"""Programs with kustomize, how each tells its version, and its command that builds a folder."""
_KUSTOMIZE_VERSION: Final = r"(?m)^(?:Kustomize Version: *)?v5\."
_HELM_VERSION: Final = r"^v3\."
_HELM_KUBERNETES: Final = "".join(
    f" -X helm.sh/helm/v3/pkg/{package}.k8sVersion{part}"
    for package in ("chartutil", "lint/rules")
    for part in ("Major=1", "Minor=27")
)
"""The Kubernetes that Helm assumes without a cluster, as in its releases; otherwise it would be 1.20."""
_GO_FLAGS: Final = "-modcacherw -trimpath"
"""Without the first flag, a folder of modules could not be removed again."""


class Module(NamedTuple):
    """A Go module: its path and version, the digest that Go gives it, and the schemas in it."""

    path: str
    version: str
    digest: str
    schemas: tuple[str, ...]


MODULES: Final = (
    Module(
        "github.com/kedacore/keda/v2",
        "v2.16.1",
        "h1:LfYsxfSX8DjetLW8q9qnriImH936POrQJvE+caRoScI=",
        (
            "config/crd/bases/keda.sh_scaledobjects.yaml",
            "config/crd/bases/keda.sh_triggerauthentications.yaml",
        ),
    ),
    Module(
        "github.com/prometheus-operator/prometheus-operator",
        "v0.80.1",
        "h1:jeqy9C8ku5coMThZh/cVrB5FwJHlV98jvnSeVnQKCQw=",
        (
            "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
            "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
        ),
    ),
)


class WrongModule(Exception):  # noqa: N818  # as MissingTools
    """A download does not match its digest."""


def kustomize() -> list[str]:
    """Return the command that builds a folder. Raises ``MissingTools``, or ``CalledProcessError`` if Go fails."""
    for program, ask, build in _KUSTOMIZES:
        path = _on_path(program, ask, _KUSTOMIZE_VERSION)
        if path is not None:
            return [path, build]
    return [_built("kustomize", KUSTOMIZE, "-s -w", "about a minute"), "build"]


def helm() -> list[str]:
    """Return the command that runs Helm. Raises the errors of ``kustomize``."""
    path = _on_path("helm", "version --template {{.Version}}", _HELM_VERSION)
    return [path or _built("helm", HELM, f"-s -w{_HELM_KUBERNETES}", "about three minutes")]


def schemas() -> Path:
    """Return the folder of the operators' CustomResourceDefinitions.

    Raises the errors of ``kustomize``, and ``WrongModule``.
    """
    digest = hashlib.sha256(repr(MODULES).encode()).hexdigest()[:16]
    return _cached(home() / f"kubernetes-schemas-{digest}", _fetch_schemas)


def _on_path(program: str, ask: str, version: str) -> str | None:
    """Return the path of a program that tells this version."""
    path = shutil.which(program)
    if path is None:
        return None
    asked = [path, *ask.split()]
    told = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=False).stdout  # noqa: S603  # found
    return path if re.search(version, told) else None


def _built(name: str, package: str, flags: str, time: str) -> str:
    """Return the path of a program in the cache. Go builds it if it is missing."""

    def build(folder: Path, modules: Path) -> None:
        sys.stderr.write(f"Building {name} (once, {time}) ...\n")
        _go(modules, "install", f"-ldflags={flags}", package, GOBIN=str(folder), CGO_ENABLED="0")

    folder = home() / f"{name}-{hashlib.sha256(package.encode()).hexdigest()[:16]}"
    return str(_cached(folder, build) / name)


def _cached(folder: Path, make: Callable[[Path, Path], None]) -> Path:
    if folder.is_dir():
        return folder
    _go_program()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            unfinished = Path(mkdtemp(dir=folder.parent, prefix=f"{folder.name}.unfinished-"))
            modules = Path(mkdtemp(dir=folder.parent, prefix="modules-"))
            try:
                make(unfinished, modules)
                unfinished.rename(folder)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
                shutil.rmtree(modules, ignore_errors=True)
    return folder


def _fetch_schemas(folder: Path, modules: Path) -> None:
    sys.stderr.write("Fetching the schemas of KEDA and the Prometheus operator (once, 7 MB) ...\n")
    for module in MODULES:
        found = json.loads(_go(modules, "mod", "download", "-json", f"{module.path}@{module.version}"))
        if found["Sum"] != module.digest:
            raise WrongModule(f"{module.path} {module.version} has the digest {found['Sum']}, expected {module.digest}")
        for schema in module.schemas:
            shutil.copyfile(Path(found["Dir"]) / schema, folder / Path(schema).name)


def _go(modules: Path, *arguments: str, **variables: str) -> str:
    """Return what Go prints. Its modules and build output go to a temporary folder."""
    environment = os.environ | {
        "GOMODCACHE": str(modules / "modules"),
        "GOCACHE": str(modules / "compiled"),
        "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} {_GO_FLAGS}".strip(),
        # Use the installed Go; downloading another one would take 60 MB more.
        "GOTOOLCHAIN": "local",
    }
    ran = subprocess.run(  # noqa: S603  # ours
        [_go_program(), *arguments],
        env=environment | variables,
        cwd=modules,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return ran.stdout


def _go_program() -> str:
    go = shutil.which("go")
    if go is None:
        raise MissingTools(MISSING)
    return go


def main() -> int:
    """Fetch everything that the checks need and return the exit code."""
    try:
        sys.stdout.write(f"{schemas()}\n{' '.join(kustomize())}\n")
    except (MissingTools, WrongModule) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"{' '.join(error.cmd)} failed (exit code {error.returncode}); see its output above.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
