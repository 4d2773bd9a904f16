"""The same on a cluster: what there is several times dies and moves, and nothing of what is promised is broken."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from deploy.local.cluster import Cluster
from deploy.local.regions import Regions
from tests.chaos.kafka.cluster_servers import ClusterServers
from tests.chaos.kafka.faults import CLUSTER_KINDS, cluster_plan
from tests.chaos.kafka.hostile_values import json_format
from tests.chaos.kafka.stage import BROKER_SETTINGS, Manner
from tests.chaos.kafka.test_kafka_chaos import BROKER_HEAP_MB, NAMESPACE, Form, run, seeded

pytestmark = pytest.mark.servers

FAULTS: Final = "CHAOS_FAULTS"
"""In the environment: how many faults, for a run that is only to show that it works."""
CLUSTER: Final = Form(cluster_plan, faults=40, messages=24_000, rate=60, hostile=0.03)
MANNERS: Final = (Manner(once=False), Manner(once=True), Manner(once=True, new_protocol=True))

StartsCluster = Callable[..., Cluster]


@contextmanager
def cluster_servers(own_cluster: StartsCluster, folder: Path, seed: str) -> Iterator[ClusterServers]:
    """A cluster, and the client that moves its regions."""
    cluster = own_cluster(NAMESPACE, BROKER_SETTINGS, heap_mb=BROKER_HEAP_MB)
    with Regions(cluster.master.conf, folder / "regions.log") as regions:
        yield ClusterServers(cluster, regions, NAMESPACE, seed)


@pytest.mark.parametrize("manner", MANNERS, ids=lambda manner: str(manner).replace(", ", "-").replace(" ", "-"))
@pytest.mark.chaos
@pytest.mark.timeout(3_600)
def test_a_long_chaos_on_a_cluster(own_cluster: StartsCluster, tmp_path: Path, manner: Manner) -> None:
    """Forty faults, each kind three times: brokers and region servers die, leaders, coordinators and regions move."""
    faults = int(os.environ.get(FAULTS) or CLUSTER.faults)
    form = CLUSTER._replace(faults=faults, messages=CLUSTER.messages * faults // CLUSTER.faults)
    with seeded() as seed, cluster_servers(own_cluster, tmp_path, seed) as servers:
        stage = run(form, seed, servers, manner, json_format(), tmp_path)
        assert len(stage.struck) == form.faults
        struck = {strike.fault.kind for strike in stage.struck}
        assert struck == set(CLUSTER_KINDS) or faults < len(CLUSTER_KINDS)
        assert all(strike.lag > 0 for strike in stage.struck)
