"""PostgreSQL, from the distribution's package.

It refuses to run as root; then its user is the one that the package makes. Whoever connects gives a password, since on
127.0.0.1 every user of the machine could.
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
"""The name that owns every database."""
_ACCOUNT: Final = "postgres"
_FOLDERS: Final = Path("/usr/lib/postgresql")
_MISSING: Final = f"Some tests need PostgreSQL; on Debian: apt-get install {PACKAGE}. Without it: make test-light"
_PASSES: Final = 0o711
"""A folder on the way to the data: another user may pass through, and not list it."""


def programs() -> Path:
    """Return the folder of PostgreSQL's programs, the newest where there are several. Raises ``MissingTools``."""
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
    """Whether what is committed also outlives the machine; without it, it outlives the server, and tests are faster."""
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
        """Make the files of a new server if there are none. Raises ``ServerFailed`` and ``MissingTools``."""
        if (self.data / "PG_VERSION").exists():
            return
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(mode=0o700)
        secret = self.folder / "password"
        secret.touch(mode=0o600)
        secret.write_text(self.password)
        account = _account()
        if account is not None:
            self.folder.chmod(_PASSES)
            for path in (self.data, secret):
                os.chown(path, account.pw_uid, account.pw_gid)
        options = ["--no-sync", "--encoding=UTF8", "--locale=C.UTF-8", f"--username={USER}"]
        command = [*_as_user(), str(programs() / "initdb"), *options, "--auth=scram-sha-256", f"--pwfile={secret}"]
        made = subprocess.run([*command, str(self.data)], capture_output=True, text=True, check=False, cwd="/")  # noqa: S603  # ours
        if made.returncode:
            raise ServerFailed(f"{self.name}'s files in {self.data} could not be made: {made.stdout}{made.stderr}")

    def program(self) -> list[str]:
        """Return the server with its settings."""
        settings = {
            "listen_addresses": HOST,
            "port": str(self.port),
            # It would be in a folder of the machine.
            "unix_socket_directories": "",
            "fsync": "on" if self.fsync else "off",
            "shared_buffers": "32MB",
            "max_connections": "200",
            "lc_messages": "C",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [*_as_user(), str(programs() / "postgres"), "-D", str(self.data), *options]

    def ready(self) -> bool:
        """Check the log: the port answers earlier, with an error."""
        return self.logged("database system is ready to accept connections")

    def kill9(self) -> None:
        """Kill it with the processes that it has for its clients: they keep its memory, and so prevent a new start."""
        children = self._children()
        # Named, as a class with slots is another one than the one that super() without arguments looks for.
        Server.kill9(self)
        for child in children:
            child.kill()
        # A process that nobody has waited for yet keeps its id, and this file names it.
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
    """Return the user that is to run it if we are root. Raises ``ServerFailed``."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(_ACCOUNT)
    except KeyError:
        raise ServerFailed(f"PostgreSQL does not run as root, and there is no user {_ACCOUNT}") from None


def _as_user() -> list[str]:
    """Return what runs a program as that user."""
    if _account() is None:
        return []
    return ["setpriv", f"--reuid={_ACCOUNT}", f"--regid={_ACCOUNT}", "--init-groups"]
