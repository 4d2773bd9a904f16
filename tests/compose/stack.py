"""docker-compose.yml as a stack that is built, started, looked into and taken down.

By docker compose or podman-compose: ``COMPOSE`` in the environment names the command; else the first that works here is
taken. ``COMPOSE_FILES`` names the files, with a colon between; by default images that cannot be pulled are stood in for
by what packages give.

podman-compose does not wait for health where podman is older than 4.6, podman without systemd never asks for it, and
podman starts no container whose dependencies have ended, which one-shot services do. So here services are started in
the order of ``depends_on``, and each condition is waited for by asking, whichever engine it is.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

ROOT: Final = Path(__file__).parents[2]
PODMAN_COMPOSE_MIN: Final = (1, 6)
"""The one that was tried. 1.0 knows neither ``network_mode: none`` nor ``service:``."""
PROJECT: Final = "dupwatch-test"
FILES: Final = ("docker-compose.yml", "deploy/docker/test/compose.yml")
TRANSCRIPT: Final = ROOT / "out" / "compose-test.log"
BUILD_S: Final = 1500.0
COMMAND_S: Final = 150.0
HEALTH_S: Final = 180.0
_PAUSE_S: Final = 1.0
_LOG_LINES: Final = 40
_HEALTHY: Final = "service_healthy"
_COMPLETED: Final = "service_completed_successfully"
PROFILES: Final = ("serve", "console")
"""The profiles that are started; others are for commands."""
# Any free port: the machine may have other uses for the usual ones.
_PORTS: Final = dict.fromkeys(
    ("CONSUMER_PORTS", "SERVE_PORT", "CONSOLE_PORT", "PROMETHEUS_PORT", "ALERTMANAGER_PORT", "GRAFANA_PORT"), ""
)


class StackFailed(AssertionError):  # noqa: N818  # it is what the stack did
    """The stack is not as it should be; the message has what was said last."""


class Engine(NamedTuple):
    """What runs containers (docker or podman), and the command of its compose."""

    name: str
    compose: Sequence[str]


def engine() -> Engine | None:
    """What there is here; None where there is neither."""
    if named := os.environ.get("COMPOSE"):
        compose = shlex.split(named)
        return Engine("podman" if "podman" in compose[0] else "docker", compose)
    if _works("docker", "info") and _works("docker", "compose", "version"):
        return Engine("docker", ["docker", "compose"])
    if _works("podman", "info") and _podman_compose_version() >= PODMAN_COMPOSE_MIN:
        return Engine("podman", ["podman-compose"])
    return None


def _podman_compose_version() -> tuple[int, ...]:
    if shutil.which("podman-compose") is None:
        return (0,)
    version = subprocess.run(["podman-compose", "--version"], capture_output=True, text=True, timeout=30, check=False)
    found = re.search(r"podman-compose\D*(\d+)\.(\d+)", version.stdout)
    return (0,) if found is None else (int(found[1]), int(found[2]))


def _works(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@dataclass(slots=True)
class Stack:
    """The services of the compose files, under a project name of the tests' own."""

    engine: Engine
    files: Sequence[str]
    began_s: float = field(default_factory=time.monotonic)
    services: Mapping[str, Mapping[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        """Read what the files say of each service; the later file goes before."""
        self.services = {}
        for name in self.files:
            for service, service_settings in yaml.safe_load((ROOT / name).read_text())["services"].items():
                self.services[service] = {**self.services.get(service, {}), **service_settings}

    def say(self, words: str) -> None:
        """A line of the transcript."""
        line = f"[{time.monotonic() - self.began_s:6.1f} s] {words}"
        print(line, flush=True)  # noqa: T201  # the transcript is for whoever runs this
        TRANSCRIPT.parent.mkdir(exist_ok=True)
        with TRANSCRIPT.open("a") as file:
            file.write(line + "\n")

    def compose(self, *arguments: str, wait_s: float = COMMAND_S, options: Sequence[str] = ()) -> str:
        """Run a command of compose; what it printed. Raises ``StackFailed``."""
        files = [word for name in self.files for word in ("-f", name)]
        profiles = [word for name in PROFILES for word in ("--profile", name)]
        command = [*self.engine.compose, "-p", PROJECT, *files, *profiles, *options, *arguments]
        return self._run(command, wait_s)

    def container(self, *arguments: str, wait_s: float = COMMAND_S) -> str:
        """Run a command of the engine; what it printed. Raises ``StackFailed``."""
        return self._run([self.engine.name, *arguments], wait_s)

    def build(self) -> None:
        """Build the images."""
        # podman-compose passes on no network, and packages may come from a proxy on this machine.
        options = ["--podman-build-args=--network=host"] if self.engine.name == "podman" else []
        self.compose("build", wait_s=BUILD_S, options=options)

    def up(self) -> None:
        """Start the services of no profile and of ``PROFILES``, each when what it depends on is as it has to be."""
        wanted = {
            name: settings.get("depends_on", {})
            for name, settings in self.services.items()
            if set(settings.get("profiles", [])) <= set(PROFILES)
        }
        conditions = {(on, how["condition"]) for needs in wanted.values() for on, how in needs.items()}
        for service in TopologicalSorter({name: set(needs) for name, needs in wanted.items()}).static_order():
            self.compose("up", "--detach", "--no-deps", service)
            if (service, _HEALTHY) in conditions:
                self.wait_healthy(service)
            if (service, _COMPLETED) in conditions:
                self.wait_completed(service)

    def scale(self, service: str, count: int) -> None:
        """Scale a service to this many containers; running ones are left alone."""
        self.compose("up", "--detach", "--no-deps", "--no-recreate", "--scale", f"{service}={count}", service)

    def run(self, service: str, *arguments: str, options: Sequence[str] = (), wait_s: float = COMMAND_S) -> str:
        """Run a service that is a command, of the profiles ``demo`` and ``tools``, to its end; what it printed."""
        profile = ["--profile", "demo", "--profile", "tools"]
        return self.compose(
            "run", "--rm", "--no-deps", "-T", *options, service, *arguments, wait_s=wait_s, options=profile
        )

    def down(self) -> None:
        """Take all down, data too; twice does no harm."""
        used = self.volumes()
        self.compose("down", "--volumes", "--timeout", "10", "--remove-orphans", wait_s=HEALTH_S)
        # podman-compose leaves volumes that an image asks for and no file names.
        if left := sorted(used & self._all_volumes()):
            self.container("volume", "rm", *left)

    def volumes(self) -> set[str]:
        """The volumes that containers of the project have."""
        mounts = [mount for container in self._containers() for mount in self.inspected(container)["Mounts"]]
        return {mount["Name"] for mount in mounts if mount["Type"] == "volume"}

    def left(self, used: set[str]) -> list[str]:
        """What is still there of the project, which had used these volumes: containers, volumes, networks."""
        networks = self.container("network", "ls", "--format", "{{.Name}}").split()
        named = {volume for volume in self._all_volumes() if volume.startswith(f"{PROJECT}_")}
        return [
            *self._containers(),
            *(network for network in networks if network.startswith(f"{PROJECT}_")),
            *sorted(named | used & self._all_volumes()),
        ]

    def _containers(self) -> list[str]:
        label = f"label=com.docker.compose.project={PROJECT}"
        return self.container("ps", "--all", "--quiet", "--filter", label).split()

    def _all_volumes(self) -> set[str]:
        return set(self.container("volume", "ls", "--format", "{{.Name}}").split())

    def ids(self, service: str) -> list[str]:
        """The containers of a service."""
        labels = [f"label=com.docker.compose.{key}={value}" for key, value in _labels(service)]
        filters = [word for label in labels for word in ("--filter", label)]
        return self.container("ps", "--all", "--quiet", *filters).split()

    def inspected(self, container: str) -> dict[str, Any]:
        """What the engine knows of a container."""
        found: dict[str, Any] = json.loads(self.container("inspect", "--type", "container", container))[0]
        return found

    def address(self, container: str, port: int) -> str:
        """Where a port of a container is published: "127.0.0.1:PORT"."""
        return self.container("port", container, f"{port}/tcp").split()[0]

    def healthy(self, container: str) -> bool:
        """Whether its health check succeeds; with podman it is run now, since nobody else may do that."""
        if self.engine.name == "docker":
            state: str = self.inspected(container)["State"]["Health"]["Status"]
            return state == "healthy"
        check = ["podman", "healthcheck", "run", container]
        return subprocess.run(check, capture_output=True, timeout=COMMAND_S, check=False).returncode == 0

    def wait_healthy(self, service: str) -> None:
        """Return when every container of the service is well."""
        self.wait(
            lambda: all(self.healthy(container) for container in self.ids(service)), f"{service} healthy", service
        )

    def wait_completed(self, service: str) -> None:
        """Return when the service has ended well. Raises ``StackFailed`` where it ended otherwise."""
        (container,) = self.ids(service)

        def state() -> dict[str, Any]:
            found: dict[str, Any] = self.inspected(container)["State"]
            return found

        self.wait(lambda: state()["Status"] == "exited", f"{service} completed", service)
        if state()["ExitCode"]:
            raise StackFailed(f"{service} ended with {state()['ExitCode']}:\n{self.logs(container)}")

    def wait(self, holds: Callable[[], bool], what: str, service: str, wait_s: float = HEALTH_S) -> None:
        """Return when something holds, and say so. Raises ``StackFailed``, with what the service said, otherwise.

        What cannot be asked, since it is only just starting, does not hold yet.
        """
        until_s = time.monotonic() + wait_s
        why: Exception | None = None
        while True:
            try:
                if holds():
                    break
            except (StackFailed, OSError) as error:
                why = error
            if time.monotonic() > until_s:
                logs = "\n".join(self.logs(container) for container in self.ids(service))
                raise StackFailed(f"not within {wait_s:.0f} s: {what}. {service} said:\n{logs}") from why
            time.sleep(_PAUSE_S)
        self.say(what)

    def logs(self, container: str) -> str:
        """The last lines of a container's output."""
        ran = subprocess.run(
            [self.engine.name, "logs", "--tail", str(_LOG_LINES), container],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=COMMAND_S,
            check=False,
        )
        return ran.stdout

    def images(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The images that are built from this tree for users, with what the engine knows of each."""
        for service in ("consumer", "hbase"):
            name = yaml.safe_load((ROOT / self.files[0]).read_text())["services"][service]["image"]
            yield name, json.loads(self.container("image", "inspect", name))[0]

    def _run(self, command: Sequence[str], wait_s: float) -> str:
        # Of the two formats that podman knows only this one has health checks.
        environment = os.environ | _PORTS | {"BUILDAH_FORMAT": "docker", "COMPOSE_PARALLEL_LIMIT": "1"}
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=wait_s, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise StackFailed(f"not within {wait_s:.0f} s: {shlex.join(command)}") from error
        if ran.returncode:
            raise StackFailed(f"{shlex.join(command)} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
        return ran.stdout


def _labels(service: str) -> list[tuple[str, str]]:
    return [("project", PROJECT), ("service", service)]
