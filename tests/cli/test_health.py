"""``dupwatch health``, the health check of the image, requests the pages at the configured address."""

import subprocess
from pathlib import Path

from deploy.local.ports import free_ports
from tests.cli.command import environment, run_process, wait_for
from tests.cli.test_service import brokers, serving

__all__ = ["brokers"]


def certificate(folder: Path) -> tuple[Path, Path]:
    """Create a certificate for another host name than the requested one, and its key."""
    paths = (folder / "crt.pem", folder / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    request = [*command, "-subj", "/CN=dupwatch.example", "-keyout", str(paths[1]), "-out", str(paths[0])]
    subprocess.run(request, check=True, capture_output=True)
    return paths


def test_it_follows_the_configuration(brokers: str, tmp_path: Path) -> None:
    """Another port, TLS and a password, all from the file named in the environment; then no server answers."""
    folder = tmp_path / "files"
    folder.mkdir()
    crt, key = certificate(folder)
    (folder / "password").write_text("correct horse\n")
    settings = {"user": "ops", "password_file": folder / "password", "tls_certificate": crt, "tls_key": key}
    options = [part for name, at in settings.items() for part in ("--set", f"http.{name}={at}")]
    with serving(brokers, "-", tmp_path, *options, stdout=subprocess.DEVNULL) as service:
        lines = [f'{name} = "{at}"' for name, at in settings.items()]
        file = folder / "dupwatch.toml"
        file.write_text("\n".join(["[http]", f'listen = "0.0.0.0:{service.port}"', *lines]))
        named = environment(DUPWATCH_CONFIG=str(file))
        wait_for(lambda: run_process("health", env=named).code == 0)
        assert run_process("health", "--config", file).out == b"/healthz: 200 ok\n"
        wait_for(lambda: run_process("health", "--ready", env=named).code == 0)
        assert run_process("health", "--set", f"http.listen=127.0.0.1:{service.port}").code == 1
        assert service.stop() == 0
    gone = run_process("health", env=named)
    assert (gone.code, gone.out) == (
        1,
        f"No answer from https://127.0.0.1:{service.port}: Connection refused. Check that the consumer is running, "
        "and that this is its http.listen.\n".encode(),
    )


def test_what_cannot_be_asked(tmp_path: Path) -> None:
    """Disabled pages are not an error; an unknown port, or another program at the port, is."""
    assert run_process("health", "--set", "http.listen=").code == 0
    assert run_process("health", "--set", "http.listen=127.0.0.1:0").code == 2
    (port,) = free_ports(1)
    other = subprocess.Popen(
        ["python3", "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", tmp_path],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        (tmp_path / "healthz").write_text("ok")
        asked = ("health", "--set", f"http.listen=127.0.0.1:{port}")
        wait_for(lambda: b"200" in run_process(*asked).out)
        assert run_process(*asked).code == 1
    finally:
        other.kill()
        other.wait()
