"""Settings: their sources, their precedence, and their effect on verdicts."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel

from consumer.config.config import Config
from consumer.config.sections.judge import RuleSection
from storage.lmdb import LmdbOptions, LmdbStore
from storage.records import StoredVersion
from tests.cli.command import Command, articles, json_lines, text, write_lines

ROOT = Path(__file__).parents[2]
BODY = text(1, 60)
EDITED = BODY.replace(BODY.split()[30], "elsewhere")
Judge = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def judge(dupwatch: Command, tmp_path: Path) -> Judge:
    """Judge records with options, and return all verdicts."""

    def run(records: list[object], *options: str) -> list[dict[str, Any]]:
        ended = dupwatch("run", "--source", write_lines(tmp_path / "feed.jsonl", records), "--emit", "all", *options)
        assert ended.code == 0, ended.err
        return json_lines(ended.out)

    return run


def pair(a_source: str = "", b_source: str = "") -> list[object]:
    """Return an article and an edited copy of it."""
    return [{"id": "a", "source": a_source, "body": BODY}, {"id": "b", "source": b_source, "body": EDITED}]


def sets(*settings: str) -> list[str]:
    """Return the options that set these."""
    return [part for setting in settings for part in ("--set", setting)]


def outcomes(verdicts: list[dict[str, Any]]) -> list[str]:
    """Return the outcome of each article."""
    return [verdict["outcome"] for verdict in verdicts]


def test_field_mapping(judge: Judge, tmp_path: Path) -> None:
    """``[source.fields]`` maps fields by dotted paths, for articles in another format."""
    config = tmp_path / "dupwatch.toml"
    config.write_text('[source.fields]\nid = "meta.key"\nbody = "content.text"\nsource = "meta.from"\n')
    records: list[object] = [{"meta": {"key": n, "from": "x"}, "content": {"text": BODY}} for n in (1, 2)]
    found = judge(records, "--config", str(config))
    assert [(verdict["id"], verdict["duplicate_of"]) for verdict in found] == [("1", None), ("2", "1")]


def test_html_bodies(judge: Judge) -> None:
    """With ``body_format = "html"`` the text of the markup is compared, not the markup."""
    records: list[object] = [
        {"id": "a", "body": f"<p>{BODY}</p>"},
        {"id": "b", "body": f"<div class='{text(7)}'><script>{text(8)}</script><b>{BODY}</b></div>"},
    ]
    assert outcomes(judge(records)) == ["unique", "unique"]
    plain, marked = judge(records, *sets("source.body_format=html"))
    assert (marked["outcome"], marked["similarity"]) == ("duplicate", 1)
    assert plain["fingerprint"] == marked["fingerprint"]


def page(body: str, around: int) -> str:
    """Return a page with this article among links and a footer of its own."""
    links = "".join(f"<li><a href='/{n}'>{text(around + n, 12)}</a></li>" for n in range(20))
    return (
        f"<html><head><title>Site {around}</title></head><body><nav><ul>{links}</ul></nav><div id=c{around}>"
        f"<p>{body[:200]}</p><p>{body[200:]}</p></div><footer><p>{text(around + 30, 80)}</p></footer></body></html>"
    )


def test_pages(judge: Judge) -> None:
    """With ``body_format = "article"`` two pages with one article are copies, and the event says what was compared."""
    records: list[object] = [
        {"id": "a", "body": page(BODY, 100)},
        {"id": "b", "body": page(BODY, 200)},
        {"id": "c", "body": "<a href=/>Nothing here</a>"},
        {"id": "d", "body": None},
    ]
    assert outcomes(judge(records, *sets("source.body_format=html"))) == ["unique", "unique", "unique", "retracted"]
    found = judge(records, *sets("source.body_format=article"))
    assert outcomes(found) == ["unique", "duplicate", "unique", "retracted"]
    assert found[1]["similarity"] == 1
    assert [verdict.get("extracted") for verdict in found] == ["article", "article", "whole_text", None]
    assert all("extracted" not in verdict for verdict in judge(records))


def test_a_store_is_bound_to_what_finds_articles(dupwatch: Command, tmp_path: Path) -> None:
    """It need not be named again, and a replay gives the same bytes; another one is refused, by ``query`` as well."""
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": "a", "body": page(BODY, 100)}])
    copy = write_lines(tmp_path / "copy.jsonl", [{"id": "b", "body": page(BODY, 200)}])
    store = ("--store", f"lmdb:{tmp_path / 'store'}")
    run = ("run", "--source", feed, *store, "--emit", "all")
    first = dupwatch(*run, *sets("source.body_format=article"))
    assert json_lines(first.out)[0]["extracted"] == "article"
    assert dupwatch(*run).out == first.out
    assert [match["id"] for match in json_lines(dupwatch("query", copy, *store).out)[0]["matches"]] == ["a"]
    for other in ("source.body_format=html", "source.extractor=precise"):
        for command in (run, ("query", copy, *store)):
            refused = dupwatch(*command, *sets(other))
            assert refused.code == 4
            assert 'extractor is "fast/2" in the store' in refused.err.replace("\n", " ")


@pytest.mark.parametrize(
    ("sources", "rules", "expected"),
    [
        (("wire", "wire"), (), "duplicate"),
        (("wire", "wire"), ("rules.wire.flag=never",), "unique"),
        (("", "wire"), ("rules.wire.flag=never",), "unique"),
        (("wire", ""), ("rules.wire.flag=never",), "duplicate"),
        (("wire", "wire"), ("rules.wire.within_source=false",), "unique"),
        (("wire", ""), ("rules.wire.within_source=false",), "duplicate"),
        (("wire", "blog"), ('rules.wire.never_with=["x", "blog"]',), "unique"),
        (("blog", "wire"), ('rules.wire.never_with=["x", "blog"]',), "unique"),
        (("wire", "other"), ('rules.wire.never_with=["x", "blog"]',), "duplicate"),
        (("", "wire"), ("rules.wire.similarity_min=0.999",), "unique"),
        (("wire", ""), ("rules.wire.similarity_min=0.999",), "unique"),
        (("other", ""), ("rules.wire.similarity_min=0.999",), "duplicate"),
    ],
)
def test_rules_of_a_source(judge: Judge, sources: tuple[str, str], rules: tuple[str, ...], expected: str) -> None:
    """A rule applies to the articles of its source, and the stricter of two thresholds decides."""
    assert outcomes(judge(pair(*sources), *sets(*rules))) == ["unique", expected]


def test_plain_simhash(judge: Judge) -> None:
    """With verification off the distance alone decides, and there is no similarity."""
    plain = ("judge.verify=false", "judge.lane1=false")
    *_, verified = judge(pair())
    *_, flagged = judge(pair(), *sets(*plain, f"judge.max_distance={max(verified['distance'], 1)}"))
    assert flagged["outcome"] == "duplicate"
    assert flagged["similarity"] is None
    assert flagged["matches"][0]["similarity"] is None
    assert verified["distance"] == flagged["distance"] > 0
    assert outcomes(judge(pair(), *sets(*plain, "judge.max_distance=0"))) == ["unique", "unique"]


@pytest.mark.parametrize("max_distance", [4, 5, 6, 7])
def test_wider_distances(judge: Judge, max_distance: int) -> None:
    """Up to 7 bits plain SimHash flags exactly the pairs of a feed that are within the distance."""
    words = BODY.split()
    edits = [" ".join([*words[:at], "elsewhere", *words[at + 4 :]]) for at in range(0, 60, 3)]
    bodies = [BODY, *edits]
    records: list[object] = [{"id": f"{n}", "body": body} for n, body in enumerate(bodies)]
    found = judge(records, *sets("judge.verify=false", "judge.lane1=false", f"judge.max_distance={max_distance}"))
    kept: list[int] = []
    for verdict in found:
        code = int(verdict["fingerprint"], 16)
        nearest = min(((code ^ other).bit_count() for other in kept), default=64)
        assert verdict["outcome"] == ("duplicate" if nearest <= max_distance else "unique")
        assert verdict["distance"] in {None, nearest}
        if verdict["outcome"] == "unique":
            kept.append(code)
    assert len(kept) > 1
    assert "duplicate" in outcomes(found)


def test_precedence(dupwatch: Command, tmp_path: Path) -> None:
    """The environment overrides the file, ``--set`` overrides both, and a flag overrides all."""
    config = tmp_path / "dupwatch.toml"
    config.write_text('workers = 1\n[judge]\nmax_distance = 1\nreach = 9\n[store]\nurl = "lmdb:file"\n')
    file = ("--config", config)
    variables = {"DUPWATCH_JUDGE__MAX_DISTANCE": "2"}

    def shown(*options: str, **environment: str) -> dict[str, Any]:
        ended = dupwatch("config", "show", *file, *options, **environment)
        assert ended.code == 0, ended.err
        return tomllib.loads(ended.out.decode())

    assert shown()["judge"]["max_distance"] == 1
    assert shown(**variables)["judge"]["max_distance"] == 2
    highest = shown("--set", "judge.max_distance=3", **variables)
    assert highest["judge"]["max_distance"] == 3
    assert (highest["judge"]["reach"], highest["workers"]) == (9, 1)
    ended = dupwatch("store", "stats", *file, "--set", "store.url=lmdb:set", "--store", f"lmdb:{tmp_path / 'flag'}")
    assert ended.code == 4
    assert f"{tmp_path / 'flag'}" in ended.err


def test_config_show_reads_back(dupwatch: Command, tmp_path: Path) -> None:
    """The output of ``config show`` is a file with the same configuration, odd names included."""
    strange = tmp_path / "strange.toml"
    strange.write_text(
        'workers = 3\n[rules."the [wire] \\"Ost\\" é.1\\u007f\\\\"]\nflag = "never"\n'
        '[rules.""]\nwithin_source = false\nnever_with = ["b", "\\u202e]"]\n[judge]\nsimilarity_min = 1e-7\n'
        '[fingerprint]\nkeywords_max = 50\n[source]\nurl = "a\\tb\\u0001.jsonl"\n',
        encoding="utf-8",
    )
    first = dupwatch("config", "show", "--config", strange)
    assert first.code == 0, first.err
    again = tmp_path / "again.toml"
    again.write_bytes(first.out)
    second = dupwatch("config", "show", "--config", again)
    assert (second.code, second.err) == (0, "")
    assert tomllib.loads(second.out.decode()) == tomllib.loads(first.out.decode())
    assert len(tomllib.loads(first.out.decode())["rules"]) == 2
    assert dupwatch("config", "check", "--config", again).code == 0


def names_of(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Return the dotted names of all settings, with ``SOURCE`` for a source that has a rule."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from names_of(field.annotation, f"{prefix}{name}.")
        elif is_dataclass(field.annotation):
            yield from (f"{prefix}{name}.{setting.name}" for setting in fields(field.annotation))
        elif field.annotation == dict[str, RuleSection]:
            yield from (f"{prefix}{name}.SOURCE.{setting.name}" for setting in fields(RuleSection))
        else:
            yield f"{prefix}{name}"


def test_config_show_has_every_setting(dupwatch: Command) -> None:
    """Without options it prints the defaults, one setting per line, with unset ones as comments."""
    lines = dupwatch("config", "show").out.decode()
    shown = tomllib.loads(lines)
    assert shown.keys() == {
        "source", "sink", "store", "files", "fingerprint", "judge", "banks", "kafka", "registry", "http", "service",
        "console", "log", "tracing", "workers",
    }  # fmt: skip
    assert shown["judge"]["max_distance"] == 3
    matches = [re.fullmatch(r"(\S+) = .*|# (\S+) is not set", line) for line in lines.splitlines()]
    assert [found[1] or found[2] for found in matches if found] == list(names_of(Config))
    assert "# kafka.instance_id is not set\n" in lines
    commented = dupwatch("config", "show", "--comments").out.decode().splitlines()
    assert commented[1::2] == lines.splitlines()
    assert commented[commented.index("judge.reach = 10") - 1].startswith("# With verify, an article found by")
    toml_text = dupwatch("config", "show", *sets("rules.wire.flag=never", "kafka.instance_id=a")).out.decode()
    assert "rules.SOURCE" not in toml_text
    assert "# rules.wire.similarity_min is not set\n" in toml_text
    assert "# kafka.instance_id" not in toml_text


TOPICS = ("--set", "source.url=kafka://h:1/a", "--set", "sink.url=kafka://h:1/p")
MISSPELT = '{"securty.protocol"="ssl"}'


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ('kafka.client={"enable.auto.commit"=true}', "enable.auto.commit cannot be set"),
        ('kafka.consumer={"isolation.level"="read_uncommitted"}', "isolation.level cannot be set"),
        ('kafka.producer={"acks"=1}', "acks cannot be set"),
        ('kafka.producer={"enable.idempotence"=false}', "enable.idempotence cannot be set"),
        (f"kafka.consumer={MISSPELT}", "securty.protocol"),
        (f"kafka.producer={MISSPELT}", "securty.protocol"),
        ('kafka.consumer={"session.timeout.ms"="long"}', "session.timeout.ms"),
        ('kafka.producer={"message.timeout.ms"=3000}', "message.timeout.ms cannot be set"),
        ('kafka.client={"delivery.timeout.ms"=3000}', "delivery.timeout.ms cannot be set"),
        ("kafka.revoke_s=290", "kafka.revoke_s is 290"),
        ('kafka={revoke_s=50,consumer={"max.poll.interval.ms"=60000}}', "set kafka.revoke_s below 50"),
        ("kafka.drain_s=41", "kafka.drain_s is 41"),
        ("kafka={drain_s=25,grace_s=40}", "kafka.grace_s (40)"),
        ('kafka.consumer={"heartbeat.interval.ms"=20000}', "set heartbeat.interval.ms to at most 15000"),
        ('kafka.producer={"message.max.bytes"=100000000}', "queue.buffering.max.kbytes"),
        ('kafka.secret_files={"sasl.password"="/nowhere/secret"}', "sasl.password cannot be read from /nowhere/secret"),
        ("source.url=kafka://h:1", "does not name a topic"),
        ("sink.url=kafka://h:1", "does not name a topic"),
        ("sink.url=out.jsonl", "set sink.url to kafka://HOST:PORT/PREFIX or -"),
        ("http.listen=0.0.0.0:9464", "lets other machines read articles"),
        ('http={user="u",password_file="/nowhere/password"}', "cannot read /nowhere/password"),
        ("http.tls_certificate=/nowhere/crt.pem", "/nowhere/crt.pem cannot be used"),
    ],
)
def test_config_check_refuses_what_a_run_over_topics_does(dupwatch: Command, setting: str, named: str) -> None:
    """Settings that only Kafka's client rejects are reported too, but not for a feed of files."""
    checked = dupwatch("config", "check", *TOPICS, "--set", setting)
    assert (checked.code, checked.out) == (2, b""), checked
    assert named in checked.err
    if not setting.startswith(("source.", "sink.")):
        assert dupwatch("config", "check", "--set", setting).code == 0


