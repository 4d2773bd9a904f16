"""The whole stack in containers: ``make compose-test``. The tests follow one another on one stack, as a day goes."""

import json
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cli.command import SAMPLE, json_lines, run_process, write_lines
from tests.compose.stack import HEALTH_S, ROOT, Stack, StackFailed
from tests.unit.console.serving import Browser

pytestmark = [pytest.mark.compose, pytest.mark.timeout(1800)]

OUTCOMES: Final = ("unique", "duplicate", "retracted")
TOPIC: Final = "kafka://kafka:9092/articles"
PARTITIONS: Final = 6
Verdicts = Counter[tuple[str, str, str]]
"""How often each was said: id, version, outcome."""

READ: Final = """
import sys
from confluent_kafka import Consumer, TopicPartition
reader = Consumer({"bootstrap.servers": "kafka:9092", "group.id": "looks", "enable.auto.commit": False})
for topic in sys.argv[1:]:
    for number in reader.list_topics(topic, 20).topics[topic].partitions:
        place = TopicPartition(topic, number, 0)
        _, end = reader.get_watermark_offsets(place, 20)
        reader.assign([place])
        while end and place.offset < end:
            for message in reader.consume(500, 1):
                place.offset = message.offset() + 1
                sys.stdout.buffer.write(message.value() + b"\\n")
"""
KILL: Final = """
import os, signal
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) not in {1, os.getpid()}:
        os.kill(int(name), signal.SIGKILL)
"""


class Trial(NamedTuple):
    """A feed, and what a run over it as a file says, with the feeds before it in the same store."""

    feed: Path
    expected: Verdicts


