"""The secret of a store of scheme jieba-tfidf/3: made once, shared by all who judge into the store, shown to nobody."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from consumer.config.loading import load_config
from consumer.fingerprint import PUBLISHED_SECRET, Secret
from consumer.judge.binding import Binding, secret_in, settings_in
from consumer.model.errors import StoreMismatch
from consumer.wiring import stores
from consumer.wiring.components import judge_settings, lexicon_of
from tests.cli.command import FAST, SAMPLE, Command, json_lines, run_process

KEYED = ("--set", "store.durability=process")
OTHER = Secret(bytes(range(32)))


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a store that does not exist yet."""
    return f"lmdb:{tmp_path / 'store'}"


def run_into(dupwatch: Command, url: str, sink: Path, *more: str) -> int:
    """Judge the sample feed into this store."""
    return dupwatch("run", "--source", SAMPLE, "--sink", sink, "--store", url, *KEYED, *more).code


def secret_of(url: str) -> Secret:
    """Read the secret from the store."""
    found = stores.secret_of_store(load_config(None, {}), url)
    assert found is not None
    return found


def test_each_new_store_has_a_secret_of_its_own(dupwatch: Command, tmp_path: Path) -> None:
    """Not the published one; the records say which."""
    urls = [f"lmdb:{tmp_path / name}" for name in ("one", "other")]
    for place, url in enumerate(urls):
        assert run_into(dupwatch, url, tmp_path / f"{place}.jsonl", "--emit", "all") == 0
    one, other = map(secret_of, urls)
    assert len({one, other, PUBLISHED_SECRET}) == 3
    schemes = {verdict["scheme"] for verdict in json_lines((tmp_path / "0.jsonl").read_bytes()) if verdict["scheme"]}
    assert schemes == {f"jieba-tfidf/3+{one.id}"}


def test_two_starters_agree_on_one_secret(url: str) -> None:
    """Whichever is first: the other judges with what is stored."""
    config = load_config(None, {"store": {"url": url}, "fingerprint": {"scheme": "jieba-tfidf/3"}})
    settings = judge_settings(config, lexicon_of(config))
    with stores.opened_store(config) as store, ThreadPoolExecutor(8) as pool:
        bound = list(pool.map(lambda _: stores.bind(store, settings, config), range(8)))
    assert {each.secret for each in bound} == {secret_of(url)}


def test_the_settings_of_unkeyed_schemes_are_stored_as_before() -> None:
    """Byte for byte."""
    config = load_config(None, {"fingerprint": {"scheme": "jieba-tfidf/2"}})
    settings = judge_settings(config, lexicon_of(config))
    assert Binding(settings).encode() == settings.encode()
    assert Binding.decode(settings.encode()) == Binding(settings)
    assert Binding(settings, OTHER).scheme == "jieba-tfidf/2"


def test_a_binding_is_read_as_it_was_written() -> None:
    """And the part that is shown has no secret."""
    config = load_config(None, {"fingerprint": {"scheme": "jieba-tfidf/3"}})
    settings = judge_settings(config, lexicon_of(config))
    cell = Binding(settings, OTHER).encode()
    assert Binding.decode(cell) == Binding(settings, OTHER)
    assert (settings_in(cell), secret_in(cell)) == (settings.encode(), OTHER)


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        (b"{}", "plan, scheme, scheme_digest, sources are missing"),
        (b"[]", "Expected `object`, got `array`"),
        (b'{"secret": "12"}', "sources are missing"),
        (b"no JSON", "Expecting value"),
    ],
)
def test_a_damaged_binding_is_refused(cell: bytes, why: str) -> None:
    """With an error that commands turn into a sentence."""
    with pytest.raises(ValueError, match=why):
        Binding.decode(cell)


def test_a_keyed_store_without_its_secret_is_refused(url: str) -> None:
    """It would be judged with sketches that no record has."""
    config = load_config(None, {"store": {"url": url}, "fingerprint": {"scheme": "jieba-tfidf/3"}})
    lexicon = lexicon_of(config)
    with stores.opened_store(config) as store:
        store.agree(judge_settings(config, lexicon).encode())
        with pytest.raises(StoreMismatch, match="scheme jieba-tfidf/3 needs a secret, but the store has none"):
            stores.stored_binding(store, lexicon)
        with pytest.raises(StoreMismatch, match="damaged"):
            stores.bind(store, judge_settings(config, lexicon), config)


def test_a_secret_that_cannot_be_read_is_damage(url: str) -> None:
    """Whoever compares with the store gets a sentence."""
    config = load_config(None, {"store": {"url": url}})
    with stores.opened_store(config) as store:
        store.agree(b'{"secret": "12"}')
    with pytest.raises(StoreMismatch, match="its secret cannot be read"):
        stores.secret_of_store(config, url)


def test_a_store_in_memory_has_the_published_secret() -> None:
    """So that two runs over a feed give the same similarities."""
    config = load_config(None, {"store": {"url": "memory:"}, "fingerprint": {"scheme": "jieba-tfidf/3"}})
    with stores.opened_store(config) as store:
        assert stores.bind(store, judge_settings(config, lexicon_of(config)), config).secret == PUBLISHED_SECRET


def test_the_exported_secret_makes_another_store_comparable(dupwatch: Command, url: str, tmp_path: Path) -> None:
    """The file is for its owner alone, and is never overwritten; the audit log says who took it."""
    assert run_into(dupwatch, url, tmp_path / "v.jsonl") == 0
    file, audit = tmp_path / "secret", tmp_path / "audit.jsonl"
    export = ("store", "secret", "export", file, "--store", url, "--set", f"service.audit={audit}")
    assert dupwatch(*export).code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == f"{secret_of(url).hex()}\n"
    assert json.loads(audit.read_text())["action"] == "store.secret.export"
    again = dupwatch(*export)
    assert again.code == 2
    assert "already exists" in again.err
    other = f"lmdb:{tmp_path / 'other'}"
    assert run_into(dupwatch, other, tmp_path / "w.jsonl", "--set", f"fingerprint.secret_file={file}") == 0
    assert secret_of(other) == secret_of(url)


