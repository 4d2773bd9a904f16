"""What a broker finds in its folder at its first start, with a Java that only pretends."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.local.kafka import KafkaBroker
from deploy.local.server import ServerFailed

_JAVA = """#!{python}
import pathlib, sys
properties = dict(line.split("=", 1) for line in pathlib.Path(sys.argv[-1]).read_text().splitlines())
data = pathlib.Path(properties["log.dirs"])
data.mkdir()
(data / "meta.properties").write_text("version=1")
with pathlib.Path({calls!r}).open("a") as calls:
    calls.write("called\\n")
sys.exit({code})
"""


def broker(folder: Path, java: Path) -> KafkaBroker:
    """A broker whose folder is there."""
    folder.mkdir()
    jars = folder.parent / "jars"
    jars.mkdir(exist_ok=True)
    return KafkaBroker(folder=folder, jars=jars, java=str(java), port=1, controller_port=2)


def pretend(folder: Path, code: int) -> Path:
    """A Java that writes the marks of a new cluster, tells ``calls``, and ends with this code."""
    java = folder / "java"
    java.write_text(_JAVA.format(python=sys.executable, calls=str(folder / "calls"), code=code))
    java.chmod(0o755)
    return java


def test_marks_of_a_new_cluster_are_made_once(tmp_path: Path) -> None:
    """The first broker asks Kafka for them, later ones get the same; a broker that has data keeps it."""
    java = pretend(tmp_path, 0)
    for name in ("first", "second"):
        kafka = broker(tmp_path / name, java)
        kafka.prepare()
        marks = kafka.folder / "data" / "meta.properties"
        assert marks.read_text() == "version=1"
        marks.write_text("its own")
        kafka.prepare()
        assert marks.read_text() == "its own"
    assert (tmp_path / "calls").read_text().split() == ["called"]


def test_marks_that_could_not_be_made_are_not_kept(tmp_path: Path) -> None:
    """Where Kafka could not make them the broker fails, and the next one asks again."""
    with pytest.raises(ServerFailed, match=r"Kafka's data in .* could not be formatted"):
        broker(tmp_path / "first", pretend(tmp_path, 1)).prepare()
    broker(tmp_path / "second", pretend(tmp_path, 0)).prepare()
    assert (tmp_path / "calls").read_text().split() == ["called", "called"]


def test_marks_that_cannot_be_kept_are_made_again(tmp_path: Path) -> None:
    """A broker has its own where the folder of the jars cannot be written."""
    java = pretend(tmp_path, 0)
    for name in ("first", "second"):
        kafka = replace(broker(tmp_path / name, java), jars=tmp_path / "nowhere")
        kafka.prepare()
        assert (kafka.folder / "data" / "meta.properties").exists()
    assert (tmp_path / "calls").read_text().split() == ["called", "called"]
