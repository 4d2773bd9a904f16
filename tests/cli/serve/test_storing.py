"""``dupwatch serve`` stores articles: two processes over one store, killed at any moment; and where verdicts go."""

from functools import partial
from pathlib import Path

from tests.cli.command import FAST, SAMPLE, json_lines, run_process, text
from tests.cli.serve.posting import Services, ask_again, check, post
from tests.cli.serve.service import serving
from tests.unit.service.serving import WAIT_S

GROUPS = 60
KILLS = 3
BATCH = 100


def test_whoever_was_answered_is_in_the_sink_and_has_one_verdict(tmp_path: Path) -> None:
    """Four clients post near copies to two processes that are killed with -9, and repeat what is not answered."""
    services = Services(f"lmdb:{tmp_path / 'store'}", tmp_path)
    with services.running():
        posted = post(services, GROUPS, [partial(services.replace, kill % 2) for kill in range(KILLS)], "short")
        ask_again(services, GROUPS, posted.answered)
    check(services, GROUPS, posted.answered)


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    """The second one is refused, as a run is."""
    sink = ("--sink", str(tmp_path / "verdicts.jsonl"), *FAST)
    with serving("memory:", tmp_path, *sink) as service:
        service.wait_ready()
        second = run_process("serve", "--store", "memory:", *sink, "--set", "service.listen=127.0.0.1:0")
        assert (second.code, "is being written by another process" in second.err) == (6, True)
        assert service.store({"id": "a", "body": text(1)}).status == 200
        assert service.stop() == 0


def test_a_run_and_a_service_judge_into_one_store(tmp_path: Path) -> None:
    """Each flags what the other has kept, and the file of the service goes on after a restart."""
    store, sink = f"lmdb:{tmp_path / 'store'}", tmp_path / "verdicts.jsonl"
    more = ("--sink", str(sink), "--set", "sink.emit=all", *FAST)
    with serving(store, tmp_path, *more) as service:
        service.wait_ready()
        assert service.store({"id": "a", "body": text(1)}).json["results"][0]["outcome"] == "unique"
        feed = b'{"id": "b", "body": "%s too"}\n{"id": "c", "body": "%s"}\n' % (text(1).encode(), text(2).encode())
        ended = run_process("run", "--store", store, "--set", "sink.emit=all", *FAST, given=feed)
        assert [verdict["outcome"] for verdict in json_lines(ended.out)] == ["duplicate", "unique"]
        assert service.store({"id": "d", "body": f"{text(2)} too"}).json["results"][0]["duplicate_of"] == "c"
        assert service.stop() == 0
    with serving(store, tmp_path, *more) as service:
        service.wait_ready()
        assert service.retract("d", "key").json["outcome"] == "retracted"
        assert service.stop() == 0
    assert [(verdict["id"], verdict["outcome"]) for verdict in json_lines(sink.read_bytes())] == [
        ("a", "unique"), ("d", "duplicate"), ("d", "retracted"),
    ]  # fmt: skip


def test_a_service_whose_sink_fails_ends_with_its_exit_code(tmp_path: Path) -> None:
    """No disk takes more of its output: the client is told to come again, and the service ends."""
    more = ("--set", "sink.emit=all", *FAST)
    with Path("/dev/full").open("wb") as full, serving("memory:", tmp_path, *more, out=full) as service:
        service.wait_ready()
        refused = service.store({"id": "a", "body": text(1)})
        assert (refused.status, refused.json["type"]) == (503, "urn:dupwatch:problem:outcome-unknown")
        assert service.process.wait(WAIT_S) == 6
        assert "the verdicts cannot be written: No space left on device" in service.log.read_text()


def test_verdicts_go_to_standard_output_where_no_sink_is_named(tmp_path: Path) -> None:
    """The flags, and the event of a release."""
    with (tmp_path / "out").open("wb") as out, serving("memory:", tmp_path, *FAST, out=out) as service:
        service.wait_ready()
        results = service.store({"id": "a", "body": text(1)}, {"id": "b", "body": f"{text(1)} too"}).json["results"]
        released = service.release("b")
        assert service.stop() == 0
    assert json_lines((tmp_path / "out").read_bytes()) == [results[1], released.json]


def test_articles_over_http_are_judged_as_those_of_a_file(tmp_path: Path) -> None:
    """With everything that a verdict can say: the same events, but for the times."""
    settings = ("sink.emit=all", "judge.parts=true", "judge.seen_days=30", f"source.batch_records_max={BATCH}")
    more = (*FAST, *(each for setting in settings for each in ("--set", setting)))
    sink = tmp_path / "run.jsonl"
    ended = run_process("run", "--source", SAMPLE, "--sink", sink, "--store", f"lmdb:{tmp_path / 'a'}", *more)
    assert ended.code == 0, ended.err
    expected = json_lines(sink.read_bytes())
    articles = SAMPLE.read_bytes().splitlines()
    with serving(f"lmdb:{tmp_path / 'b'}", tmp_path, "--sink", "nowhere:", "--set", "workers=1", *more) as service:
        service.wait_ready()
        found = []
        for start in range(0, len(articles), BATCH):
            body = b'{"articles": [' + b",".join(articles[start : start + BATCH]) + b"]}"
            answer = service.ask("POST", "/v1/articles", body, content_type="application/json")
            assert answer.status == 200
            found += answer.json["results"]
        assert service.stop() == 0
    times = {"arrived_at": "", "decided_at": ""}
    given_back = {"retracted", "error"}
    assert [verdict | times for verdict in found if verdict["outcome"] not in given_back] == [
        verdict | times for verdict in expected if verdict["outcome"] not in given_back
    ]
    assert len(found) == len(articles)
    assert {"duplicate", "unique", "error"} == {verdict["outcome"] for verdict in found}
    assert any("parts" in verdict for verdict in found)
