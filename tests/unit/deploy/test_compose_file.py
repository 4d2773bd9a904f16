"""docker-compose.yml, the Dockerfiles and .dockerignore, as far as they can be judged by reading them."""

import os
import re
import stat
import subprocess
import sys
import time
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from sqlalchemy import make_url

from consumer.config.loading import load_config
from consumer.kafka.time_limits import ENDING_S
from consumer.web.token import digest_of
from consumer.web.token_file import read_tokens
from deploy.alerts import log
from deploy.alerts.log import ADDRESS
from deploy.local import hadoop

ROOT: Final = Path(__file__).parents[3]
DOCKER: Final = ROOT / "deploy" / "docker"
FILE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: Final[dict[str, dict[str, Any]]] = FILE["services"]
WRITES_BESIDE_ITS_PROGRAM: Final = {"kafka"}
OWN_USERS: Final = {"postgres": "999:999"}
"""Users of images that would begin as root, and become them."""


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_confined(name: str) -> None:
    """No rights beyond a plain user's, a bound on memory and processes, and a root file system that stays as it is."""
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is (name not in WRITES_BESIDE_ITS_PROGRAM)
    assert service["mem_limit"]
    assert service["pids_limit"]
    assert not {"privileged", "container_name", "cap_add", "pid", "ipc"} & service.keys()
    assert service.get("user") == OWN_USERS.get(name)


@pytest.mark.parametrize("name", SERVICES)
def test_each_image_has_a_version(name: str) -> None:
    """None is whatever is newest on the day."""
    assert re.fullmatch(r"(docker\.io|localhost)/[a-z/-]+:v?\d+\.\d+(\.\d+)?", SERVICES[name]["image"])


def test_versions_are_those_of_the_tests() -> None:
    """Kafka and HBase as in deploy/local, dupwatch as in pyproject.toml."""
    poms = ROOT / "deploy" / "local" / "poms"
    kafka = re.search(
        r"<artifactId>kafka_2.13</artifactId>\s*<version>(.+?)</version>", (poms / "kafka.xml").read_text()
    )
    stored = re.search(r"<hbase.version>(.+?)</hbase.version>", (poms / "hbase.xml").read_text())
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert kafka is not None
    assert stored is not None
    versions = {name: SERVICES[name]["image"].rpartition(":")[2] for name in ("kafka", "hbase", "consumer")}
    assert versions == {"kafka": kafka[1], "hbase": stored[1], "consumer": ours}


def test_ports_are_published_on_loopback_only() -> None:
    """Of pages, service and console; brokers, the gateway and the database are not published at all."""
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published.keys() == {"consumer", "serve", "console", "prometheus", "alertmanager", "grafana"}
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)


