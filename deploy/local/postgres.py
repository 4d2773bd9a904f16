"""PostgreSQL, from the distribution's package.

PostgreSQL refuses to run as root, so root starts it as the user that the package creates. Clients need a password,
since every user of the machine can connect to 127.0.0.1.
"""

import os
import pwd
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from deploy.local.packages import MissingTools
from deploy.local.ports import HOST
from deploy.local.process import Process
from deploy.local.server import Server, ServerFailed

PACKAGE: Final = "postgresql"
USER: Final = "dupwatch"
"""The database user that owns every database."""
_ACCOUNT: Final = "postgres"
_FOLDERS: Final = Path("/usr/lib/postgresql")
_MISSING: Final = f"Some tests need PostgreSQL; on Debian: apt-get install {PACKAGE}. Without it: make test-light"
_FOLDER_MODE: Final = 0o711
"""The mode of the folder around the data: other users may enter it, but not list it."""


def programs() -> Path:
    """Return the folder with the programs of the newest PostgreSQL. Raises ``MissingTools`` if there are none."""
    found = [path.parent for path in _FOLDERS.glob("*/bin/initdb")]
    if found:
        return max(found, key=lambda folder: [int(number) for number in re.findall(r"\d+", folder.parent.name)])
    on_path = shutil.which("initdb")
    if on_path is None:
        raise MissingTools(_MISSING)
    return Path(on_path).resolve().parent


@dataclass(slots=True, kw_only=True)
class Postgres(Server):
    """A server with an empty database ``postgres``."""

    port: int
    password: str
    fsync: bool = False
    """Whether commits survive a crash of the machine. Otherwise they survive one of the server; tests are faster."""
    name: ClassVar[str] = "PostgreSQL"

    @property
    def data(self) -> Path:
        """The folder of its files."""
        return self.folder / "data"

    def url(self, database: str) -> str:
        """Return the address of a database, without its password."""
        return f"postgresql://{USER}@{HOST}:{self.port}/{database}"

    def ports(self) -> tuple[int, ...]:
        """Return the port for clients."""
        return (self.port,)

    def prepare(self) -> None:
        """Create the files of a new server if there are none. Raises ``ServerFailed`` and ``MissingTools``."""
        if (self.data / "PG_VERSION").exists():
            return
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(mode=0o700)
        secret = self.folder / "password"
        secret.touch(mode=0o600)
        secret.write_text(self.password)
        account = _account()
        if account is not None:
            self.folder.chmod(_FOLDER_MODE)
            for path in (self.data, secret):
                os.chown(path, account.pw_uid, account.pw_gid)
        options = ["--no-sync", "--encoding=UTF8", "--locale=C.UTF-8", f"--username={USER}"]
        command = [*_as_user(), str(programs() / "initdb"), *options, "--auth=scram-sha-256", f"--pwfile={secret}"]
        made = subprocess.run([*command, str(self.data)], capture_output=True, text=True, check=False, cwd="/")  # noqa: S603  # ours
        if made.returncode:
            raise ServerFailed(f"{self.name}'s files in {self.data} could not be made: {made.stdout}{made.stderr}")

    def program(self) -> list[str]:
        """Return the command of the server, with its settings."""
        settings = {
            "listen_addresses": HOST,
            "port": str(self.port),
            # No socket file, which would be in a folder of the whole machine.
            "unix_socket_directories": "",
            "fsync": "on" if self.fsync else "off",
            "shared_buffers": "32MB",
            "max_connections": "200",
            "lc_messages": "C",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [*_as_user(), str(programs() / "postgres"), "-D", str(self.data), *options]

    def ready(self) -> bool:
        """Return whether the server has logged that it is ready; its port answers earlier, with an error."""
        return self.logged("database system is ready to accept connections")

    def kill9(self) -> None:
        """Kill the server and its processes for clients, which would keep its memory and so prevent a new start."""
        children = self._children()
        # super() without arguments would fail: it refers to the class before ``slots=True`` replaced it.
        Server.kill9(self)
        for child in children:
            child.kill()
        # This file names the killed process, whose id stays in use until its parent has waited for it.
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _children(self) -> list[Process]:
        if self.process is None or not self.process.alive:
            return []
        found = []
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                found += [Process.of(int(pid)) for pid in (task / "children").read_text().split()]
        return found


def _account() -> pwd.struct_passwd | None:
    """Return the user to run PostgreSQL as if we are root, else None. Raises ``ServerFailed`` if it does not exist."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(_ACCOUNT)
    except KeyError:
        raise ServerFailed(f"PostgreSQL does not run as root, and there is no user {_ACCOUNT}") from None


def _as_user() -> list[str]:
    """Return the beginning of a command that runs a program as PostgreSQL's user; empty if we are not root."""
    if _account() is None:
        return []
    return ["setpriv", f"--reuid={_ACCOUNT}", f"--regid={_ACCOUNT}", "--init-groups"]
