"""The client that moves regions, with a program in its place that answers as it is told."""

import sys
from pathlib import Path

import pytest

from deploy.local import regions, shell
from deploy.local.regions import Region, Regions, RegionsFailed

_CLIENT = """
import sys, time
print("done", flush=True)
for line in sys.stdin:
    name, *arguments = line.split()
    if name == "servers":
        print("localhost,1,2\\nlocalhost,3,4")
    elif name == "list":
        print("abc\\tx:articles\\t\\t80\\tlocalhost,1,2\\ndef\\tx:articles\\t80\\t\\t-")
    elif name == "move":
        time.sleep(600)
    else:
        print(f"failed {line.strip()}: no", flush=True)
        continue
    print("done", flush=True)
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Regions:
    """One that runs the program."""
    monkeypatch.setattr(shell, "ruby", lambda conf, arguments: [sys.executable, "-c", _CLIENT])
    return Regions(tmp_path, tmp_path / "log")


def test_regions_and_servers_are_read(client: Regions) -> None:
    """A region may be on no server; the first begins with no key, and the last ends with none."""
    with client:
        assert client.servers() == ["localhost,1,2", "localhost,3,4"]
        assert client.list_regions("x:") == [
            Region("abc", "x:articles", b"", b"\x80", "localhost,1,2"),
            Region("def", "x:articles", b"\x80", b"", None),
        ]


def test_what_fails_says_why_and_leaves_the_client_running(client: Regions) -> None:
    """The next command is answered as before."""
    region = Region("abc", "x:articles", b"", b"", None)
    with client:
        with pytest.raises(RegionsFailed, match="split abc 40: no"):
            client.split(region, b"@")
        assert len(client.servers()) == 2


def test_a_late_answer_is_not_taken_for_the_next_one(client: Regions, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that did not answer in time is ended, and another one started for the next command."""
    region = Region("abc", "x:articles", b"", b"", None)
    answer_s = regions._ANSWER_S
    monkeypatch.setattr(regions, "_ANSWER_S", 0.5)
    with client:
        with pytest.raises(
            RegionsFailed, match=r"move abc localhost,1,2: the client has ended, or did not answer within 0\.5 s"
        ):
            client.move(region, "localhost,1,2")
        monkeypatch.setattr(regions, "_ANSWER_S", answer_s)
        assert client.servers() == ["localhost,1,2", "localhost,3,4"]