def test_alerts_reach_an_alertmanager_with_a_place_for_each_severity() -> None:
    """Prometheus names a service of the file, at its port; what mutes or routes names alerts that there are."""
    folder = ROOT / "deploy" / "prometheus"
    scraping = yaml.safe_load((folder / "prometheus.yml").read_text())
    (target,) = scraping["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    name, _, port = target.partition(":")
    service = SERVICES[name]
    assert service["ports"][0].endswith(f":{port}")
    assert set(service["networks"]) & set(SERVICES["prometheus"]["networks"])
    assert any(volume.startswith("./deploy/prometheus/alertmanager.yml:") for volume in service["volumes"])
    config = yaml.safe_load((folder / "alertmanager.yml").read_text())
    routes = [config["route"], *config["route"]["routes"]]
    assert {route["receiver"] for route in routes} == {receiver["name"] for receiver in config["receivers"]}
    for receiver in config["receivers"]:
        (shown,) = receiver["webhook_configs"]
        assert shown["url"] == f"http://alerts:{ADDRESS[1]}/"
    shows = SERVICES["alerts"]
    assert set(shows["networks"]) & set(service["networks"])
    assert f":{ADDRESS[1]}/" in shows["healthcheck"]["test"][-1]
    source, mounted, _ = shows["volumes"][0].split(":")
    assert (ROOT / source, shows["entrypoint"][-1]) == (Path(log.__file__), mounted)
    rules = yaml.safe_load((folder / "rules" / "dupwatch.yml").read_text())
    alerts = [rule for group in rules["groups"] for rule in group["rules"] if "alert" in rule]
    matched = {matcher for route in routes for matcher in route.get("matchers", [])}
    assert matched <= {f'severity="{alert["labels"]["severity"]}"' for alert in alerts}
    for rule in config["inhibit_rules"]:
        for matcher in rule["source_matchers"] + rule["target_matchers"]:
            pattern = re.fullmatch(r'alertname=~"(.+)"', matcher)
            assert pattern is not None
            assert [alert for alert in alerts if re.fullmatch(pattern[1], alert["alert"])]


def test_runbooks_are_linked_by_one_variable() -> None:
    """Prometheus puts it into the label that the address of every runbook begins with; without it that is a path."""
    scraping = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    (name,) = re.findall(r"^\$\{(\w+)\}$", scraping["global"]["external_labels"]["runbooks"])
    assert SERVICES["prometheus"]["environment"] == {name: f"${{{name}-}}"}
    assert f"{name}=" in (ROOT / "docs" / "operate" / "monitoring.md").read_text()


def test_no_secret_is_scraped_over_plain_http() -> None:
    """In the file for Prometheus, and in the example of the documentation; within the network of one machine it may."""
    example = (ROOT / "docs" / "operate" / "monitoring.md").read_text().split("```yaml\n")[1].split("```")[0]
    for text in ((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text(), example):
        for job in yaml.safe_load(text)["scrape_configs"]:
            asked = {name for found in job.get("dns_sd_configs", []) for name in found["names"]}
            stays = "static_configs" not in job and asked <= SERVICES.keys()
            assert job.get("scheme") == "https" or stays or not job.keys() & {"basic_auth", "authorization"}, job


@pytest.mark.parametrize("file", sorted(DOCKER.rglob("*.Dockerfile")), ids=lambda file: file.name)
def test_a_base_can_be_pinned_by_its_digest(file: Path) -> None:
    """Every base is the one build argument, so that a digest given there pins the whole image."""
    text = file.read_text()
    assert re.search(r"^ARG BASE=\S+$", text, re.MULTILINE)
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE))
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) <= {"${BASE}"} | stages


@pytest.mark.parametrize(
    ("network", "members"),
    [("store", {"hbase", "consumer", "serve", "console"}), ("database", {"postgres", "console", "people"})],
)
def test_gateway_and_database_are_reached_by_those_who_need_them_alone(network: str, members: set[str]) -> None:
    """They are the only others on its network, which has no way out."""
    assert {name for name, service in SERVICES.items() if network in service.get("networks", [])} == members
    assert FILE["networks"][network]["internal"] is True


def test_every_image_of_ours_is_built_once() -> None:
    """Several services run the same image; one of them builds it."""
    built = [service["image"] for service in SERVICES.values() if "build" in service]
    ours = {service["image"] for service in SERVICES.values() if service["image"].startswith("localhost/")}
    assert sorted(built) == sorted(ours)


def test_the_consumer_is_configured_and_may_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment is accepted, it listens where its health check asks, and it has the time that it may take."""
    service = SERVICES["consumer"]
    for name, value in service["environment"].items():
        monkeypatch.setenv(name, value)
    config = load_config(None, {})
    port = config.http.listen.rpartition(":")[2]
    # What it asks follows the same environment: tests/cli/test_health.py.
    assert 'CMD ["dupwatch", "health"]' in (DOCKER / "consumer.Dockerfile").read_text()
    assert service["ports"][0].endswith(f":{port}")
    assert int(service["stop_grace_period"].removesuffix("s")) >= config.kafka.grace_s


def test_the_service_is_configured_and_may_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs tokens, which it can read and not change; its health check and Prometheus ask where it listens."""
    service = SERVICES["serve"]
    for name, value in service["environment"].items():
        monkeypatch.setenv(name, value)
    config = load_config(None, {})
    port = config.service.listen.rpartition(":")[2]
    assert config.service.tokens is not None
    folder = Path(config.service.tokens).parent
    assert service["volumes"] == [f"tokens:{folder}:ro"]
    assert config.service.names == ("serve",)
    assert service["ports"][0].endswith(f":{port}")
    assert f"http://127.0.0.1:{port}/healthz" in service["healthcheck"]["test"][-1]
    assert int(service["stop_grace_period"].removesuffix("s")) >= config.service.drain_s + ENDING_S
    jobs = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    (job,) = [job for job in jobs if job["job_name"] == "dupwatch-serve"]
    assert job["dns_sd_configs"][0]["port"] == int(port)
    assert set(service["networks"]) & set(SERVICES["prometheus"]["networks"])