def test_config_check_makes_the_client_of_the_registry(dupwatch: Command) -> None:
    """If values have schemas; another machine may have files and packages that are missing here."""
    avro = (*TOPICS, *sets("kafka.value_format=avro", "registry.url=http://h:1"))
    assert dupwatch("config", "check", *avro).code == 0
    wrong = sets('registry.client={"ssl.ca.location"="/nowhere/ca.pem"}')
    checked = dupwatch("config", "check", *avro, *wrong)
    assert (checked.code, checked.out) == (2, b""), checked
    assert checked.err.startswith("dupwatch: registry: the client rejects its settings"), checked.err
    assert dupwatch("config", "check", "--elsewhere", *avro, *wrong).code == 0


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_config_check_takes_what_clients_take(dupwatch: Command, delivery: str) -> None:
    """Settings of librdkafka are valid, and no broker is needed."""
    kafka = sets(f"kafka.delivery={delivery}", 'kafka.client={"reconnect.backoff.ms"=200}')
    checked = dupwatch("config", "check", *TOPICS, *kafka)
    assert (checked.code, checked.err) == (0, "")


def test_a_configuration_is_named_as_an_argument_or_an_option(dupwatch: Command, tmp_path: Path) -> None:
    """The argument goes before a variable, which names the file of all commands; both at once are refused."""
    right, wrong = tmp_path / "right.toml", tmp_path / "wrong.toml"
    right.write_text("[judge]\nreach = 7\n")
    wrong.write_text("[judge]\nmood = 7\n")
    assert dupwatch("config", "check", right).code == 0
    assert b"judge.reach = 7\n" in dupwatch("config", "show", right, DUPWATCH_CONFIG=str(wrong)).out
    for refused in (dupwatch("config", "check", wrong), dupwatch("config", "check", DUPWATCH_CONFIG=str(wrong))):
        assert (refused.code, "unknown setting judge.mood" in refused.err) == (2, True)
    refused = dupwatch("config", "check", right, "--config", wrong)
    assert (refused.code, "the argument and --config cannot be used together" in refused.err) == (2, True)


