"""A real Prometheus on this machine, with the rules of the tree, scraping every few seconds."""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.local.ports import HOST, free_ports
from deploy.local.process import launch, wait_until
from tests.deploy.tools import program
from tests.deploy.watching import PROMETHEUS, groups
from tests.hbase_server import OWNER_VARIABLE

_WAIT_S = 120.0
REPOSITORY_URL: Final = "https://git.example.org/dupwatch/"
"""What it is told of where runbooks can be read."""


class Prometheus:
    """A running Prometheus, queried over its HTTP API."""

    def __init__(self, port: int) -> None:
        self.port = port

    def page(self, path: str) -> str:
        """One of its pages; empty while nobody answers."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.port}{path}", timeout=_WAIT_S) as answer:
                text: str = answer.read().decode()
        except OSError:
            return ""
        return text

    def query(self, expr: str) -> list[dict[str, Any]]:
        """What an expression is now: series with a value, that is a number. Fails where it is not valid."""
        try:
            answer = urllib.request.urlopen(
                f"http://{HOST}:{self.port}/api/v1/query",
                urllib.parse.urlencode({"query": expr}).encode(),
                timeout=_WAIT_S,
            )
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expr}\n{error.read().decode()}") from error
        with answer:
            found = json.loads(answer.read())["data"]
        assert found["resultType"] == "vector", expr
        return [series for series in found["result"] if series["value"][1] != "NaN"]

    def rules(self) -> list[dict[str, Any]]:
        """All rules, with how they do."""
        found = json.loads(self.page("/api/v1/rules"))["data"]["groups"]
        return [rule for group in found for rule in group["rules"]]

    def wait(self, holds: Callable[[], object], why: Callable[[], object] = lambda: "it did not happen") -> None:
        """Return when it holds; the test fails where it never does."""
        until_s = time.monotonic() + _WAIT_S
        while not holds():
            assert time.monotonic() < until_s, why()
            time.sleep(0.2)


@contextmanager
def prometheus(folder: Path, *targets: str) -> Iterator[Prometheus]:
    """Start one that scrapes these addresses, as the one of the tree does with its own."""
    folder.mkdir()
    (port,) = free_ports(1)
    command = [
        program("prometheus"),
        f"--config.file={_configured(folder, targets)}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={HOST}:{port}",
        "--log.level=warn",
        # What later versions do anyway.
        "--enable-feature=expand-external-labels",
    ]
    environment = os.environ | {"REPOSITORY_URL": REPOSITORY_URL}
    process = launch(command, folder / "log", owner=int(os.environ[OWNER_VARIABLE]), environment=environment)
    try:
        server = Prometheus(port)
        ready = wait_until(lambda: "Ready" in server.page("/-/ready") or not process.alive, _WAIT_S)
        assert ready, (folder / "log").read_text()
        assert process.alive, (folder / "log").read_text()
        yield server
    finally:
        process.kill()


def _configured(folder: Path, targets: tuple[str, ...]) -> Path:
    """The configuration and rules of the tree, with other targets and intervals."""
    # Pages have as long to answer: on a busy machine more than a second.
    every = "3s"
    config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    job = config["scrape_configs"][0]
    config["scrape_configs"] = [job]
    del job["dns_sd_configs"]
    job["static_configs"] = [{"targets": [*targets]}]
    config["global"] |= {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every}
    config["rule_files"] = ["rules.yml"]
    rules = {"groups": [group | {"interval": every} for group in groups()]}
    (folder / "rules.yml").write_text(yaml.safe_dump(rules))
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(config))
    return file