def test_a_store_with_another_secret_than_the_configured_one_is_refused(
    dupwatch: Command, url: str, tmp_path: Path
) -> None:
    """With both ids, and ways out; nothing is judged."""
    assert run_into(dupwatch, url, tmp_path / "v.jsonl") == 0
    (tmp_path / "secret").write_text(OTHER.hex())
    refused = dupwatch(
        "run", "--source", SAMPLE, "--sink", tmp_path / "w.jsonl", "--store", url, *KEYED,
        "--set", f"fingerprint.secret_file={tmp_path / 'secret'}",
    )  # fmt: skip
    assert refused.code == 4
    assert secret_of(url).id in refused.err
    assert OTHER.id in refused.err
    assert OTHER.hex() not in refused.err
    doctor = dupwatch(
        "doctor", "--source", SAMPLE, "--store", url, *KEYED,
        "--set", f"fingerprint.secret_file={tmp_path / 'secret'}",
    )  # fmt: skip
    assert doctor.code == 4
    assert OTHER.id in doctor.out.decode()


@pytest.mark.parametrize("content", ["", "0123", "g" * 64, "0" * 65, "ab" * 4_000])
def test_a_file_that_holds_no_secret_is_refused(dupwatch: Command, url: str, tmp_path: Path, content: str) -> None:
    """With its name, and without what it holds."""
    (tmp_path / "secret").write_text(content)
    refused = dupwatch(
        "run", "--source", SAMPLE, "--sink", tmp_path / "v.jsonl", "--store", url, *KEYED,
        "--set", f"fingerprint.secret_file={tmp_path / 'secret'}",
    )  # fmt: skip
    assert refused.code == 2
    assert "64 hexadecimal digits" in refused.err
    assert not content or content not in refused.err
    assert dupwatch("config", "check", "--set", f"fingerprint.secret_file={tmp_path / 'secret'}").code == 2


@pytest.mark.parametrize("scheme", ["jieba-tfidf/2", "md5-64/1"])
def test_a_store_without_a_secret_has_none_to_export(dupwatch: Command, url: str, tmp_path: Path, scheme: str) -> None:
    """The command says so, and makes no file."""
    dupwatch(
        "run",
        "--source",
        SAMPLE,
        "--sink",
        tmp_path / "v",
        "--store",
        url,
        *FAST,
        "--set",
        f"fingerprint.scheme={scheme}",
    )
    refused = dupwatch("store", "secret", "export", tmp_path / "secret", "--store", url)
    assert refused.code == 4
    assert "has no secret" in refused.err
    assert not (tmp_path / "secret").exists()


def test_no_command_shows_the_secret(dupwatch: Command, url: str, tmp_path: Path) -> None:
    """Nor what comes from it: an export has neither sketches nor keys."""
    sink = tmp_path / "v.jsonl"
    assert run_into(dupwatch, url, sink, "--emit", "all") == 0
    article = json_lines(SAMPLE.read_bytes())[0]["id"]
    secret, chosen = secret_of(url), ("--store", url)
    outputs = [
        dupwatch("store", "stats", "--json", *chosen),
        dupwatch("store", "export", *chosen),
        dupwatch("store", "verify", *chosen),
        dupwatch("doctor", "--source", SAMPLE, *chosen),
        dupwatch("doctor", "--source", SAMPLE, *chosen, "--set", "judge.similarity_min=0.9"),
        dupwatch("config", "show", "--set", f"store.url={url}"),
        dupwatch("show", article, *chosen),
        dupwatch("explain", article, article, "--json", *chosen),
        dupwatch("run", "--source", SAMPLE, "--sink", tmp_path / "w", *chosen, *KEYED, "--set", "judge.reach=9"),
        dupwatch("query", SAMPLE, *chosen),
    ]
    told = sink.read_bytes() + b"".join(each.out + each.err.encode() for each in outputs)
    assert secret.hex().encode() not in told
    assert secret.content not in told
    exported = [line for line in json_lines(outputs[1].out) if line["kind"] == "version"]
    assert exported
    assert not {"sketch", "keys", "one_bits", "anchors", "sample"} & {name for line in exported for name in line}


def test_the_secret_reaches_worker_processes_and_the_compiled_engine(
    dupwatch: Command, url: str, tmp_path: Path
) -> None:
    """Two stores with one secret reach the same verdicts, whatever computes the fingerprints."""
    (tmp_path / "secret").write_text(OTHER.hex())
    chosen = (*KEYED, "--emit", "all", "--set", f"fingerprint.secret_file={tmp_path / 'secret'}")
    workers = ("--workers", "2", "--set", "fingerprint.engine=python")
    sinks = tmp_path / "v.jsonl", tmp_path / "w.jsonl", tmp_path / "published.jsonl"
    assert run_process("run", "--source", SAMPLE, "--sink", sinks[0], "--store", url, *chosen, *workers).code == 0
    assert run_into(dupwatch, f"lmdb:{tmp_path / 'other'}", sinks[1], *chosen) == 0
    assert run_into(dupwatch, "memory:", sinks[2], "--emit", "all") == 0
    one, other, published = (
        [(verdict["id"], verdict["similarity"]) for verdict in json_lines(sink.read_bytes())] for sink in sinks
    )
    assert one == other
    assert one != published
