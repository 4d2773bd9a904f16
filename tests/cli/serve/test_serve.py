"""``dupwatch serve`` as a process: over a store that others judge into, until a signal ends it."""

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.text.install_advice import install_command
from tests.cli.command import FAST, ROOT, Command, json_lines, run_process, run_without, wait_for, write_lines
from tests.cli.serve.service import Process, serving
from tests.unit.service.serving import WAIT_S

PAGE = (ROOT / "docs" / "use" / "http_api.md").read_text(encoding="utf-8")
EXAMPLES = [
    example
    for example in re.findall(r"^curl .*?(?=^curl |^```)", PAGE, re.DOTALL | re.MULTILINE)
    # Those with a token have a service of their own.
    if "Bearer" not in example
]


@pytest.fixture(scope="module")
def service(judged_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A service over the sample."""
    with serving(f"lmdb:{judged_sample / 'store'}", tmp_path_factory.mktemp("serve")) as process:
        process.wait_ready()
        yield process


def test_it_answers_what_the_command_answers(service: Process, judged_sample: Path, tmp_path: Path) -> None:
    """The same matches for the articles of a feed."""
    feed = [
        {"id": f"new-{number}", "body": article["body"]}
        for number, article in enumerate(json_lines((ROOT / "sample" / "feed.jsonl").read_bytes())[:60])
        if isinstance(article.get("body"), str)
    ]
    told = json_lines(
        run_process(
            "query", write_lines(tmp_path / "feed.jsonl", feed), "--store", f"lmdb:{judged_sample / 'store'}"
        ).out
    )
    results = service.check(*feed).json["results"]
    assert len(results) == len(told) > 20
    for result, line in zip(results, told, strict=True):
        assert all(result[name] == line[name] for name in ("id", "outcome", "text_kind"))
        named = ("id", "version", "title", "distance", "similarity")
        matches = [{name: match[name] for name in named} for match in result.get("matches", [])]
        assert matches == line["matches"][: len(matches)]
    assert sum(result["outcome"] == "duplicate" for result in results) > 20


def test_an_article_that_was_just_judged_is_found(tmp_path: Path) -> None:
    """A run judges into the store while the service has it open."""
    store = f"lmdb:{tmp_path / 'store'}"
    article = json_lines((ROOT / "sample" / "feed.jsonl").read_bytes())[0]
    with serving(store, tmp_path, *FAST) as service:
        service.wait_ready()
        assert service.check({"body": article["body"]}).json["results"][0]["outcome"] == "unique"
        feed = write_lines(tmp_path / "feed.jsonl", [article])
        ended = run_process("run", "--source", feed, "--sink", tmp_path / "out", "--store", store, *FAST)
        assert ended.code == 0, ended.err
        (result,) = service.check({"body": article["body"]}).json["results"]
        assert (result["outcome"], result["matches"][0]["id"]) == ("duplicate", article["id"])
        assert service.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    """With the exit code of a success, also while a client keeps a connection open; its log is lines of JSON."""
    with serving("memory:", tmp_path) as service:
        service.wait_ready()
        with service.connect():
            assert service.check({"body": "x"}, x_request_id="mine").status == 200
            assert service.stop(number) == 0
        lines = [json.loads(line) for line in service.log.read_text().splitlines()]
    assert lines[0]["message"] == "Serving"
    assert [line["message"] for line in lines if line.get("request_id") == "mine"] == ["POST /v1/check 200"]


def test_it_ends_while_a_request_arrives(tmp_path: Path) -> None:
    """Which is given its time, and then ended."""
    with serving("memory:", tmp_path, "--set", "service.drain_s=1") as service:
        service.wait_ready()
        with service.connect() as connection:
            head = b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            connection.sendall(head + b"Content-Length: 9\r\n\r\n{")
            wait_for(lambda: service.metric("dupwatch_requests_in_flight") == 2, WAIT_S)
            assert service.stop() == 0


def test_a_store_of_other_settings_ends_it_with_its_exit_code(judged_sample: Path, tmp_path: Path) -> None:
    """As it ends every command."""
    store = f"lmdb:{judged_sample / 'store'}"
    with serving(store, tmp_path, "--set", "judge.similarity_min=0.9") as service:
        assert service.process.wait(WAIT_S) == 4
        assert "similarity_min" in service.log.read_text()


def test_an_address_that_others_reach_is_refused(dupwatch: Command) -> None:
    """Before anything is opened."""
    ended = dupwatch("serve", "--store", "memory:", "--set", "service.listen=0.0.0.0:0")
    assert (ended.code, "lets other machines read articles: set service.tokens" in ended.err) == (2, True)


def test_without_its_packages_it_says_what_to_install() -> None:
    """All other commands work without."""
    ended = run_without(["fastapi", "starlette", "uvicorn"], "serve", "--store", "memory:")
    assert ended.code == 2
    assert "which is not installed" in ended.err
    assert ended.err.endswith(f"Install it with:\n{install_command('serve')}\n")


@pytest.fixture(scope="module")
def storing(judged_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A service over a copy of the sample, which may be changed."""
    folder = tmp_path_factory.mktemp("storing")
    shutil.copytree(judged_sample / "store", folder / "store")
    banks = folder / "banks.jsonl"
    assert run_process("bank", "create", "spam", "--action", "deny", "--banks", banks).code == 0
    banking = ("--set", f"banks.url={banks}")
    with serving(f"lmdb:{folder / 'store'}", folder, "--sink", "nowhere:", *banking, *FAST) as process:
        process.wait_ready()
        yield process


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.split("8750")[1].split()[0])
def test_the_examples_of_the_page_work(storing: Process, example: str) -> None:
    """Each as it stands there, but for the port."""
    command = example.replace("http://127.0.0.1:8750", storing.url).replace("curl -s", "curl -s --show-error", 1)
    ended = subprocess.run(["sh", "-c", command], capture_output=True, timeout=WAIT_S, check=False)
    assert ended.returncode == 0, ended.stderr
    answer = ended.stdout.decode()
    if "metrics" in example:
        assert "dupwatch_requests_total" in answer
    elif "healthz" in example:
        assert answer == "ok\n"
    else:
        assert ("problem" in json.loads(answer).get("type", "")) == ("unknown" in example)


def test_the_answers_of_the_page_are_those_that_come(service: Process) -> None:
    """The same members with values of the same types."""
    shown = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)]
    check = next(example for example in EXAMPLES if "/v1/check" in example)
    sent = json.loads(check.partition("-d '")[2].rpartition("'")[0])
    assert service.check(*sent["articles"]).json == shown[0]
    problem = service.get("/v1/articles/unknown").json
    assert problem | {"request_id": ""} == shown[2] | {"request_id": ""}
    assert len(EXAMPLES) == 13


def test_the_verdicts_of_the_page_are_those_that_come(storing: Process) -> None:
    """What is shown of a verdict is in it, and what is wrong with an article is said in the same words."""
    page = json.loads(re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1])
    shown = page["results"]
    example = next(example for example in EXAMPLES if "/v1/articles -H" in example)
    sent = json.loads(example.partition("-d '")[2].rpartition("'")[0])
    answer = storing.store(*sent["articles"]).json
    assert answer["text_kinds"] == page["text_kinds"] == ["long", None]
    verdict, fault = answer["results"]
    assert {name: verdict[name] for name in ("schema", "id", "outcome")} == {
        name: shown[0][name] for name in ("schema", "id", "outcome")
    }
    assert fault == shown[1]