@pytest.fixture(scope="module")
def trials(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    """The sample feed; all of it again under other ids; and those that were kept, under other ids once more.

    The last are flagged in whatever order they come: each repeats an article that is kept, and in force. After them
    comes an article that is like none.
    """
    folder = tmp_path_factory.mktemp("trials")
    # The container's user is another one.
    folder.chmod(0o755)
    run = partial(_trial, folder, _secret_of(stack, folder / "secret"))
    sample = json_lines(SAMPLE.read_bytes())
    again = [article | {"id": f"{article['id']}-again"} for article in sample]
    trials = [run("first", sample), run("second", again)]
    fates: dict[str, list[str]] = {}
    for article, _, outcome in trials[0].expected.elements():
        fates.setdefault(article, []).append(outcome)
    kept = [article | {"id": f"{article['id']}-once-more"} for article in sample if fates[article["id"]] == ["unique"]]
    alone = {"id": "alone", "title": "", "body": "Seventeen herons stood on the frozen lake, and none of them moved."}
    return [*trials, run("third", kept), run("alone", [alone])]


def _secret_of(stack: Stack, copy: Path) -> Path:
    """Copy the secret of the stack's store: with another one, verdicts on pairs at the threshold may differ."""
    (consumer,) = stack.ids("consumer")
    stack.container("exec", consumer, "dupwatch", "store", "secret", "export", "/tmp/secret")
    copy.write_text(stack.container("exec", consumer, "cat", "/tmp/secret"))
    copy.chmod(0o600)
    return copy


def _trial(folder: Path, secret: Path, name: str, records: list[dict[str, Any]]) -> Trial:
    feed, sink = write_lines(folder / f"{name}.jsonl", records), folder / f"{name}-verdicts.jsonl"
    feed.chmod(0o644)
    settings = ["--store", f"lmdb:{folder / 'store'}", "--set", f"fingerprint.secret_file={secret}"]
    ended = run_process("run", "--source", feed, "--sink", sink, "--emit", "all", *settings)
    assert ended.code == 0, ended.err
    return Trial(feed, verdicts_of(json_lines(sink.read_bytes())))


def verdicts_of(events: Iterable[dict[str, Any]]) -> Verdicts:
    """What events say, and how often."""
    return Counter((event["id"], event["version"], event["outcome"]) for event in events)


def verdicts_on(stack: Stack, topic: str) -> list[dict[str, Any]]:
    """Everything that a topic of verdicts has; it is read by a client within the stack, where brokers are reached."""
    consumer = stack.ids("consumer")[-1]
    return json_lines(stack.container("exec", consumer, "python3", "-c", READ, f"dupwatch.{topic}").encode())


def flags_of(verdicts: Verdicts) -> set[tuple[str, str, str]]:
    """The duplicates alone."""
    return {verdict for verdict in verdicts if verdict[2] == "duplicate"}


def page(stack: Stack, service: str, port: int, path: str, index: int = 0) -> bytes:
    """A page of a service, as a browser on this machine gets it; of the container with that index."""
    address = stack.address(stack.ids(service)[index], port)
    with urllib.request.urlopen(f"http://{address}{path}", timeout=20) as answer:
        body: bytes = answer.read()
    return body


def metric(stack: Stack, name: str, index: int = 0, **labels: str) -> float:
    """The sum of a metric of a consumer, of those series that have these labels."""
    families = text_string_to_metric_families(page(stack, "consumer", 9464, "/metrics", index).decode())
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


def asked(stack: Stack, query: str) -> dict[str, float]:
    """What Prometheus answers, by outcome."""
    path = "/api/v1/query?" + urllib.parse.urlencode({"query": query})
    results = json.loads(page(stack, "prometheus", 9090, path))["data"]["result"]
    return {result["metric"].get("outcome", ""): float(result["value"][1]) for result in results}


def send(stack: Stack, feed: Path, rate: int, *options: str) -> None:
    """Send a feed of ours, as the feed's service sends the sample."""
    mounted = ["--volume", f"{feed}:/feed.jsonl:ro"]
    stack.run("feed", "produce", "/feed.jsonl", "--to", TOPIC, "--rate", str(rate), *options, options=mounted)


def wait_for_verdicts(stack: Stack, wanted: Verdicts, what: str) -> Verdicts:
    """Return what the topic says when every verdict that is wanted has come."""
    found: Verdicts = Counter()

    def come() -> bool:
        nonlocal found
        found = verdicts_of(verdicts_on(stack, "verdicts"))
        return not wanted.keys() - found.keys()

    try:
        stack.wait(come, what, "consumer")
    except AssertionError:
        print("missing:", wanted - found, file=sys.stderr)  # noqa: T201  # what is missing is worth more than the logs
        raise
    return found


def test_the_demo_feed_gives_the_flags_that_a_run_over_the_file_gives(stack: Stack, trials: list[Trial]) -> None:
    """One command sends it; the topics of verdicts and of flags have exactly what ``make run`` finds.

    A consumer with a backlog reads one partition after the other, and so in another order. So it must have judged and
    sent something before the feed comes.
    """
    stack.wait(lambda: metric(stack, "dupwatch_assigned_partitions") == PARTITIONS, "it has its partitions", "consumer")
    alone = trials[3]
    send(stack, alone.feed, 1)
    wait_for_verdicts(stack, alone.expected, "the first verdict is on its topic")
    stack.run("feed")
    stack.say("sample feed sent")
    verdicts = wait_for_verdicts(stack, trials[0].expected, "every verdict is on its topic")
    assert set(verdicts) == set(trials[0].expected + alone.expected)
    flags = set(verdicts_of(verdicts_on(stack, "duplicates")))
    assert flags == flags_of(trials[0].expected)
    stack.say(f"{len(verdicts)} verdicts and {len(flags)} flags on their topics, those of a run over the file")


def test_the_page_shows_the_flags(stack: Stack, trials: list[Trial]) -> None:
    """It counts those that are on the topic, and its latest are among them."""
    shown = json.loads(page(stack, "consumer", 9464, "/flags.json"))
    flags = flags_of(trials[0].expected)
    assert shown["seen"] >= len(flags)
    assert shown["flags"]
    assert {(flag["id"], flag["version"], "duplicate") for flag in shown["flags"]} <= flags
    stack.say(f"{shown['seen']} flags on the page")


def test_prometheus_has_the_metrics(stack: Stack, trials: list[Trial]) -> None:
    """Articles by outcome are what the consumer's own page tells, and as many as there were."""
    counts = {outcome: metric(stack, "dupwatch_articles_total", outcome=outcome) for outcome in OUTCOMES}
    assert sum(counts.values()) >= sum(trials[0].expected.values())
    shown = [f"{count:.0f} {outcome}" for outcome, count in counts.items()]
    query = "sum by (outcome) (dupwatch_articles_total)"
    stack.wait(lambda: asked(stack, query) == counts, f"Prometheus has {', '.join(shown)}", "prometheus")


def test_the_consumer_computes_with_the_compiled_engine(stack: Stack) -> None:
    """As its metrics say."""
    assert metric(stack, "dupwatch_build_info", engine="compiled") == 1


def test_the_service_answers_whom_it_knows(stack: Stack, trials: list[Trial]) -> None:
    """A token is made by one command; what it checks and stores is in the store and on the topics of the consumers."""
    stack.wait_healthy("serve")
    address = stack.address(stack.ids("serve")[0], 8750)
    assert address.startswith("127.0.0.1:")
    roles = ["--role", "reader", "--role", "writer"]
    secret = stack.run("tokens", "add", "crawler", *roles, "--owner", "An Na").split()[-1]
    copied = json_lines(trials[0].feed.read_bytes())[0] | {"id": "over-http"}

    def sent(path: str, *, token: str | None) -> tuple[int, dict[str, Any]]:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        body = json.dumps({"articles": [copied]}).encode()
        request = urllib.request.Request(f"http://{address}{path}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, {}

    # The running service looks at the file every second.
    stack.wait(lambda: sent("/v1/check", token=secret)[0] == 200, "the service knows the token", "serve")
    assert sent("/v1/check", token=None)[0] == 401
    (checked,) = sent("/v1/check", token=secret)[1]["results"]
    (stored,) = sent("/v1/articles", token=secret)[1]["results"]
    assert (checked["outcome"], stored["outcome"]) == ("duplicate", "duplicate")
    assert stored["duplicate_of"] == checked["matches"][0]["id"]
    assert ("over-http", stored["version"], "duplicate") in flags_of(verdicts_of(verdicts_on(stack, "duplicates")))
    stack.say("checked and stored over HTTP")


def test_prometheus_scrapes_the_service_with_its_token(stack: Stack) -> None:
    """The secret is in no environment and no log, and only Prometheus and dupwatch can read it."""
    query = 'count(up{job="dupwatch-serve"} == 1)'
    stack.wait(lambda: asked(stack, query) == {"": 1}, "Prometheus has the service", "prometheus")
    (prometheus,), (made,) = stack.ids("prometheus"), stack.ids("scrape-token")
    listed = stack.container("exec", prometheus, "ls", "-ln", "/run/dupwatch").splitlines()
    modes = {line.split()[-1]: (line.split()[0], *line.split()[2:4]) for line in listed[1:]}
    assert modes["prometheus.secret"] == ("-rw-r-----", "10001", "10001")
    assert modes["tokens.json"] == ("-rw-------", "10001", "10001")
    secret = stack.container("exec", prometheus, "cat", "/run/dupwatch/prometheus.secret").strip()
    assert secret.startswith("dupwatch_")
    assert secret not in stack.logs(made)
    # Started again, it makes no other one.
    stack.compose("up", "--detach", "--no-deps", "scrape-token")
    stack.wait_completed("scrape-token")
    assert stack.container("exec", prometheus, "cat", "/run/dupwatch/prometheus.secret").strip() == secret


def test_a_flag_comes_to_the_console_and_is_released_there(stack: Stack) -> None:
    """Every flag of the topic is in its queue; somebody whom one command added signs in and says that one is wrong."""
    stack.wait_healthy("console")
    address = stack.address(stack.ids("console")[0], 8760)
    assert address.startswith("127.0.0.1:")
    browser = Browser(f"http://{address}")
    password = stack.run("people", "add", "An Na", "--role", "admin").split()[-1]
    assert browser.get("/").status == 303
    assert browser.sign_in("An Na", password).status == 303
    flags = flags_of(verdicts_of(verdicts_on(stack, "duplicates")))
    stack.wait(lambda: console_metric(stack, "dupwatch_console_flags") == len(flags), "all flags are there", "console")
    # The newest: the service made it, before this.
    pages = [f"/flags/{number}" for number in re.findall(r'href="/flags/(\d+)', browser.get("/?order=newest").text)]
    page = next(page for page in pages if "over-http" in browser.get(page).shown)
    assert browser.send(f"{page}/decide", page, decision="wrong", note="another story").status == 303

    def released() -> bool:
        events = [event for event in verdicts_on(stack, "duplicates") if event["id"] == "over-http"]
        return [event["released"]["by"] for event in events if event["outcome"] == "unique"] == ["An Na"]

    stack.wait(released, "what somebody said is wrong is released", "console")
    assert "decided wrong" in browser.get("/audit").shown


def console_metric(stack: Stack, name: str) -> float:
    """The sum of a metric of the console."""
    families = text_string_to_metric_families(page(stack, "console", 8760, "/metrics").decode())
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)


def test_prometheus_scrapes_the_console(stack: Stack) -> None:
    """In a job of its own, which the alerts know."""
    query = 'count(up{job="dupwatch-console"} == 1)'
    stack.wait(lambda: asked(stack, query) == {"": 1}, "Prometheus has the console", "prometheus")


def test_nobody_but_its_two_sides_has_the_password_of_the_database(stack: Stack) -> None:
    """It is in a file that is theirs, and neither in what the engine knows nor in a log; PostgreSQL asks for it."""
    (server,), (console,), (made,) = (stack.ids(name) for name in ("postgres", "console", "database-password"))
    (line,) = stack.container("exec", server, "ls", "-ln", "/run/database").splitlines()[1:]
    assert (line.split()[0], *line.split()[2:4], line.split()[-1]) == ("-rw-r-----", "10001", "10001", "password")
    password = stack.container("exec", server, "cat", "/run/database/password").strip()
    for container in (server, console, made):
        assert password not in json.dumps(stack.inspected(container)) + stack.logs(container)
    ask = ["exec", server, "psql", "--no-password", "--username=dupwatch", "--dbname=console", "--command=SELECT 1"]
    stack.container(*ask)
    with pytest.raises(StackFailed, match="no password supplied"):
        stack.container(*ask, "--host=postgres")


def test_the_database_is_backed_up_and_restored_in_its_container(stack: Stack) -> None:
    """Saved while the console runs and restored while it is stopped, as docs/operate/containers.md says."""
    (server,) = stack.ids("postgres")
    password = stack.run("people", "add", "Bo").split()[-1]

    def run(program: str, redirected: str = "") -> None:
        command = documented("docs/operate/containers.md", program)
        stack.container("exec", server, "bash", "-euc", f"{command} {redirected}")

    run("pg_dump", ">/tmp/console.dump")
    stack.compose("stop", "console")
    run("dropdb")
    run("createdb")
    run("pg_restore", "</tmp/console.dump")
    stack.compose("up", "--detach", "--no-deps", "console")
    stack.wait_healthy("console")
    browser = Browser(f"http://{stack.address(stack.ids('console')[0], 8760)}")
    assert browser.sign_in("Bo", password).status == 303
    asked_for = "SELECT count(*) FROM reviews JOIN flags USING (flag_id) WHERE article_id = 'over-http'"
    ask = ["psql", "--username=dupwatch", "--dbname=console", "--tuples-only", f"--command={asked_for}"]
    assert stack.container("exec", server, *ask).split() == ["1"]
    stack.say("backed up and restored")


def documented(page: str, program: str) -> str:
    """The command line of a program that a page runs in the container of PostgreSQL, without files of the host."""
    command = rf"^ +docker compose exec -T postgres ({program} [^<>\n]+?)(?: [<>].*)?$"
    found: list[str] = re.findall(command, (ROOT / page).read_text(), re.MULTILINE)
    return found[0]


def test_a_killed_consumer_comes_back_and_nothing_is_lost(stack: Stack, trials: list[Trial]) -> None:
    """Killed with -9 in the middle of a feed, the container is started again, and every article gets its verdict."""
    (consumer,) = stack.ids("consumer")
    before = stack.inspected(consumer)["State"]["StartedAt"]
    answered = metric(stack, "dupwatch_articles_total")
    sending = threading.Thread(target=send, args=(stack, trials[1].feed, 20, "--in-order"))
    sending.start()
    stack.wait(lambda: metric(stack, "dupwatch_articles_total") > answered + 10, "a feed is under way", "consumer")
    # Its own shell goes with it, so that this command ends in an error.
    subprocess.run([stack.engine.name, "exec", consumer, "python3", "-c", KILL], capture_output=True, check=False)
    stack.say("consumer killed")

    def again() -> bool:
        state = stack.inspected(consumer)["State"]
        return bool(state["Running"]) and state["StartedAt"] != before and stack.healthy(consumer)

    stack.wait(again, "consumer started again and healthy", "consumer")
    sending.join(HEALTH_S)
    verdicts = wait_for_verdicts(stack, trials[1].expected, "every verdict is on its topic")
    ours = {verdict for verdict in verdicts if verdict[0].endswith("-again")}
    assert ours == set(trials[1].expected)
    repeated = sum(verdicts[verdict] for verdict in ours) - sum(trials[1].expected.values())
    stack.say(f"{len(ours)} versions judged as expected, {repeated} verdicts repeated")


def test_two_consumers_share_the_partitions(stack: Stack, trials: list[Trial]) -> None:
    """A second one takes half of them, both judge, and the flags stay right; Prometheus finds both by itself."""
    stack.scale("consumer", 2)
    stack.wait(
        lambda: [metric(stack, "dupwatch_assigned_partitions", index) for index in (0, 1)] == [PARTITIONS // 2] * 2,
        "two consumers with half of the partitions each",
        "consumer",
    )
    stack.wait(lambda: asked(stack, 'count(up{job="dupwatch"} == 1)') == {"": 2}, "Prometheus has both", "prometheus")
    before = [metric(stack, "dupwatch_articles_total", index) for index in (0, 1)]
    send(stack, trials[2].feed, 100)
    verdicts = wait_for_verdicts(stack, trials[2].expected, "every verdict is on its topic")
    ours = {verdict for verdict in verdicts if verdict[0].endswith("-once-more")}
    assert ours == set(trials[2].expected)
    assert {outcome for _, _, outcome in ours} == {"duplicate"}
    judged = [metric(stack, "dupwatch_articles_total", index) - before[index] for index in (0, 1)]
    assert min(judged) > 0
    stack.say(f"{judged[0]:.0f} and {judged[1]:.0f} articles judged")


def test_nothing_is_left(stack: Stack) -> None:
    """Taken down with its volumes, the project has no container, volume or network any more."""
    used = stack.volumes()
    assert len(used) >= len(
        {"kafka-data", "hbase-data", "schema", "postgres-data", "database-password", "prometheus-data"}
    )
    stack.down()
    assert stack.left(used) == []