def test_config_check_for_another_machine(dupwatch: Command) -> None:
    """With ``--elsewhere`` named files need not exist here; settings refused by name still are."""
    files = sets(
        'kafka.secret_files={"sasl.password"="/nowhere/secret"}',
        'kafka.client={"security.protocol"="ssl","ssl.ca.location"="/nowhere/ca.pem"}',
        "fingerprint.idf=/nowhere/idf.txt",
        "http.user=u",
        "http.password_file=/nowhere/password",
        "http.tls_certificate=/nowhere/crt.pem",
        "http.listen=0.0.0.0:9464",
    )
    assert dupwatch("config", "check", *TOPICS, *files).code == 2
    checked = dupwatch("config", "check", "--elsewhere", *TOPICS, *files)
    assert (checked.code, checked.err) == (0, "")
    for setting, named in (('{"acks"=1}', "acks"), (MISSPELT, "securty.protocol")):
        refused = dupwatch("config", "check", "--elsewhere", *TOPICS, *files, *sets(f"kafka.producer={setting}"))
        assert refused.code == 2
        assert named in refused.err


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("console.database=nonsense", "console.database = 'nonsense' is not the URL of a database"),
        ("console.password_file=/nowhere/password", "/nowhere/password"),
        ("sink.url=v.jsonl.gz", "cannot read a compressed file while it grows"),
    ],
)
def test_config_check_refuses_what_the_console_does(dupwatch: Command, setting: str, named: str) -> None:
    """Where the configuration has a console; what options may still name is not missed."""
    console = sets("console.threads=3")
    refused = dupwatch("config", "check", *console, *sets(setting))
    assert (refused.code, refused.out) == (2, b"")
    assert named in refused.err
    valid = dupwatch("config", "check", *console)
    assert (valid.code, valid.out) == (0, b"The configuration is valid.\n")
    if "file" in setting:
        assert dupwatch("config", "check", "--elsewhere", *console, *sets(setting)).code == 0


