"""Where webhooks may go: ``[console.webhooks]``."""

import pytest

from consumer.config.loading import load_config
from consumer.model.errors import ConfigError


def test_networks_are_named_in_addition(monkeypatch: pytest.MonkeyPatch) -> None:
    """None unless somebody does, and only https; also in the environment, as containers do."""
    plain = load_config(None, {}).console.webhooks
    assert (plain.networks, plain.http) == ((), False)
    networks = ["10.1.0.0/16", "fd00::/8", "192.168.7.7"]
    assert load_config(None, {"console": {"webhooks": {"networks": networks}}}).console.webhooks.networks == (
        *networks,
    )
    monkeypatch.setenv("DUPWATCH_CONSOLE__WEBHOOKS__NETWORKS", '["10.1.0.0/16"]')
    monkeypatch.setenv("DUPWATCH_CONSOLE__WEBHOOKS__HTTP", "true")
    found = load_config(None, {}).console.webhooks
    assert (found.networks, found.http) == (("10.1.0.0/16",), True)


@pytest.mark.parametrize("network", ["", "10.1.0.1/16", "10.1", "hooks.example", "10.0.0.0/33", "::/129"])
def test_a_network_is_one(network: str) -> None:
    """Without bits behind its length: somebody means something else than is written there."""
    with pytest.raises(ConfigError, match=r"console\.webhooks\.networks"):
        load_config(None, {"console": {"webhooks": {"networks": [network]}}})
