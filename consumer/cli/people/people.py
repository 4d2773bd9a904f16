"""``dupwatch people``: add, list and change the people who sign in to the console."""

import os
import pwd
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final, Literal

import typer
from rich.table import Column, Table

from consumer.cli import render
from consumer.cli.extras import open_database
from consumer.cli.options import ConfigOption, JsonOption, SetOption, command_config
from consumer.cli.results import answer, results, write
from consumer.config.config import Config
from consumer.model.errors import ConfigError
from consumer.text.install_advice import CONSOLE_PACKAGES, import_extra
from consumer.text.names import is_name
from storage.clock import now_ms

app = typer.Typer(no_args_is_help=True, help="Add, list or change people who sign in to the console.")

_COMMAND: Final = "dupwatch people"
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name with which the person signs in.")]
RoleName = Literal["reviewer", "admin"]
RoleOption = Annotated[
    RoleName,
    typer.Option(help="reviewer: look at flags and decide. admin: also manage people, and read the audit log."),
]
StdinOption = Annotated[
    bool,
    typer.Option(
        "--password-stdin", help="Read the password from standard input, one line, instead of generating one."
    ),
]


@app.command()
def add(
    name: NameArgument,
    role: RoleOption = "reviewer",
    password_stdin: StdinOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Add a person. A password is generated and printed once, unless --password-stdin reads one."""
    chosen = command_config(config, overrides)
    chosen_password = _read_password() if password_stdin else None
    with _audited_changes(chosen, must_exist=False) as (people, passwords, write_change):
        if name and not is_name(name):
            raise ConfigError(f"{name!r} has line ends or invisible characters; choose another name")
        new = chosen_password or passwords.new_password()

        def add_person(connection: Any) -> None:  # noqa: ANN401  # of SQLAlchemy
            people.add_person(connection, name, role, now_ms(), password=new)
            if chosen_password is None:
                _print(new)

        write_change("person.add", name, add_person, role)
    _say(f"Added {render.plain(name)} ({role}).", password_shown=chosen_password is None)


@app.command("list")
def list_(json: JsonOption = False, config: ConfigOption = None, overrides: SetOption = None) -> None:
    """List all people by name, disabled ones too."""
    with (
        open_database(command_config(config, overrides), _COMMAND) as database,
        database.read_connection() as connection,
    ):
        found = _people().people(connection)
    shown = ("name", "role", "disabled", "has_password")
    lines = ({name: getattr(person, name) for name in shown} for person in found)
    answer(json=json, lines=lines, text=[_table(found)])


@app.command()
def role(
    name: NameArgument,
    new: Annotated[RoleName, typer.Argument(metavar="ROLE", help="reviewer or admin.")],
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Give a person another role."""
    _change(
        command_config(config, overrides), "person.role", name, lambda people, c, who: people.set_role(c, who, new), new
    )
    _say(f"{render.plain(name)} is {'an admin' if new == 'admin' else 'a reviewer'}.")


@app.command()
def disable(name: NameArgument, config: ConfigOption = None, overrides: SetOption = None) -> None:
    """Disable an account: its sessions end immediately. Decisions of the person remain."""
    chosen = command_config(config, overrides)
    _change(chosen, "person.disable", name, lambda people, c, who: people.disable(c, who, now_ms()))
    _say(f"{render.plain(name)} is disabled.")


@app.command()
def enable(name: NameArgument, config: ConfigOption = None, overrides: SetOption = None) -> None:
    """Enable an account again."""
    _change(command_config(config, overrides), "person.enable", name, lambda people, c, who: people.enable(c, who))
    _say(f"{render.plain(name)} is enabled.")


@app.command()
def password(
    name: NameArgument, password_stdin: StdinOption = False, config: ConfigOption = None, overrides: SetOption = None
) -> None:
    """Give a person a new password. Their sessions end.

    The password is generated and printed once, unless --password-stdin reads one.
    """
    chosen = command_config(config, overrides)
    chosen_password = _read_password() if password_stdin else None
    new = chosen_password or _passwords().new_password()

    def set_password(people: Any, connection: Any, person_id: int) -> None:  # noqa: ANN401  # of an extra
        people.set_password(connection, person_id, new)
        if chosen_password is None:
            _print(new)

    _change(chosen, "person.password", name, set_password)
    _say(f"{render.plain(name)} has a new password.", password_shown=chosen_password is None)


def _people() -> Any:  # noqa: ANN401  # a module of an extra
    return import_extra("consumer.reviews.people", CONSOLE_PACKAGES, "console", _COMMAND)


def _passwords() -> Any:  # noqa: ANN401  # as above
    return import_extra("consumer.reviews.passwords", CONSOLE_PACKAGES, "console", _COMMAND)


@contextmanager
def _audited_changes(config: Config, *, must_exist: bool = True) -> Iterator[tuple[Any, Any, Callable[..., None]]]:
    """Yield the modules for people and passwords, and a function that makes a change and adds it to the audit log.

    The function raises ``ConfigError`` if the change is refused.
    """
    people = _people()
    audit = import_extra("consumer.reviews.audit", CONSOLE_PACKAGES, "console", _COMMAND)
    with open_database(config, _COMMAND, must_exist=must_exist) as database:

        def write_change(action: str, name: str, change: Callable[[Any], object], why: str = "") -> None:
            def work(connection: Any) -> None:  # noqa: ANN401  # of SQLAlchemy
                change(connection)
                audit.add_entry(
                    connection,
                    at_ms=now_ms(),
                    person=f"{_user()} (command line)",
                    address="",
                    action=action,
                    subject=name,
                    why=why,
                )

            try:
                database.write(work)
            except people.PersonError as error:
                raise ConfigError(str(error)) from error

        yield people, _passwords(), write_change


def _change(config: Config, action: str, name: str, change: Callable[[Any, Any, int], object], why: str = "") -> None:
    """Make a change to a person. Raises ``ConfigError`` if nobody has this name, or if the change is refused."""
    with _audited_changes(config) as (people, _, write_change):

        def change_person(connection: Any) -> None:  # noqa: ANN401  # as above
            person = people.person_named(connection, name)
            if person is None:
                raise people.UnknownPerson(f"nobody is named {name!r}; dupwatch people list shows all")
            change(people, connection, person.person_id)

        write_change(action, name, change_person, why)


def _read_password() -> str:
    """Return the password that the user types twice at hidden prompts, or else the first line of standard input.

    Raises ``ConfigError`` if it is too short or too long.
    """
    if sys.stdin.isatty():
        chosen_password = str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    else:
        chosen_password = sys.stdin.readline().rstrip("\r\n")
    least, most = _passwords().PASSWORD_CHARS_MIN, _passwords().PASSWORD_CHARS_MAX
    if not least <= len(chosen_password) <= most:
        raise ConfigError(f"the password has {len(chosen_password)} characters; choose one with {least} to {most}")
    return chosen_password


def _table(people: Iterable[Any]) -> Table:
    rows = (
        (
            render.plain(person.name),
            person.role,
            "disabled" if person.disabled else "enabled",
            "with a password" if person.has_password else "through a proxy",
        )
        for person in people
    )
    return render.table([Column(name, overflow="fold") for name in ("name", "role", "state", "signs in")], rows)


def _print(new_password: str) -> None:
    """Print a password. Call this before the commit: after it, a failure to print would leave the password unknown."""
    with results():
        write(f"{new_password}\n".encode())


def _say(sentence: str, *, password_shown: bool = False) -> None:
    """Print a sentence about a change: on standard error if standard output already shows a password."""
    if password_shown:
        more = "The password is shown only once; the person can change it on the page of their account."
        render.console(stderr=True).print(f"{sentence} {more}")
        return
    with results():
        render.console().print(sentence)


def _user() -> str:
    """Return the user who runs the command, according to the system rather than the environment."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"
