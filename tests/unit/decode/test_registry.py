"""The registry's client: what is asked, what the answers mean, and what is never said."""

import gzip
import json
import re
import socket
import ssl
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.config.loading import load_config
from consumer.decode.schemas.registry import (
    REFERENCES_MAX,
    SCHEMA_BYTES_MAX,
    ConfluentRegistry,
    RegistryOptions,
    RegistryUnavailable,
    SchemaFormat,
    StoredSchema,
    UnusableSchema,
)
from consumer.model.errors import ConfigError, SourceError
from consumer.text.install_advice import install_command
from tests.registry_server import Answer, RegistryServer, serving

RECORD = json.dumps({"type": "record", "name": "R", "fields": []})


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    """A registry."""
    with serving(RegistryServer()) as registry:
        yield registry


def client(
    url: str,
    written: SchemaFormat = "avro",
    given: dict[str, str] | None = None,
    secret_files: dict[str, str] | None = None,
    request_s: float = 10,
    schema_bytes_max: int = SCHEMA_BYTES_MAX,
) -> ConfluentRegistry:
    """A client of the registry there."""
    options = RegistryOptions(url, request_s, given or {}, secret_files or {}, schema_bytes_max)
    return ConfluentRegistry(options, written)


def closed_port() -> int:
    """A port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def test_a_schema_comes_with_its_type(server: RegistryServer) -> None:
    """Which is AVRO where the registry says nothing of it."""
    assert client(server.url).schema(server.add(RECORD)) == StoredSchema("AVRO", RECORD, {})
    assert client(server.url).schema(server.add("{}", "JSON")) == StoredSchema("JSON", "{}", {})
    server.says = Answer.json(200, schema=RECORD)
    assert client(server.url).schema(7) == StoredSchema("AVRO", RECORD, {})


def test_schemas_of_protobuf_are_asked_for_in_binary_form(server: RegistryServer) -> None:
    """As text they would take a compiler; of Avro there is one form."""
    given = server.add("AAAA", "PROTOBUF")
    client(server.url, "protobuf").schema(given)
    client(server.url, "avro").schema(given)
    assert server.asked == [f"GET /schemas/ids/{given}?format=serialized", f"GET /schemas/ids/{given}"]


def test_what_a_schema_refers_to_comes_with_it(server: RegistryServer) -> None:
    """Each once, and what others refer to before them; also where two refer to each other."""
    server.add("base", subject="base")
    base = {"name": "Base", "subject": "base", "version": 1}
    server.add("left", subject="a/left", references=[base])
    left = {"name": "Left", "subject": "a/left", "version": 1}
    server.add("loop", subject="loop", references=[{"name": "Loop", "subject": "loop", "version": 1}])
    loop = {"name": "Loop", "subject": "loop", "version": 1}
    found = client(server.url).schema(server.add("top", references=[left, base, loop]))
    assert found is not None
    assert list(found.references.items()) == [("Base", "base"), ("Left", "left"), ("Loop", "loop")]
    many = [{"name": f"n{n}", "subject": "base", "version": 1} for n in range(REFERENCES_MAX + 1)]
    with pytest.raises(UnusableSchema, match="more than 100 others"):
        client(server.url).schema(server.add("many", references=many))


def test_what_the_registry_does_not_know_is_none(server: RegistryServer) -> None:
    """An id, and what a schema refers to."""
    assert client(server.url).schema(99) is None
    gone = [{"name": "Gone", "subject": "gone", "version": 1}]
    assert client(server.url).schema(server.add(RECORD, references=gone)) is None


@pytest.mark.parametrize(
    "answer",
    [
        Answer.json(500, error_code=50001, message="Error in the backend data store"),
        Answer.json(503, message="no leader"),
        Answer.json(429, error_code=42901, message="slow down"),
        Answer.json(404, error_code=404, message="HTTP 404 Not Found"),
        Answer(404, b"<html>default backend</html>"),
        Answer(200, b"<html>please log in</html>"),
        Answer(200, b"[]"),
        Answer(200, b""),
        Answer(302, b""),
    ],
    ids=lambda answer: f"{answer.status} {answer.body[:12]!r}",
)
def test_no_sense_in_an_answer_is_an_outage(server: RegistryServer, answer: Answer) -> None:
    """Nothing is known of the record then, so that it is no bad one; the sentence names the registry."""
    server.says = answer
    with pytest.raises(RegistryUnavailable, match=rf"{server.url} does not answer as a schema registry"):
        client(server.url).schema(1)
    assert len(server.asked) == 1
    assert issubclass(RegistryUnavailable, SourceError)


def test_no_answer_is_an_outage(server: RegistryServer) -> None:
    """Nobody there, or nothing said in the time allowed."""
    with pytest.raises(RegistryUnavailable, match="refused"):
        client(f"http://127.0.0.1:{closed_port()}").schema(1)
    server.silent.set()
    began_s = time.monotonic()
    with pytest.raises(RegistryUnavailable, match=r"Timeout|took longer"):
        client(server.url, request_s=0.2).schema(1)
    assert time.monotonic() - began_s < 60


def test_a_schema_of_any_length_takes_no_more_memory_than_the_limit(server: RegistryServer) -> None:
    """What is too long cannot be used; the answer is not read on. One byte less can be."""
    given = server.add(RECORD)
    bytes_max = len(server.answer("GET", f"/schemas/ids/{given}", None, None).body)
    assert client(server.url, schema_bytes_max=bytes_max).schema(given) is not None
    with pytest.raises(UnusableSchema, match=r"registry\.schema_bytes_max"):
        client(server.url, schema_bytes_max=bytes_max - 1).schema(given)
    server.says = Answer.json(200, schema="x" * (64 << 20))
    tracemalloc.start()
    with pytest.raises(UnusableSchema, match="it has more than 1,000 bytes"):
        client(server.url, schema_bytes_max=1_000).schema(given)
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


def test_the_limit_is_of_a_schema_with_all_that_it_refers_to(server: RegistryServer) -> None:
    """A hundred files of moderate length are long together."""
    server.add("x" * 600, subject="base")
    given = server.add("y" * 600, references=[{"name": "Base", "subject": "base", "version": 1}])
    assert client(server.url, schema_bytes_max=2_000).schema(given) is not None
    with pytest.raises(UnusableSchema, match="with everything that it refers to"):
        client(server.url, schema_bytes_max=1_200).schema(given)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(502, b"<p>" * 10_000, {"Content-Type": "text/html"}), "has more than 9,000 bytes"),
        (Answer(200, b"<p>" * 10_000, {"Content-Type": "text/html"}), "has more than 9,000 bytes"),
        (Answer(200, gzip.compress(b"{}"), {"Content-Encoding": "gzip"}), r"is compressed \(gzip\)"),
    ],
)
def test_an_answer_that_is_not_the_registrys_is_an_outage(server: RegistryServer, answer: Answer, why: str) -> None:
    """However long it is; another address is asked then."""
    server.says = answer
    with pytest.raises(RegistryUnavailable, match=why):
        client(server.url, schema_bytes_max=9_000).schema(1)
    with serving(RegistryServer()) as other:
        given = other.add(RECORD)
        found = client(f"{server.url},{other.url}", schema_bytes_max=9_000).schema(given)
    assert found == StoredSchema("AVRO", RECORD, {})


def test_an_answer_that_drips_is_an_outage(server: RegistryServer) -> None:
    """The time is of the whole answer, not of each of its bytes."""
    server.drip_s = 0.02
    server.says = Answer.json(200, schema="x" * 5_000)
    with pytest.raises(RegistryUnavailable, match=r"took longer than 0\.2 s"):
        client(server.url, request_s=0.2).schema(1)


def test_of_several_addresses_one_is_enough(server: RegistryServer) -> None:
    """They are asked in turn."""
    given = server.add(RECORD)
    found = client(f"http://127.0.0.1:{closed_port()},{server.url}").schema(given)
    assert found == StoredSchema("AVRO", RECORD, {})


def test_a_registry_that_refuses_is_no_outage(server: RegistryServer, tmp_path: Path) -> None:
    """Waiting would not help; with the credentials from a file, line end and all, it answers. They are never said."""
    server.user = "reader:hunter2"
    given = server.add(RECORD)
    with pytest.raises(ConfigError, match="denies access") as refused:
        client(server.url, given={"basic.auth.user.info": "reader:hunter3"}).schema(given)
    assert "hunter3" not in str(refused.value)
    secret = tmp_path / "secret"
    secret.write_text("reader:hunter2\n")
    assert client(server.url, secret_files={"basic.auth.user.info": str(secret)}).schema(given) is not None
    with pytest.raises(ConfigError, match=r"registry\.secret_files: the value of basic"):
        client(server.url, secret_files={"basic.auth.user.info": str(tmp_path / "gone")})


def test_a_registry_without_the_binary_form_is_said_so(server: RegistryServer) -> None:
    """Redpanda answers 501 for forms that it does not have; for Avro it is something else."""
    server.says = Answer.json(501, error_code=501, message="not implemented")
    with pytest.raises(ConfigError, match="Protobuf schemas in binary form"):
        client(server.url, "protobuf").schema(1)
    with pytest.raises(RegistryUnavailable):
        client(server.url, "avro").schema(1)


def test_a_registry_with_tls_is_known_by_its_authority(tmp_path: Path) -> None:
    """The one that is named, as for confluent-kafka's client; without it nothing is said to anybody."""
    certificate, key = tmp_path / "ca.pem", tmp_path / "ca.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    options = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    subprocess.run([*command, *options, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving(RegistryServer(), context) as registry:
        given = registry.add(RECORD)
        assert client(registry.url, given={"ssl.ca.location": str(certificate)}).schema(given) is not None
        with pytest.raises(RegistryUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            client(registry.url).schema(given)
        assert len(registry.asked) == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"timeout": "3"}, "timeout is set by dupwatch"),
        ({"url": "http://elsewhere"}, "url is set by dupwatch"),
        ({"no.such.thing": "3"}, r"no\.such\.thing"),
        ({"ssl.ca.location": "/nowhere/ca.pem"}, "the client rejects its settings"),
        ({"basic.auth.user.info": "hunter2"}, "must be in the form"),
    ],
)
def test_settings_that_the_client_does_not_take_are_said_at_once(given: dict[str, str], expected: str) -> None:
    """Before anything is read; and without their values."""
    with pytest.raises(ConfigError, match=expected) as caught:
        client("http://127.0.0.1:1", given=given)
    assert "hunter2" not in str(caught.value)