def test_config_show_keeps_secrets_to_itself(dupwatch: Command) -> None:
    """It shows which client settings are set, but not the values of secret ones, nor does an error message."""
    given = sets('kafka.client={"sasl.password"="hunter2","sasl.username"="reader","ssl.key.password"="hunter2"}')
    shown = dupwatch("config", "show", *given)
    assert b"hunter2" not in shown.out
    assert b'# kafka.client."sasl.password" is set but hidden' in shown.out
    assert tomllib.loads(shown.out.decode())["kafka"]["client"] == {"sasl.username": "reader"}
    registry = sets('registry.client={"basic.auth.user.info"="reader:hunter2","ssl.ca.location"="ca.pem"}')
    shown = dupwatch("config", "show", *registry)
    assert b"hunter2" not in shown.out
    assert tomllib.loads(shown.out.decode())["registry"]["client"] == {"ssl.ca.location": "ca.pem"}
    wrong = dupwatch("config", "check", *sets('kafka.client={"sasl.password"=["hunter2"]}'))
    assert wrong.code == 2
    assert "sasl.password" in wrong.err
    assert "hunter2" not in wrong.err


def test_bare_words_and_toml(judge: Judge) -> None:
    """``--set`` takes TOML values, and a bare word as a string."""
    found = judge([*articles([0]), *pair("the wire", "the wire")], *sets('rules."the wire".flag="never"'))
    assert outcomes(found) == ["unique"] * 3
    assert outcomes(judge(pair(), *sets("source.body_format=text"))) == ["unique", "duplicate"]


