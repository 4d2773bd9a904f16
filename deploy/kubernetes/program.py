"""Check that the manifests fit the program: its configuration, pages, files and shutdown time."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from deploy.kubernetes.manifests import IN_CLUSTER, Document, Workload, name_of, of_kind, workloads
from deploy.kubernetes.references import container_ports, keys_of

PAGES: Final = frozenset({"/healthz", "/readyz", "/metrics"})
CONFIG: Final = "dupwatch-config"
CONFIG_KEY: Final = "dupwatch.toml"
READS: Final[Mapping[str, tuple[str, ...]]] = {
    "consumer": ("store", "kafka", "http", "fingerprint", "registry"),
    "topics": ("kafka",),
    "pack": ("store",),
    "serve": ("store", "kafka", "fingerprint", "service"),
    "console": ("store", "kafka", "fingerprint", "console"),
}
"""The sections whose files a part of dupwatch reads, by component."""
COMPONENT: Final = "app.kubernetes.io/component"
_PROGRAM: Final = "dupwatch"
_SECTIONS: Final[Mapping[str, tuple[str, str, str | None]]] = {
    "consumer": ("http", "basicAuth", "user"),
    "serve": ("service", "authorization", "tokens"),
    "console": ("console", "", None),
}
"""Components that serve HTTP: the section with the address, the credentials of a scrape, and the setting for these.

The setting is None if scrapes need no credentials.
"""
_DRAINING: Final = frozenset({"serve", "console"})
ENDING_S: Final = 20.0
"""How long after ``drain_s`` a hanging service or console ends itself."""
PRE_STOP_S: Final = 5.0
"""How long a service or a console waits before it stops, because the cluster still sends clients to it."""
_LOOPBACK: Final = ("127.", "localhost", "[::1]")


class WrongConfiguration(Exception):  # noqa: N818  # a sentence for a person
    """The overlay has no configuration, or one that dupwatch rejects; the message says why."""


@dataclass(frozen=True, slots=True)
class Front:
    """The HTTP address of a component, as its section of the configuration says."""

    listen: str
    scheme: str
    asks_for: str | None
    """The credentials that a scrape must send: ``basicAuth``, ``authorization`` or None."""

    @property
    def port(self) -> int:
        """The port of ``listen``."""
        return int(self.listen.rpartition(":")[2])


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of an overlay with all defaults, as sections of names and values."""

    sections: Mapping[str, Any]

    def front(self, component: str) -> Front:
        """Return the front of the HTTP service or the console; for any other component, that of consumers."""
        name, asks, setting = _SECTIONS.get(component, _SECTIONS["consumer"])
        section = self.sections[name]
        scheme = "https" if section.get("tls_certificate") else "http"
        return Front(section["listen"], scheme, asks if setting is not None and section.get(setting) else None)

    def grace_s(self, component: str) -> tuple[float, str]:
        """Return how long a component may take to end, in seconds, and the setting that decides this."""
        if component in _DRAINING:
            section = _SECTIONS[component][0]
            return self.sections[section]["drain_s"] + ENDING_S + PRE_STOP_S, f"{section}.drain_s"
        return self.sections["kafka"]["grace_s"], "kafka.grace_s"

    def files(self, sections: Sequence[str]) -> set[str]:
        """Return the files that these sections name, also in the options of a URL."""
        texts = [text for section in sections for text in _texts(self.sections[section])]
        options = [value for text in texts for values in parse_qs(urlsplit(text).query).values() for value in values]
        return {text for text in (*texts, *options) if text.startswith("/")}


def settings_of(documents: Sequence[Document]) -> Settings:
    """Return the settings as dupwatch reads them. Raises ``WrongConfiguration``."""
    for document in of_kind(documents, "ConfigMap"):
        if CONFIG_KEY in document.get("data", {}):
            return _settings_from(document["data"][CONFIG_KEY])
    raise WrongConfiguration(f"no ConfigMap has {CONFIG_KEY}")


def program_faults(documents: Sequence[Document], secrets: Sequence[Document], settings: Settings) -> Iterator[str]:
    """Yield the contradictions between the manifests and the program."""
    known = [*documents, *secrets]
    for workload in workloads(documents):
        yield from _configuration_faults(workload, known)
        yield from _files(workload, known, settings)
        if workload.component in _SECTIONS:
            yield from _front_faults(workload, settings)
        if workload.component == "console":
            yield from _database(workload, settings)
    for monitor in of_kind(documents, "ServiceMonitor"):
        front = settings.front(monitor["spec"]["selector"].get("matchLabels", {}).get(COMPONENT, ""))
        for endpoint in monitor["spec"]["endpoints"]:
            if endpoint.get("path", "/metrics") not in PAGES:
                yield f"{name_of(monitor)} scrapes {endpoint['path']}, which is not a page"
            yield from _scrape_faults(name_of(monitor), endpoint, front)