def test_without_the_packages_a_sentence_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are asked for where such values are configured, and nowhere else."""
    monkeypatch.setitem(sys.modules, "confluent_kafka.schema_registry", None)
    with pytest.raises(ConfigError, match=re.escape(install_command("schemas"))):
        client("http://127.0.0.1:1")


def test_nothing_of_it_is_imported_for_json() -> None:
    """A run over JSON starts without it, and where it is not installed."""
    code = "import sys, consumer.wiring.lasting_run; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(ended.stdout.split())
    assert "confluent_kafka" in loaded
    assert not loaded & {"confluent_kafka.schema_registry", "google.protobuf", "fastavro", "httpx"}


AVRO = {"value_format": "avro"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"kafka": AVRO}, "set registry.url to their registry"),
        ({"kafka": AVRO, "registry": {"url": "localhost:8081"}}, r"registry\.url: write it as http"),
        ({"kafka": AVRO, "registry": {"url": "http://u:hunter2@h:8081"}}, r"registry\.url: .*basic\.auth\.user\.info"),
        ({"kafka": {"value_format": "xml"}}, r"kafka\.value_format"),
        ({"registry": {"client": {"basic.auth.user.info": ["hunter2"]}}}, r"registry\.client\.basic\.auth"),
        ({"registry": {"request_s": 0}}, r"registry\.request_s"),
    ],
)
def test_a_configuration_that_cannot_hold_is_refused(given: dict[str, object], expected: str) -> None:
    """In words that say what to write; a password in it is not among them."""
    with pytest.raises(ConfigError, match=expected) as caught:
        load_config(None, given)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://h:8081", "https://h/apis/ccompat/v7", "http://a:1,http://b:2/x", "http://[::1]:8081"]
)
def test_addresses_of_registries(url: str) -> None:
    """One or several, with a path or without."""
    assert load_config(None, {"registry": {"url": url}}).registry.url == url


def test_basic_credentials_are_sent_as_they_are(server: RegistryServer) -> None:
    """A password may have a colon."""
    server.user = "reader:a:b"
    assert client(server.url, given={"basic.auth.user.info": "reader:a:b"}).schema(server.add(RECORD)) is not None