def test_the_service_and_its_commands_start_only_where_they_are_asked_for() -> None:
    """One more way in is opened on purpose; and what makes tokens uses the file that the service reads."""
    assert SERVICES["serve"]["profiles"] == ["serve"]
    assert SERVICES["tokens"]["profiles"] == ["tools"]
    for name in ("scrape-token", "tokens"):
        assert SERVICES[name]["environment"] == SERVICES["serve"]["environment"]
        assert SERVICES[name]["network_mode"] == "none"
        assert SERVICES[name]["volumes"] == ["tokens:/var/lib/dupwatch"]
    # What is configured for the service is none of the consumer's business: its doctor would look for the file.
    assert not [name for name in SERVICES["consumer"]["environment"] if "SERVICE__" in name]


def test_the_console_is_configured_and_may_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads what consumers write; its health check and Prometheus ask where it listens."""
    service = SERVICES["console"]
    for name, value in service["environment"].items():
        # As docker compose fills in what nobody has set.
        monkeypatch.setenv(name, re.sub(r"\$\{\w+-([^}]*)\}", r"\1", value))
    config = load_config(None, {})
    port = config.console.listen.rpartition(":")[2]
    assert service["environment"].items() >= SERVICES["consumer"]["environment"].items()
    assert config.console.names == ("console",)
    assert (config.console.webhooks.networks, config.console.webhooks.http) == ((), False)
    assert service["ports"][0].endswith(f":{port}")
    assert f"http://127.0.0.1:{port}/healthz" in service["healthcheck"]["test"][-1]
    assert int(service["stop_grace_period"].removesuffix("s")) >= config.console.drain_s + ENDING_S
    jobs = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    (job,) = [job for job in jobs if job["job_name"] == "dupwatch-console"]
    assert job["dns_sd_configs"][0] | {"names": ["console"], "port": int(port)} == job["dns_sd_configs"][0]
    assert set(service["networks"]) & set(SERVICES["prometheus"]["networks"])


def test_the_console_starts_only_where_it_is_asked_for_with_its_database() -> None:
    """And what adds people works on the same one."""
    for name in ("console", "postgres", "database-password"):
        assert SERVICES[name]["profiles"] == ["console"]
    assert SERVICES["people"]["profiles"] == ["tools"]
    # A command with dependencies would need their profile too.
    assert "depends_on" not in SERVICES["people"]
    assert SERVICES["people"]["environment"] == SERVICES["console"]["environment"]
    database = make_url(SERVICES["console"]["environment"]["DUPWATCH_CONSOLE__DATABASE"])
    given = SERVICES["postgres"]["environment"]
    assert (database.host, database.username, database.database) == (
        "postgres",
        given["POSTGRES_USER"],
        given["POSTGRES_DB"],
    )
    check = SERVICES["postgres"]["healthcheck"]["test"]
    assert {f"--username={database.username}", f"--dbname={database.database}", "--host=127.0.0.1"} <= set(check)


def test_the_password_of_the_database_is_a_file_that_only_its_two_sides_read(tmp_path: Path) -> None:
    """It is in no environment; the script of the one-shot service, in another folder, makes it once."""
    shown = yaml.safe_dump([SERVICES[name] for name in ("console", "postgres", "people")])
    assert "PASSWORD:" not in shown
    given = SERVICES["console"]["environment"]["DUPWATCH_CONSOLE__PASSWORD_FILE"]
    assert SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD_FILE"] == given
    mounted = {name: [v for v in SERVICES[name].get("volumes", []) if "database-password" in v] for name in SERVICES}
    assert {name: volumes for name, volumes in mounted.items() if volumes} == {
        "database-password": ["database-password:/var/lib/dupwatch"],
        **{name: [f"database-password:{Path(given).parent}:ro"] for name in ("postgres", "console", "people")},
    }
    script = SERVICES["database-password"]["entrypoint"][-1].replace("/var/lib/dupwatch", str(tmp_path))

    def made() -> str:
        subprocess.run(["sh", "-euc", script], capture_output=True, check=True)
        return (tmp_path / Path(given).name).read_text()

    first = made()
    assert len(first.strip()) >= 40
    assert made() == first
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_the_database_is_of_the_version_of_the_tests() -> None:
    """Of the major version, which decides about its files and its commands; and what stands in for it is."""
    major = SERVICES["postgres"]["image"].rpartition(":")[2].partition(".")[0]
    stand_in = (DOCKER / "test" / "postgres.Dockerfile").read_text()
    assert f"postgresql-{major} " in stand_in
    assert f"/usr/lib/postgresql/{major}/bin" in stand_in


def test_the_token_of_prometheus_is_made_once_and_again_before_it_expires(tmp_path: Path) -> None:
    """The script of the one-shot service, in another folder: 300 days leave two months until a token ends."""
    script = SERVICES["scrape-token"]["entrypoint"][-1].replace("$$", "$").replace("/var/lib/dupwatch", str(tmp_path))
    place = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    secret, tokens = tmp_path / "prometheus.secret", tmp_path / "tokens.json"

    def made() -> str:
        variables = place | {"DUPWATCH_SERVICE__TOKENS": str(tokens)}
        ran = subprocess.run(["sh", "-euc", script], env=variables, capture_output=True, text=True, check=True)
        assert "dupwatch_" not in ran.stdout + ran.stderr
        return secret.read_text()

    first = made()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o640
    assert made() == first
    for days, again in ((299, False), (302, True)):
        day_s = 86_400
        os.utime(secret, times=(time.time() - days * day_s,) * 2)
        assert (made() != first) == again
    found = read_tokens(tokens)
    assert [token.sha256 for token in found] == [digest_of(text.strip()) for text in (first, secret.read_text())]
    assert {role for token in found for role in token.roles} == {"reader"}
    assert found[0].expires_at - found[0].created_at > timedelta(days=360)


def test_what_is_copied_into_images_is_let_through_and_nothing_else() -> None:
    """.dockerignore names what goes in: a file that is not named there cannot get into an image by accident."""
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert ignored[0] == "*"
    through = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = set()
    for file in [*DOCKER.glob("*.Dockerfile"), *DOCKER.glob("test/*.Dockerfile")]:
        for line in re.findall(r"^COPY (?!.*--from)(.+)$", file.read_text(), re.MULTILINE):
            words = [word for word in line.split() if not word.startswith("--")]
            copied |= set(words[:-1])
    for path in copied:
        assert (ROOT / path).exists(), path
        assert any(path == ignored or path.startswith(f"{ignored}/") for ignored in through), path
    assert all((ROOT / ignored).exists() for ignored in through)


@pytest.mark.parametrize("name", ["consumer", "hbase"])
def test_images_end_as_a_user_that_is_a_number(name: str) -> None:
    """What comes last decides; whoever forbids root has to be able to tell without the image's list of users."""
    users = re.findall(r"^USER (.+)$", (DOCKER / f"{name}.Dockerfile").read_text(), re.MULTILINE)
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", users[-1])


