"""The OpenAPI document says what the service does: requests made from it, and a client that nobody here wrote."""

import importlib
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
from openapi_spec_validator import validate

from consumer.service.openapi import CHECK_ANSWER_EXAMPLE, CHECK_EXAMPLE
from deploy.openapi.generator import generate
from tests.cli.command import run_process, text
from tests.cli.serve.service import Process, serving
from tests.examples import drawn

ROLES = ("reader", "writer", "reviewer", "admin")
CONFIG = Path(__file__).with_name("schemathesis.toml")
CLIENT = "dupwatch_client"
SEED = "TEST_LOAD_SEED"
TIMEOUT_S = 500
LONG_S = 900


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A service with a token for everything; its client has that."""
    folder = tmp_path_factory.mktemp("contract")
    tokens = folder / "tokens"
    roles = [option for role in ROLES for option in ("--role", role)]
    added = run_process("tokens", "add", "tests", *roles, "--owner", "tests", "--tokens", tokens)
    sink = ("--sink", str(folder / "verdicts.jsonl"))
    banks = folder / "banks.jsonl"
    assert run_process("bank", "create", "spam", "--action", "deny", "--banks", banks).code == 0
    settings = ("--set", f"service.tokens={tokens}", "--set", f"banks.url={banks}")
    with serving(f"lmdb:{folder / 'store'}", folder, *sink, *settings) as process:
        process.wait_ready()
        process.secret = added.out.decode().strip()
        yield process
        assert "Traceback" not in process.log.read_text(encoding="utf-8")


def generated(service: Process, folder: Path) -> ModuleType:
    """Generate a client from the document of a running service, as its users would."""
    document = folder / "openapi.json"
    document.write_bytes(service.get("/openapi.json").data)
    generate(document, CLIENT, folder)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(CLIENT)
    finally:
        sys.path.remove(str(folder))


def tried(service: Process, seed: int, timeout_s: int, *options: str) -> str:
    """Try the service with requests made from its document; return the report. Everything has to hold."""
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(CONFIG), "run",
        f"{service.url}/openapi.json", "--seed", str(seed), "--no-color",
        "--header", f"Authorization: Bearer {service.secret}", *options,
    ]  # fmt: skip
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=timeout_s, cwd=service.log.parent
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_document_is_valid_and_so_are_its_examples(service: Process) -> None:
    """By the specification, and by its own schemas."""
    document = service.get("/openapi.json").json
    validate(document)
    examples = list(_examples(document))
    assert len(examples) > 4
    for schema, example in examples:
        jsonschema.validate(example, schema | {"components": document["components"]})
    checked = service.check(*CHECK_EXAMPLE["articles"]).json["results"]
    assert [each["text_kind"] for each in checked] == [each["text_kind"] for each in CHECK_ANSWER_EXAMPLE["results"]]
    assert "long" in {each["text_kind"] for each in checked}


def _examples(node: Any) -> Iterator[tuple[dict[str, Any], object]]:  # noqa: ANN401  # whatever JSON can hold
    if isinstance(node, dict):
        if "example" in node and "schema" in node:
            yield node["schema"], node["example"]
        for inner in node.values():
            yield from _examples(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _examples(inner)


def test_every_answer_is_as_the_document_says(service: Process) -> None:
    """Some 40 requests an operation, at the limits of the document: no 5xx but the declared ones, and declared types.

    Of a third of the operations in each run.
    """
    paths = service.get("/openapi.json").json["paths"]
    operations = [f"{method.upper()} {path}" for path, item in paths.items() for method in item]
    assert len(operations) == 19
    chosen = drawn(operations, 3)
    names = [option for operation in chosen for option in ("--include-name", operation)]
    report = tried(service, 1, TIMEOUT_S, "--phases", "examples,coverage", *names)
    assert f"{len(chosen)} selected / {len(operations)} total" in report


@pytest.mark.load
def test_every_answer_is_as_the_document_says_for_long(service: Process) -> None:
    """The same, then random requests and sequences of them, by another seed each time, which a failure names."""
    tried(service, int(os.environ.get(SEED) or secrets.token_hex(4), 16), LONG_S, "--max-examples", "800")


@pytest.mark.servers
def test_a_generated_client_goes_the_whole_way(service: Process, tmp_path: Path) -> None:
    """Store, check, read, explain, release, retract, and a problem, through names that the document gives."""
    made = generated(service, tmp_path)
    first, copy = (made.ArticleToStore(id=name, body=text(7) + more) for name, more in (("wire/ä 1", ""), ("b", ".")))
    with made.ApiClient(made.Configuration(host=service.url, access_token=service.secret)) as client:
        articles = made.ArticlesApi(client)
        answer = articles.store_articles(made.StoreRequest(articles=[first, copy]))
        assert answer.text_kinds == ["long", "long"]
        stored = [each.actual_instance for each in answer.results]
        assert [verdict.outcome for verdict in stored] == ["unique", "duplicate"]
        assert stored[1].duplicate_of == "wire/ä 1"

        asked = made.CheckRequest(articles=[made.ArticleToCheck(body=text(7) + "!"), made.ArticleToCheck(body=text(8))])
        duplicate, unique = (each.actual_instance for each in articles.check(asked).results)
        assert (duplicate.outcome, duplicate.matches[0].id, unique.outcome) == ("duplicate", "wire/ä 1", "unique")
        assert (duplicate.text_kind, unique.text_kind) == ("long", "long")

        assert articles.get_article("wire/ä 1").history[0].verdict.outcome == "unique"
        assert articles.explain("b", "wire/ä 1").near
        released = articles.release_article("b", made.ReleaseRequest(by="An Na", reason="no copy"))
        assert (released.outcome, released.released.by) == ("unique", "An Na")
        assert articles.retract_article("b", idempotency_key="k1").outcome == "retracted"
        stats = articles.get_stats()
        assert stats.counts.versions >= 2
        assert stats.window.error == 0

        banks = made.BanksApi(client)
        assert banks.put_bank("offers", made.BankSettings(action="deny", similarity=0.8)).items == 0
        asked = made.NewItems(items=[made.NewItem(article="wire/ä 1"), made.NewItem(item="o:1", text=text(9))])
        assert [item.title for item in banks.add_items("offers", asked).items] == ["", ""]
        until = "2030-01-01T00:00:00.000Z"
        assert banks.change_item("offers", "o:1", made.ItemPatch(enabled=False, until=until)).until == until
        assert banks.change_item("offers", "o:1", made.ItemPatch(until=None)).until is None
        page = banks.get_bank("offers", limit=1, texts=True)
        assert (page.bank.items, page.items[0].text is None) == (2, False)
        assert banks.get_bank("offers", after=page.next).next is None
        assert banks.get_item("offers", "o:1").text == text(9)
        assert banks.get_item_articles("offers", "o:1").articles == []
        assert banks.remove_item("offers", "o:1").existed
        assert "offers" in [bank.bank for bank in banks.list_banks().banks]
        assert banks.remove_bank("offers").items == 1

        with pytest.raises(made.exceptions.NotFoundException) as unknown:
            articles.get_article("nobody")
        assert unknown.value.data.type == "urn:dupwatch:problem:unknown-article"
    with made.ApiClient(made.Configuration(host=service.url, access_token="dupwatch_00")) as client:
        stranger = made.ArticlesApi(client)
        with pytest.raises(made.exceptions.UnauthorizedException):
            stranger.get_article("b")
