"""What a configuration does not name comes from its store; what it names stays."""

import logging
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.fingerprint import BlockPlan, Scheme, SketchLayout
from consumer.judge.settings import JudgeSettings, SourceRule
from consumer.model.errors import StoreMismatch
from consumer.wiring import components, stores
from consumer.wiring.stores import record_plan
from storage.errors import StoreDamaged, StoreRefused
from storage.lmdb import LmdbStore
from storage.records import CapacityPlan

OLDER = JudgeSettings(
    plan=BlockPlan.named("16x28"),
    scheme_digest="00",
    scheme=Scheme("jieba-tfidf/1", keywords_max=40, short_keywords_max=5, sketch=SketchLayout(bands=5, band_minima=2)),
    max_distance=4,
    reach=9,
    similarity_min=0.8,
    window_ms=3_600_000,
    verifications_max=99,
    sources=MappingProxyType({"wire": SourceRule(flag="never")}),
)


def configured(folder: Path, **named: dict[str, str]) -> Config:
    """A configuration with a store in this folder that names these settings, and no others."""
    return load_config(None, {"store": {"url": f"lmdb:{folder / 'store'}"}, **named})


def bound(config: Config, settings: JudgeSettings = OLDER) -> None:
    """Bind the store to these settings."""
    with stores.opened_store(config) as store:
        store.agree(settings.encode())


def test_all_settings_come_from_the_store(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """So that the run has those that the store is bound to; the log says which the configuration did not name."""
    config = configured(tmp_path)
    bound(config)
    with caplog.at_level(logging.INFO, "dupwatch"):
        completed = stores.completed_config(config)
    settings = components.judge_settings(completed, components.lexicon_of(completed))
    assert JudgeSettings.decode(settings.encode()) == JudgeSettings.decode(
        OLDER.encode().replace(b'"scheme_digest":"00"', b'"scheme_digest":"%s"' % settings.scheme_digest.encode())
    )
    (line,) = caplog.messages
    for setting in ('judge.plan = "16x28"', 'fingerprint.scheme = "jieba-tfidf/1"', "judge.window_s = 3600"):
        assert setting in line
    assert "store." not in line


def test_what_is_named_stays(tmp_path: Path) -> None:
    """Also where it is the default; the store then refuses the run, as it should."""
    config = configured(tmp_path, judge={"plan": "4x16"}, fingerprint={"scheme": "jieba-tfidf/2"})
    bound(config)
    completed = stores.completed_config(config)
    assert (completed.judge.plan, completed.fingerprint.scheme) == ("4x16", "jieba-tfidf/2")
    assert completed.judge.similarity_min == 0.8
    settings = components.judge_settings(completed, components.lexicon_of(completed))
    with stores.opened_store(completed) as store, pytest.raises(StoreMismatch, match="plan"):
        stores.bind(store, settings, completed)


@pytest.mark.parametrize("there", ["nothing", "an empty folder", "an empty store"])
def test_a_store_without_settings_has_none_to_give(tmp_path: Path, there: str) -> None:
    """Nothing is created by asking."""
    config = configured(tmp_path)
    if there == "an empty folder":
        (tmp_path / "store").mkdir()
    if there == "an empty store":
        with stores.opened_store(config):
            pass
    before = sorted(tmp_path.rglob("*"))
    assert stores.completed_config(config) is config
    assert sorted(tmp_path.rglob("*")) == before


def test_a_store_that_is_made_for_a_plan_gives_that(tmp_path: Path) -> None:
    """Unless the configuration names one."""
    config = configured(tmp_path)
    record_plan(config, CapacityPlan(7_000_000, "16x28"))
    assert stores.completed_config(config).judge.plan == "16x28"
    named = configured(tmp_path, judge={"plan": "4x16"})
    assert stores.completed_config(named).judge.plan == "4x16"


def test_a_plan_does_not_count_once_there_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that cannot be read stops no consumer then."""
    config = configured(tmp_path)
    bound(config)

    def damaged(self: LmdbStore) -> CapacityPlan:
        raise StoreDamaged(f"the plan of {self} cannot be read")

    monkeypatch.setattr(LmdbStore, "planned", damaged)
    assert stores.completed_config(config).judge.plan == "16x28"


def test_a_store_in_memory_is_not_opened() -> None:
    """It would be another one."""
    config = load_config(None, {})
    assert stores.completed_config(config) is config


@pytest.mark.parametrize("stored", [b"{", b"[]", b'{"plan":"9x9"}'])
def test_settings_that_cannot_be_read_are_left_to_the_run(tmp_path: Path, stored: bytes) -> None:
    """It says what is wrong with them when it binds the store."""
    config = configured(tmp_path)
    with stores.opened_store(config) as store:
        store.agree(stored)
    assert stores.completed_config(config) is config


def test_a_file_in_place_of_a_store_is_refused(tmp_path: Path) -> None:
    """As by any other opening."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "data.mdb").write_bytes(b"")
    with pytest.raises(StoreRefused):
        stores.completed_config(configured(tmp_path))


def test_a_store_keeps_the_revision_of_its_fact_guard(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One from before there were revisions goes on as it was; the one that ``migrate`` fills has the latest."""
    guarded = replace(OLDER, scheme=replace(OLDER.scheme, facts=True), facts_shared_min=0.8, facts_revision=1)
    new, old = configured(tmp_path / "new", judge={"facts_shared_min": "0.8"}), configured(tmp_path / "old")
    bound(old, guarded)
    with caplog.at_level(logging.INFO, "dupwatch"):
        completed = stores.completed_config(old)
    assert "judge.facts_revision = 1" in caplog.messages[0]
    settings = components.judge_settings(completed, components.lexicon_of(completed))
    assert replace(settings, scheme_digest="00").encode() == guarded.encode()
    assert stores.completed_config(new).judge.facts_revision == 2
    named = stores.completed_config(configured(tmp_path / "old", judge={"facts_revision": "2"}))
    with (
        stores.opened_store(named) as store,
        pytest.raises(StoreMismatch, match="facts_revision is 1 in the store and 2 here"),
    ):
        stores.bind(store, components.judge_settings(named, components.lexicon_of(named)), named)
