"""What is checked of an HBase store without a server: gateways that do not answer, and what its options need."""

from dataclasses import replace

from deploy.local.ports import free_ports
from storage.hbase import HbaseOptions, TlsOptions
from storage.hbase.kind import HBASE
from storage.kind import StoreArguments, StoreNeeds, StoreTls

OPENING = StoreArguments(lifetime_s=60, plan="4x16")


def _needs(options: HbaseOptions) -> StoreNeeds:
    return HBASE.needs(replace(OPENING, own=(options,)))


def test_gateways_that_do_not_answer_break_the_store() -> None:
    """Each one is named with its reason; the check ends with its deadlines, not with those of a run."""
    ports = free_ports(2)
    url = f"hbase://127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}/feed"
    options = HbaseOptions(deadline_s=0.1, connect_s=0.1)
    (check,) = HBASE.checks(url, replace(OPENING, own=(options,)))
    findings = list(check.run())
    assert [finding.status for finding in findings] == ["broken", "broken"]
    for port, finding in zip(ports, findings, strict=True):
        assert f"127.0.0.1:{port} does not answer: " in finding.found
    (alone,) = HBASE.checks("hbase://127.0.0.1:1/feed", OPENING)
    assert check.deadline_s > alone.deadline_s > 0


def test_connections_that_a_gateway_would_drop() -> None:
    """A connection has to be given up before the gateway does it."""
    assert _needs(HbaseOptions(retire_s=59.5)).advice == ()
    (advice,) = _needs(HbaseOptions(retire_s=60)).advice
    assert advice.status == "warning"
    assert "store.hbase.retire_s is 60" in advice.found


def test_connections_and_tls_files() -> None:
    """The doctor counts the connections and checks the files."""
    needs = _needs(HbaseOptions(connections_max=9))
    assert (needs.connections, needs.tls) == (9, None)
    tls = _needs(HbaseOptions(tls=TlsOptions("ca.pem", "own.pem", "own.key"))).tls
    assert tls == StoreTls("store.hbase", "ca.pem", "own.pem", "own.key")