def test_plain_simhash_makes_no_sketches(dupwatch: Command, tmp_path: Path) -> None:
    """Records of plain SimHash have no sketch, with workers too, and ``explain`` and ``query`` work on them."""
    plain = sets("judge.verify=false", "judge.lane1=false", "judge.max_distance=7")
    feed = write_lines(tmp_path / "feed.jsonl", pair())
    for workers in ("0", "1"):
        url = f"lmdb:{tmp_path / workers}"
        ended = dupwatch("run", "--source", feed, "--emit", "all", "--store", url, "--workers", workers, *plain)
        assert outcomes(json_lines(ended.out)) == ["unique", "duplicate"], ended.err
        store = LmdbStore.open(tmp_path / workers, LmdbOptions(readonly=True))
        assert {entry.record.sketch for entry in store.scan() if isinstance(entry, StoredVersion)} == {b""}
        store.close()
        (explained,) = json_lines(dupwatch("explain", "a", "b", "--json", "--store", url).out)
        assert (explained["near"], explained["similarity"]) == (True, None)
        new = write_lines(tmp_path / "new.jsonl", [{"id": "c", "body": EDITED}])
        (asked,) = json_lines(dupwatch("query", new, "--store", url).out)
        assert [match["id"] for match in asked["matches"]] == ["a"]


