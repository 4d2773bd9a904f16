"""A store that is made for a plan takes no other: neither the settings of a consumer, nor another plan."""

import json
from pathlib import Path

import pytest

from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.fingerprint import BlockPlan
from consumer.judge.binding import Binding, settings_in
from consumer.judge.settings import JudgeSettings
from consumer.model.errors import ConfigError, StoreMismatch
from consumer.wiring import stores
from consumer.wiring.stores import record_plan
from storage.records import CapacityPlan

PLANNED = CapacityPlan(7_000_000, "16x28")
LONG, SHORT = (JudgeSettings(BlockPlan.named(name), "00") for name in ("16x28", "4x16"))


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """The configuration of a store that does not exist yet."""
    return load_config(None, {"store": {"url": f"lmdb:{tmp_path / 'store'}", "durability": "process"}})


def test_the_first_consumer_is_refused_with_another_plan(config: Config) -> None:
    """With both plans and both ways out, before the store is bound to its settings."""
    record_plan(config, PLANNED)
    with stores.opened_store(config) as store:
        with pytest.raises(StoreMismatch) as refused:
            stores.bind(store, SHORT, config)
        assert store.settings() is None
        stores.bind(store, LONG, config)
        stores.bind(store, LONG, config)
        assert settings_in(store.settings() or b"") == LONG.encode()
    assert str(refused.value) == (
        "the store is made for the plan 16x28 and 7,000,000 articles in the window, but judge.plan is 4x16. Set "
        'judge.plan to "16x28", or name another store; a group that judges already moves with dupwatch migrate '
        "(docs/operate/migration.md)."
    )


def test_settings_decide_where_a_consumer_that_knows_no_plans_was_first(config: Config) -> None:
    """An older version binds the store in spite of its plan: who judges as it does goes on, and nobody else."""
    record_plan(config, PLANNED)
    with stores.opened_store(config) as store:
        store.agree(Binding(SHORT).encode())
        stores.bind(store, SHORT, config)
        with pytest.raises(StoreMismatch, match='plan is "4x16" in the store and "16x28" here'):
            stores.bind(store, LONG, config)


def test_an_empty_member_is_no_other_setting(config: Config) -> None:
    """A store whose settings differ only in it is opened: there would be no difference to report."""
    cell = json.dumps(json.loads(Binding(SHORT).encode()) | {"empty": {}}).encode()
    with stores.opened_store(config) as store:
        store.agree(cell)
        assert stores.bind(store, SHORT, config).settings == SHORT


def test_a_store_without_a_plan_is_bound_as_before(config: Config) -> None:
    """By the first consumer, whatever its plan."""
    with stores.opened_store(config) as store:
        stores.bind(store, SHORT, config)
        assert store.planned() is None


def test_a_bound_store_takes_its_own_plan_only(config: Config) -> None:
    """A store made before there were plans learns what is expected of it; another plan is refused, and not written."""
    with stores.opened_store(config) as store:
        stores.bind(store, SHORT, config)
    with pytest.raises(StoreMismatch, match="is bound to the plan 4x16, not 16x28, and nothing was changed"):
        record_plan(config, PLANNED)
    with stores.opened_store(config) as store:
        assert store.planned() is None
    record_plan(config, CapacityPlan(9, "4x16"))
    with stores.opened_store(config) as store:
        assert store.planned() == CapacityPlan(9, "4x16")


def test_another_plan_is_refused_before_there_are_settings(config: Config) -> None:
    """And the first one stays."""
    record_plan(config, PLANNED)
    with pytest.raises(StoreMismatch, match=r"is made for the plan 16x28, not 4x16.*dupwatch migrate"):
        record_plan(config, CapacityPlan(9, "4x16"))
    with stores.opened_store(config) as store:
        assert store.planned() == PLANNED


@pytest.mark.parametrize("settings", [b"{", b"[]", b"{}", b"\xff"])
def test_settings_that_cannot_be_read(config: Config, settings: bytes) -> None:
    """Nothing is recorded beside them."""
    with stores.opened_store(config) as store:
        store.agree(settings)
        with pytest.raises(StoreMismatch, match="the settings of the store cannot be read"):
            stores.bound_plan(store)


def test_a_store_in_memory_keeps_no_plan() -> None:
    """It ends with the command."""
    with pytest.raises(ConfigError, match="a store in memory keeps no plan; leave out --apply"):
        record_plan(load_config(None, {}), PLANNED)
