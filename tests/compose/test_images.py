"""What is in the images that users run: no root, no secrets, nothing to build with."""

import re
from collections.abc import Callable
from typing import Final

import pytest

from tests.compose.stack import Stack

pytestmark = [pytest.mark.compose, pytest.mark.timeout(1800)]

MB: Final = 1_000_000
SECRET: Final = re.compile(r"passw|secret|token|credential|api_?key|private_?key|://[^/\s]*:[^/\s]*@", re.IGNORECASE)
OURS: Final = ("consumer", "hbase")
FIND_SECRETS: Final = """
find /opt /home /root /tmp /var/lib/dupwatch /var/lib/hbase \\( -name '*.key' -o -name 'id_[rd]sa*' -o -name .netrc \\
  -o -name .env -o -name .git -o -name pip.conf -o -name settings.xml \\) 2>/dev/null
grep -rlI -e '-----BEGIN [A-Z ]*PRIVATE KEY-----$' /opt /var/lib/dupwatch /var/lib/hbase 2>/dev/null
true
"""
FIND_TOOLS: Final = """
for tool in gcc cc cargo rustc make pip pip3 mvn git javac; do command -v $tool; done
ls /opt/dupwatch/lib/python3*/site-packages 2>/dev/null | grep -E '^(pip|hatchling|maturin|setuptools|wheel|editables)$'
true
"""


FIND_LICENCES: Final = "cd /opt/dupwatch/lib/python3*/site-packages && ls dupwatch_core-*.dist-info/licenses"
JUDGE_THE_SAMPLE: Final = """
sample=$(python3 -c 'import importlib.util as found; print(found.find_spec("consumer").submodule_search_locations[0])')
dupwatch run --source "$sample/sample/feed.jsonl" --sink /tmp/verdicts.jsonl --store memory: 2>&1
"""


@pytest.fixture(params=OURS)
def image(request: pytest.FixtureRequest, images: Stack) -> str:
    """The name of one of our images."""
    return dict(zip(OURS, [name for name, _ in images.images()], strict=True))[request.param]


@pytest.fixture
def inside(images: Stack, image: str) -> Callable[[str], str]:
    """Run a script in the image as its own user, without a network, as docker-compose.yml confines it."""
    return lambda script: _inside(images, image, script)


def _inside(images: Stack, image: str, script: str) -> str:
    confined = ["--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp"]
    confined += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    return images.container("run", *confined, "--entrypoint", "sh", image, "-c", script)


def test_the_user_is_not_root(images: Stack, image: str, inside: Callable[[str], str]) -> None:
    """By number, so that whoever forbids root can see it; and the process is that user, who can become no other."""
    config = dict(images.images())[image]["Config"]
    user, _, group = config["User"].partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert inside("id -u; id -g").split() == [user, group]


def test_there_are_no_secrets(images: Stack, image: str, inside: Callable[[str], str]) -> None:
    """Neither in the environment, nor in the history of the image, nor in its files."""
    config = dict(images.images())[image]["Config"]
    texts = [*config.get("Env", []), *(config.get("Labels") or {})]
    texts += images.container("history", "--no-trunc", "--format", "{{.CreatedBy}}", image).splitlines()
    assert [text for text in texts if SECRET.search(text)] == []
    assert inside(FIND_SECRETS).split() == []


def test_there_is_nothing_to_build_with(inside: Callable[[str], str]) -> None:
    """No compiler, no pip, no Maven, and none of the packages that only build."""
    assert inside(FIND_TOOLS).split() == []


def test_the_program_cannot_be_written(inside: Callable[[str], str]) -> None:
    """All of it is root's, even where the engine does not hold the file system fast."""
    assert inside("find /opt /usr /etc -xdev ! -type l \\( ! -user 0 -o -perm -0002 \\) 2>/dev/null; true") == ""


def test_it_has_a_health_check_and_its_size_is_told(images: Stack, image: str) -> None:
    """The size is with the base, which may be another one here than what others pull."""
    found = dict(images.images())[image]
    check = found["Config"].get("Healthcheck") or found["Healthcheck"]
    assert check["Test"][0] == "CMD"
    images.say(f"{image}: {found['Size'] / MB:.0f} MB")


def test_the_consumer_has_the_compiled_engine(images: Stack) -> None:
    """It judges with it, `doctor` says so, and the licences of what is linked in are beside it."""
    image, _ = next(images.images())
    assert re.search(r"engine +compiled \(dupwatch-core \d", _inside(images, image, JUDGE_THE_SAMPLE))
    assert "by the engine compiled (dupwatch-core " in _inside(images, image, "dupwatch doctor; true")
    assert _inside(images, image, FIND_LICENCES).split() == ["LICENSE", "NOTICE", "THIRD_PARTY"]