def _scrape_faults(where: str, endpoint: Mapping[str, Any], front: Front) -> Iterator[str]:
    """Check that a scrape uses the scheme of the pages, and sends their credentials, but not unencrypted."""
    scheme = endpoint.get("scheme", "http").lower()
    if scheme != front.scheme:
        yield f"{where} uses {scheme}, but the pages are served over {front.scheme}"
    if scheme == "http" and any(name in endpoint for name in ("basicAuth", "authorization", "bearerTokenSecret")):
        yield f"{where} sends a secret over plain HTTP; serve over TLS (tls_certificate)"
    if front.asks_for is not None and front.asks_for not in endpoint:
        yield f"{where} has no {front.asks_for}, but the pages ask for it"


@cache
def _settings_from(text: str) -> Settings:
    with TemporaryDirectory() as folder:
        path = Path(folder) / CONFIG_KEY
        path.write_text(text)
        # The files that the configuration names exist only in the pods.
        _run(path, "check", "--elsewhere")
        shown, given = tomllib.loads(_run(path, "show")), tomllib.loads(text)
    # ``config show`` hides URLs that name a user.
    return Settings(
        {
            name: {**given.get(name, {}), **value} if isinstance(value, Mapping) else value
            for name, value in shown.items()
        }
    )


def _run(path: Path, *command: str) -> str:
    program = Path(sys.executable).with_name(_PROGRAM)
    # The environment of this process must not override the settings of the cluster.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DUPWATCH_")}
    arguments: list[str | Path] = [program, "config", *command, "--config", path]
    ran = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=False)  # noqa: S603  # ours
    if ran.returncode:
        raise WrongConfiguration(f"{CONFIG_KEY}: {ran.stderr.strip()}")
    return ran.stdout


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


def _configuration_faults(workload: Workload, known: Sequence[Document]) -> Iterator[str]:
    """Check that each container has the configuration file that it names."""
    for container in workload.containers:
        given = " ".join((*container.get("command", ()), *container.get("args", ()))).split()
        if _PROGRAM not in given:
            continue
        for option, path in pairwise(given):
            if option == "--config" and path not in _mounted(workload, container, known):
                yield f"{workload.where}: {container['name']} reads {path}, which is not mounted"


def _files(workload: Workload, known: Sequence[Document], settings: Settings) -> Iterator[str]:
    needed = settings.files(READS.get(workload.component, ()))
    for container in workload.containers:
        for path in sorted(needed - _mounted(workload, container, known)):
            yield f"{workload.where}: the configuration names {path}, which {container['name']} does not mount"


def _mounted(workload: Workload, container: Mapping[str, Any], known: Sequence[Document]) -> set[str]:
    """Return the files of ConfigMaps and Secrets that a container mounts."""
    volumes = {volume["name"]: volume for volume in workload.pod.get("volumes", ())}
    paths = set()
    for mount in container.get("volumeMounts", ()):
        volume = volumes.get(mount["name"], {})
        for field, kind, named in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
            if field in volume:
                keys = keys_of(known, kind, workload.namespace, volume[field][named]) or set()
                folder = PurePosixPath(mount["mountPath"])
                paths |= {str(folder)} if "subPath" in mount else {str(folder / key) for key in keys}
    return paths


def _database(workload: Workload, settings: Settings) -> Iterator[str]:
    """Check that all replicas share one database, and reach it over TLS if it is outside the cluster."""
    url = urlsplit(settings.sections["console"]["database"])
    if not url.scheme.startswith("postgres"):
        yield f"{workload.where}: console.database is a file, which no other replica and no later pod has"
    elif not IN_CLUSTER.fullmatch(url.hostname or "") and parse_qs(url.query).get("sslmode") != ["verify-full"]:
        yield f"{workload.where}: console.database is outside of the cluster, and its sslmode is not verify-full"


def _front_faults(workload: Workload, settings: Settings) -> Iterator[str]:
    front, (needed_s, setting) = settings.front(workload.component), settings.grace_s(workload.component)
    grace_s = workload.pod.get("terminationGracePeriodSeconds", 30)
    if grace_s < needed_s:
        yield f"{workload.where} is killed after {grace_s} s, but {setting} allows {needed_s:g} s for the shutdown"
    if container_ports(workload).get("http") != front.port:
        yield f"{workload.where} has no port http at {front.port}, where dupwatch listens"
    if front.listen.startswith(_LOOPBACK):
        yield f"{workload.where} listens on {front.listen}, where probes cannot reach it"
    elif workload.component == "serve" and front.asks_for is None:
        yield f"{workload.where} listens on {front.listen} without service.tokens, which dupwatch refuses"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = workload.containers[0].get(probe, {}).get("httpGet", {})
        path, scheme = asked.get("path"), asked.get("scheme", "HTTP").lower()
        if path not in PAGES:
            yield f"{workload.where}: its {probe} requests {path}, which is not a page"
        elif scheme != front.scheme:
            yield f"{workload.where}: its {probe} uses {scheme}, but the pages are served over {front.scheme}"