def test_hbase_is_told_of_later_javas_what_it_is_told_in_tests() -> None:
    """Every module that deploy/local opens to it is opened in the image."""
    script = (DOCKER / "hbase" / "hbase").read_text()
    (packages,) = re.findall(r"^for package in (.+); do$", script, re.MULTILINE)
    written = {f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in packages.split()}
    for option in hadoop.options():
        assert option in written or option in script.split(), option


def test_the_consumer_has_the_compiled_engine_and_what_it_is_built_from() -> None:
    """It is installed by name, so that an image without it is not built, and its stage has all that core/ links to."""
    stages = re.split(r"^FROM .+$", (DOCKER / "consumer.Dockerfile").read_text(), flags=re.MULTILINE)
    (core,) = [stage for stage in stages if "rustc" in stage]
    (install,) = [line for stage in stages for line in stage.splitlines() if "/opt/dupwatch/bin/python install" in line]
    assert "dupwatch-core" in install.split()
    copied = [word for line in re.findall(r"^COPY (.+)$", core, re.MULTILINE) for word in line.split()[:-1]]
    links = [path for path in (ROOT / "core").rglob("*") if path.is_symlink() and "target" not in path.parts]
    assert len(links) == 5
    for link in links:
        assert str(link.resolve(strict=True).relative_to(ROOT)) in copied, link
