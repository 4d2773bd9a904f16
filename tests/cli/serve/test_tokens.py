"""The service with tokens, as the documentation says to start and to ask it."""

import re
import subprocess
from pathlib import Path

from tests.cli.command import DUPWATCH, FAST, environment, run_process
from tests.cli.serve.service import serving
from tests.cli.serve.test_serve import PAGE
from tests.unit.service.serving import WAIT_S
from tests.unit.web.pair import Pair

SECTION = PAGE.partition("\n## Tokens\n")[2].partition("\n## ")[0]
MAKING, ASKING = re.findall(r"^```sh\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)


def test_the_examples_of_the_page_work(tmp_path: Path) -> None:
    """The token that is made is let in, nobody else is, and the secret is in no line of the log."""
    made = "\n".join(line for line in MAKING.splitlines() if not line.startswith("dupwatch serve"))
    program = f'dupwatch() {{ "{DUPWATCH}" "$@"; }}\n'
    subprocess.run(["sh", "-ec", program + made], cwd=tmp_path, env=environment(), check=True, timeout=WAIT_S)
    secret = (tmp_path / "crawler.secret").read_text().strip()
    assert re.fullmatch(r"dupwatch_[0-9a-f]{64}", secret)
    tokens = re.findall(r"--set (service\.tokens)=(\S+)", MAKING)
    assert tokens == [("service.tokens", "tokens.json")]
    named = ("--set", f"service.tokens={tmp_path / 'tokens.json'}", "--set", "log.level=debug")
    with serving("memory:", tmp_path, *FAST, *named) as service:
        service.wait_ready()
        assert service.get("/v1/stats").status == 401
        command = ASKING.replace("http://127.0.0.1:8750", service.url).replace("curl -s", "curl -s --fail-with-body", 1)
        asked = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, timeout=WAIT_S, check=False)
        assert (asked.returncode, b'"window"' in asked.stdout) == (0, True), asked.stdout
        service.get("/v1/stats", Authorization=f"Bearer {secret}", x_request_id=secret)
        service.secret = secret
        assert service.get("/metrics").status == 200
        assert service.stop() == 0
        told = service.log.read_text()
    assert '"token":"crawler"' in told
    assert '"refused":"missing"' in told
    assert secret.removeprefix("dupwatch_")[:20] not in told


def test_the_settings_of_the_page_are_valid(tmp_path: Path) -> None:
    """Those for TLS, with files that exist; the service says at which address."""
    (shown,) = re.findall(r"^```toml\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)
    pair = Pair(tmp_path / "tls")
    run_process("tokens", "add", "x", "--role", "reader", "--owner", "x", "--tokens", tmp_path / "tokens.json")
    config = tmp_path / "dupwatch.toml"
    config.write_text(
        shown.replace("/run/secrets/tokens.json", str(tmp_path / "tokens.json"))
        .replace("/run/secrets/tls.crt", str(pair.certificate))
        .replace("/run/secrets/tls.key", str(pair.key))
    )
    with serving("memory:", tmp_path, *FAST, "--config", str(config), secure=True) as service:
        service.wait_ready()
        assert service.get("/v1/stats").status == 401
        assert service.get("/v1/stats", Host="dupwatch.news.example").status == 401
        assert service.get("/v1/stats", Host="other.example").status == 421
        assert service.stop() == 0
        assert f'"url":"{service.url}"' in service.log.read_text()


def test_a_token_file_that_cannot_be_used_keeps_it_from_starting(tmp_path: Path) -> None:
    """It says which, and what to do."""
    path = tmp_path / "tokens.json"
    path.write_text("{")
    path.chmod(0o600)
    with serving("memory:", tmp_path, "--set", f"service.tokens={path}") as service:
        assert service.process.wait(WAIT_S) == 2
        assert "is invalid" in service.log.read_text()
