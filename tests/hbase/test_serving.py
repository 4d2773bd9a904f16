"""Two processes of ``dupwatch serve`` over one HBase, one of which is killed: the promises that LMDB keeps, too."""

from pathlib import Path

import pytest

from tests.cli.serve.posting import Services, check, post

pytestmark = pytest.mark.servers

GROUPS = 20


def test_whoever_was_answered_is_in_the_sink_and_has_one_verdict(
    hbase_address: str, hbase_namespace: str, tmp_path: Path
) -> None:
    """Four clients post near copies to both, and repeat what is not answered."""
    services = Services(f"hbase://{hbase_address}/{hbase_namespace}", tmp_path)
    with services.running():
        answered = post(services, GROUPS, kills=1)
    check(services, GROUPS, answered)
