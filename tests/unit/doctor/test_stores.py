"""The checks of the configured store are those of its kind: the doctor knows none by name."""

import json
from dataclasses import replace
from typing import Any

import pytest

from consumer.config.loading import load_config
from consumer.doctor.examination import check_settings, checks_of
from consumer.doctor.finding import DoctorCheck, ok, warning, wrong
from consumer.doctor.machine import TlsFiles, descriptors_needed, tls_files
from consumer.doctor.stores import check_binding
from consumer.judge.binding import Binding
from consumer.model.errors import ConfigError, StoreBroken, StoreMismatch
from consumer.wiring import components
from storage import kinds
from storage.kind import StoreArguments, StoreCheck, StoreFinding, StoreKind, StoreNeeds, StoreTls, no_files
from storage.memory import MemoryStore

LEASE = StoreFinding("warning", "Leases are short.", "Make them longer.")
FINDINGS = (
    StoreFinding("ok", "The node answers."),
    StoreFinding("warning", "One node is slow.", "Look at it."),
    StoreFinding("misconfigured", "No such region.", "Correct it."),
    StoreFinding("refused", "Another store.", "Name another."),
    StoreFinding("broken", "No node answers.", "Start one."),
)


def _checks(url: str, opening: StoreArguments) -> tuple[StoreCheck, ...]:
    assert (url, opening.plan) == ("grid://a", "4x16")
    return (StoreCheck("disk", lambda: FINDINGS[:1]), StoreCheck("nodes", lambda: FINDINGS, deadline_s=3.0))


GRID = StoreKind(
    name="Grid",
    form="grid://NODE",
    example="grid://NODE",
    pattern="grid://.+",
    open=lambda _url, _opening: MemoryStore(),
    on_disk=no_files,
    identity=str,
    same=lambda url, other: url == other,
    remote=True,
    checks=_checks,
    needs=lambda _: StoreNeeds(connections=7, tls=StoreTls("store.grid", "ca.pem", None, None), advice=(LEASE,)),
)


@pytest.fixture(autouse=True)
def _a_new_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a kind of store that no module of the doctor names."""
    monkeypatch.setattr(kinds, "KINDS", (*kinds.KINDS, GRID))


def _checks_of(url: str) -> dict[str, DoctorCheck]:
    return {check.name: check for check in checks_of(load_config(None, {"store": {"url": url}}))}


def test_a_kind_brings_its_checks() -> None:
    """With its names, deadlines and findings; a finding that ends a run has the error that the run would end with."""
    checks = _checks_of("grid://a")
    assert list(checks)[-4:] == ["disk", "nodes", "settings of the store", "size of the window"]
    assert checks["nodes"].deadline_s == 3.0
    assert list(checks["nodes"].run()) == [
        ok("The node answers."),
        warning("One node is slow.", "Look at it."),
        wrong(ConfigError, "No such region.", "Correct it."),
        wrong(StoreMismatch, "Another store.", "Name another."),
        wrong(StoreBroken, "No node answers.", "Start one."),
    ]


def test_settings_of_a_remote_store_are_read_if_it_answers() -> None:
    """They need the last check of its kind; those of a store on this machine only a valid configuration."""
    assert _checks_of("grid://a")["settings of the store"].needs == "nodes"
    assert "settings of the store" not in _checks_of("memory:")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ({"sources": None}, "sources is missing"),
        ({"facts_revision": {}}, "facts_revision: Expected `int`, got `object`"),
    ],
)
def test_damaged_settings_are_reported(damage: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they differ from the configured ones only in empty members."""
    store = MemoryStore()
    monkeypatch.setattr(kinds, "KINDS", (*kinds.KINDS[:-1], replace(GRID, open=lambda _url, _opening: store)))
    config = load_config(None, {"store": {"url": "grid://a"}})
    settings = components.judge_settings(config, components.lexicon_of(config))
    described = json.loads(Binding(settings).encode()) | damage
    store.agree(json.dumps({name: value for name, value in described.items() if value is not None}).encode())
    assert next(check_binding(config, lambda: settings)) == wrong(
        StoreMismatch, f"The settings of the store cannot be read: {why}.", "Name another store."
    )


def test_advice_is_about_the_store_in_use() -> None:
    """It is among the findings on the configuration; options of other kinds have no effect."""

    def advised(url: str) -> bool:
        config = load_config(None, {"store": {"url": url}, "source": {"url": "-"}, "sink": {"url": "-"}})
        settings = components.judge_settings(config, components.lexicon_of(config))
        return warning(LEASE.found, LEASE.remedy) in list(check_settings(config, lambda: settings))

    assert advised("grid://a")
    assert not advised("memory:")


def test_connections_and_tls_files_of_a_kind_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among the open files of a run, and among the TLS files whose dates are checked."""
    config = load_config(None, {"store": {"url": "grid://a"}})
    assert TlsFiles("store.grid", "ca.pem", None, None) in tls_files(config)
    needed = descriptors_needed(config)
    monkeypatch.setattr(kinds, "KINDS", kinds.KINDS[:-1])
    assert needed - descriptors_needed(config) == 7