@pytest.mark.parametrize("plan", ["8x16", "4x32"])
def test_schemes_of_128_bits(dupwatch: Command, tmp_path: Path, plan: str) -> None:
    """A scheme of 128 bits judges from end to end: its fingerprints have 32 digits, and ``explain`` shows 8 blocks."""
    url = f"lmdb:{tmp_path / 'store'}"
    wide = sets("fingerprint.scheme=md5-128/1", f"judge.plan={plan}", "judge.reach=20")
    feed = write_lines(tmp_path / "feed.jsonl", pair())
    verdicts = json_lines(dupwatch("run", "--source", feed, "--emit", "all", "--store", url, *wide).out)
    assert outcomes(verdicts) == ["unique", "duplicate"]
    schema = json.loads((ROOT / "docs/schemas/verdict.schema.json").read_text())
    for verdict in verdicts:
        jsonschema.validate(verdict, schema)
        assert len(verdict["fingerprint"]) == 32
    explained = dupwatch("explain", "a", "b", "--store", url).out.decode()
    digits = verdicts[0]["fingerprint"]
    assert " ".join(digits[start : start + 4] for start in range(0, 32, 4)) in explained


@pytest.mark.parametrize(
    "value",
    ['{"fetch.min.bytes"=7}', '{"fetch.min.bytes": 7}', "{fetch.min.bytes=7}", '{"fetch": {"min": {"bytes": 7}}}'],
)
def test_maps_are_written_alike_everywhere(dupwatch: Command, tmp_path: Path, value: str) -> None:
    """As TOML or as JSON, with ``--set`` and in the environment; a file is TOML."""
    file = tmp_path / "dupwatch.toml"
    file.write_text("[kafka.consumer]\nfetch.min.bytes = 7\n")
    shown = [
        dupwatch("config", "show", "--set", f"kafka.consumer={value}"),
        dupwatch("config", "show", "--set", "kafka.consumer.fetch.min.bytes=7"),
        dupwatch("config", "show", DUPWATCH_KAFKA__CONSUMER=value),
        dupwatch(
            "config", "show", DUPWATCH_KAFKA=f'{{"consumer"={value}}}' if "=" in value else f'{{"consumer":{value}}}'
        ),
        dupwatch("config", "show", "--config", file),
    ]
    for ended in shown:
        assert ended.code == 0, ended.err
        assert tomllib.loads(ended.out.decode())["kafka"]["consumer"] == {"fetch.min.bytes": 7}


@pytest.mark.parametrize("value", ['{"sasl.password"="hunter2"', "hunter2", "[1]"])
def test_what_is_not_a_map(dupwatch: Command, value: str) -> None:
    """The message names the setting and shows how to write a map, without repeating the value."""
    for ended in (
        dupwatch("config", "check", "--set", f"kafka.client={value}"),
        dupwatch("config", "check", DUPWATCH_KAFKA__CLIENT=value),
    ):
        assert ended.code == 2
        assert "TOML or JSON" in ended.err
        assert "hunter2" not in ended.err


def test_lists_are_written_alike_everywhere(dupwatch: Command) -> None:
    """The same holds for lists; an address that begins with a bracket is not a list."""
    for given in (("--set", 'http.names=["a", "b"]'), ()):
        environment = {} if given else {"DUPWATCH_HTTP__NAMES": '["a", "b"]'}
        ended = dupwatch("config", "show", *given, **environment)
        assert tomllib.loads(ended.out.decode())["http"]["names"] == ["a", "b"]
    ended = dupwatch("config", "show", "--set", "http.listen=[::1]:9464")
    assert tomllib.loads(ended.out.decode())["http"]["listen"] == "[::1]:9464"
