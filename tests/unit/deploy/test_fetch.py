"""The cache of jars, with a Maven that only pretends; and what is said where tools are missing."""

import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.local import fetch, java, packages, postgres
from deploy.local.packages import MissingTools
from deploy.local.process import wait_until

WAIT_S = 120
_MAVEN = """#!{python}
import os, pathlib, sys, time, zipfile
with open({calls!r}, "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
folder = pathlib.Path(next(word for word in sys.argv if word.startswith("-DoutputDirectory=")).partition("=")[2])
time.sleep(0.1)
folder.mkdir()
if folder.name == {fails!r}:
    time.sleep(float(os.environ.get("MAVEN_SLEEPS", "0")))
    sys.exit(1)
if folder.name == "shell":
    with zipfile.ZipFile(folder / "hbase-shell-1.jar", "w") as jar:
        jar.writestr("shell/commands/trace.rb", "names a class that is gone")
(folder / "a.jar").write_bytes(b"")
"""

Pretend = Callable[[str], Path]


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pretend:
    """Put a Maven on the path that fails at one part; the file with its calls."""

    def pretend(fails: str) -> Path:
        calls = tmp_path / "calls"
        program = tmp_path / "bin" / "mvn"
        program.parent.mkdir(exist_ok=True)
        program.write_text(_MAVEN.format(python=sys.executable, calls=str(calls), fails=fails))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        return calls

    return pretend


def test_jars_are_fetched_once(maven: Pretend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is fetched once with the user's arguments, and the shell's file that fails is replaced."""
    calls = maven("")
    monkeypatch.setenv("MVN_ARGS", "--offline -s 'a b.xml'")
    folder = fetch.jars()
    assert fetch.jars() == folder
    lines = calls.read_text().splitlines()
    assert len(lines) == len(fetch.PARTS)
    assert all("--offline -s a b.xml" in line for line in lines)
    assert "no tracing" in (folder / fetch.RUBY / "shell" / "commands" / "trace.rb").read_text()


def test_a_half_fetched_cache_is_never_used(maven: Pretend) -> None:
    """Where Maven fails nothing is left behind, and the next call fetches everything."""
    maven("shell")
    with pytest.raises(subprocess.CalledProcessError):
        fetch.jars()
    assert [path for path in fetch.home().iterdir() if path.is_dir()] == []
    calls = maven("")
    calls.unlink()
    assert sorted(path.name for path in fetch.jars().iterdir()) == sorted((*fetch.PARTS, fetch.RUBY))
    assert len(calls.read_text().splitlines()) == len(fetch.PARTS)


def test_a_fetch_that_was_killed_is_begun_anew(maven: Pretend) -> None:
    """What a process that was killed with -9 had fetched is not taken for the whole."""
    calls = maven("shell")
    ask = [sys.executable, "-c", "from deploy.local import fetch; fetch.jars()"]
    fetching = subprocess.Popen(ask, env=os.environ | {"MAVEN_SLEEPS": "600"}, start_new_session=True)
    assert wait_until(lambda: calls.exists() and calls.read_text().count("\n") == len(fetch.PARTS), WAIT_S)
    os.killpg(fetching.pid, signal.SIGKILL)
    fetching.wait()
    maven("")
    assert sorted(path.name for path in fetch.jars().iterdir()) == sorted((*fetch.PARTS, fetch.RUBY))


def test_two_processes_fetch_once(maven: Pretend) -> None:
    """Of two processes that need the jars at once one fetches, and both get them."""
    calls = maven("")
    ask = [sys.executable, "-c", "from deploy.local import fetch; print(fetch.jars())"]
    both = [subprocess.Popen(ask, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    outputs = [process.communicate(timeout=WAIT_S)[0] for process in both]
    assert outputs[0] == outputs[1] != b""
    assert len(calls.read_text().splitlines()) == len(fetch.PARTS)


def test_other_versions_are_another_cache(maven: Pretend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change in a pom file names another folder."""
    maven("")
    before = fetch.jars()
    poms = tmp_path / "poms"
    poms.mkdir()
    for part in fetch.PARTS:
        (poms / f"{part}.xml").write_text(f"<other>{part}</other>")
    monkeypatch.setattr(fetch, "_POMS", poms)
    assert fetch.jars() != before


def test_what_is_fetched_is_an_archive(maven: Pretend, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that cannot be unpacked leaves no cache."""
    maven("")

    def broken(*_: object) -> None:
        raise zipfile.BadZipFile

    monkeypatch.setattr(fetch, "_unpack_shell", broken)
    with pytest.raises(zipfile.BadZipFile):
        fetch.jars()
    assert not any(path.is_dir() for path in fetch.home().iterdir())


def pretend_java(folder: Path, version: str) -> Path:
    """A Java that only says its version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2"])
def test_a_java_that_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Java is the one that JAVA_HOME names, from 17 to 21."""
    monkeypatch.setenv("JAVA_HOME", str(pretend_java(tmp_path, version)))
    assert java.java() == str(tmp_path / "bin" / "java")


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_301", "24.0.1", "none"])
def test_a_java_that_will_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Another Java, or something that is none, is told in a sentence that says what to install."""
    monkeypatch.setenv("JAVA_HOME", str(pretend_java(tmp_path, version)))
    with pytest.raises(MissingTools, match="apt-get install openjdk-17-jdk-headless maven"):
        java.java()


def test_nothing_there_is_one_sentence(tmp_path: Path) -> None:
    """Without Java, Maven and apt the program ends with one line and an error."""
    environment = {"PATH": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3]), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "deploy.local.fetch"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1
    assert "make test-light" in ran.stderr
    assert ran.stdout == ""


def test_stale_lists_are_brought_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where apt does not know the packages its lists are fetched, and then it is asked again."""
    apt = tmp_path / "apt-get"
    apt.write_text(
        f"#!/bin/sh\necho $1 >>{tmp_path}/calls\n[ $1 = update ] && touch {tmp_path}/new; [ -e {tmp_path}/new ]\n"
    )
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert java.install()
    assert (tmp_path / "calls").read_text().split() == ["install", "update", "install"]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not java.install()


def test_a_release_without_java_17_gets_a_later_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where apt has no Java 17 even with new lists, Java 21 is installed."""
    apt = tmp_path / "apt-get"
    apt.write_text('#!/bin/sh\ncase "$*" in *openjdk-17*) exit 100;; esac\n')
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert java.install()
    apt.write_text("#!/bin/sh\nexit 100\n")
    assert not java.install()


_APT = """#!{python}
import pathlib, sys
with open({calls!r}, "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
brings = {{
    "chromium": ["chromium"],
    "chromium-driver": ["chromedriver"],
    "golang-go": ["go"],
    "postgresql": ["initdb"],
    "prometheus": ["prometheus", "promtool"],
    "sqlite3": ["sqlite3"],
}}
for package in sys.argv[2:]:
    for command in brings.get(package, []):
        program = pathlib.Path({folder!r}) / command
        program.write_text("#!/bin/sh\\n")
        program.chmod(0o755)
"""


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with Java, Maven and an apt that pretends to install; the file with its calls."""
    folder = pretend_java(tmp_path, "17.0.1") / "bin"
    for name, text in {
        "apt-get": _APT.format(python=sys.executable, calls=str(tmp_path / "calls"), folder=str(folder)),
        "mvn": "#!/bin/sh\n",
    }.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(fetch, "jars", lambda: tmp_path)
    monkeypatch.setattr(postgres, "_FOLDERS", tmp_path / "nowhere")
    return tmp_path / "calls"


def test_what_tests_call_is_installed_once(apt: Path) -> None:
    """The packages of the missing commands are asked for together, each once, and not again when they are there."""
    assert fetch.main([]) == 0
    assert fetch.main([]) == 0
    asked = apt.read_text().splitlines()
    wanted = ["chromium-driver", "golang-go", "prometheus", "sqlite3", "postgresql"]
    assert [line.split()[-5:] for line in asked] == [wanted]
    (apt.parent / "bin" / "promtool").unlink()
    assert fetch.main([]) == 0
    assert apt.read_text().splitlines()[1:] == ["install --yes --quiet --no-install-recommends prometheus"]


def test_servers_alone_need_no_browser(apt: Path) -> None:
    """Who starts servers for himself is not made to install what only tests call."""
    assert fetch.main(["--servers-only"]) == 0
    assert not apt.exists()


def test_what_is_missing_is_named_with_its_packages(
    apt: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing may be installed one line names the commands and the packages, and it is an error."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert fetch.main([]) == 1
    output = capsys.readouterr().err
    assert output.count("\n") == 1
    assert "chromium, chromedriver, go, prometheus, promtool, sqlite3" in output
    assert "apt-get install chromium chromium-driver golang-go prometheus sqlite3" in output
    assert "apt-get install postgresql" in output
    assert not apt.exists()
    assert packages.missing_commands() == list(packages.COMMANDS)
