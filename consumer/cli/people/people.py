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
from consumer.cli.extras import opened_database
from consumer.cli.options import ConfigOption, JsonOption, SetOption, configured
from consumer.cli.results import answer, results, write
from consumer.config.config import Config
from consumer.model.errors import ConfigError
from consumer.text.install_advice import CONSOLE_PACKAGES, imported
from consumer.text.names import is_name
from storage.clock import now_ms

app = typer.Typer(no_args_is_help=True, help="Add, list or change people who sign in to the console.")

_COMMAND: Final = "dupwatch people"
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The person's name, with which they sign in.")]
RoleName = Literal["reviewer", "admin"]
RoleOption = Annotated[
    RoleName,
    typer.Option(help="reviewer: look at flags and decide. admin: also see to people, and read the audit log."),
]
StdinOption = Annotated[
    bool,
    typer.Option(
        "--password-stdin", help="Read the password from standard input, one line. Without it one is made and printed."
    ),
]


@app.command()
def add(
    name: NameArgument,
    role: RoleOption = "reviewer",
    password_stdin: StdinOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Add a person. The password is made and printed once, unless it is given."""
    chosen = configured(config, settings)
    given = _given_password() if password_stdin else None
    with _reviews(chosen, has_to_be_there=False) as (people, passwords, written):
        if name and not is_name(name):
            raise ConfigError(f"{name!r} has line ends or invisible characters; choose another name")
        new = given or passwords.generated()

        def added(connection: Any) -> None:  # noqa: ANN401  # of SQLAlchemy
            people.add_person(connection, name, role, now_ms(), password=new)
            if given is None:
                _print(new)

        written("person.add", name, added, role)
    _say(f"Added {render.plain(name)} ({role}).", is_shown=given is None)


@app.command("list")
def list_(json: JsonOption = False, config: ConfigOption = None, settings: SetOption = None) -> None:
    """List all people by name, disabled ones too."""
    with opened_database(configured(config, settings), _COMMAND) as database, database.reading() as connection:
        found = _people().people(connection)
    shown = ("name", "role", "disabled", "has_password")
    lines = ({name: getattr(person, name) for name in shown} for person in found)
    answer(json=json, lines=lines, text=[_table(found)])


@app.command()
def role(
    name: NameArgument,
    new: Annotated[RoleName, typer.Argument(metavar="ROLE", help="reviewer or admin.")],
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Give a person another role."""
    _change(configured(config, settings), "person.role", name, lambda people, c, who: people.set_role(c, who, new), new)
    _say(f"{render.plain(name)} is {'an admin' if new == 'admin' else 'a reviewer'}.")


@app.command()
def disable(name: NameArgument, config: ConfigOption = None, settings: SetOption = None) -> None:
    """Disable an account: its sessions end at once. What the person decided stays."""
    chosen = configured(config, settings)
    _change(chosen, "person.disable", name, lambda people, c, who: people.disable(c, who, now_ms()))
    _say(f"{render.plain(name)} is disabled.")


@app.command()
def enable(name: NameArgument, config: ConfigOption = None, settings: SetOption = None) -> None:
    """Enable an account again."""
    _change(configured(config, settings), "person.enable", name, lambda people, c, who: people.enable(c, who))
    _say(f"{render.plain(name)} is enabled.")


@app.command()
def password(
    name: NameArgument, password_stdin: StdinOption = False, config: ConfigOption = None, settings: SetOption = None
) -> None:
    """Give a person a new password, which is made and printed once, unless it is given. Their sessions end."""
    chosen = configured(config, settings)
    given = _given_password() if password_stdin else None
    new = given or _passwords().generated()

    def changed(people: Any, connection: Any, person_id: int) -> None:  # noqa: ANN401  # of an extra
        people.set_password(connection, person_id, new)
        if given is None:
            _print(new)

    _change(chosen, "person.password", name, changed)
    _say(f"{render.plain(name)} has a new password.", is_shown=given is None)


def _people() -> Any:  # noqa: ANN401  # a module of an extra
    return imported("consumer.reviews.people", CONSOLE_PACKAGES, "console", _COMMAND)


def _passwords() -> Any:  # noqa: ANN401  # as above
    return imported("consumer.reviews.passwords", CONSOLE_PACKAGES, "console", _COMMAND)


@contextmanager
def _reviews(config: Config, *, has_to_be_there: bool = True) -> Iterator[tuple[Any, Any, Callable[..., None]]]:
    """Yield the modules that know people and passwords, and what changes something and puts it into the audit log."""
    people = _people()
    audit = imported("consumer.reviews.audit", CONSOLE_PACKAGES, "console", _COMMAND)
    with opened_database(config, _COMMAND, has_to_be_there=has_to_be_there) as database:

        def written(action: str, name: str, change: Callable[[Any], object], why: str = "") -> None:
            def work(connection: Any) -> None:  # noqa: ANN401  # of SQLAlchemy
                change(connection)
                audit.note(
                    connection,
                    at_ms=now_ms(),
                    person=f"{_user()} (command line)",
                    address="",
                    action=action,
                    subject=name,
                    why=why,
                )

            try:
                database.written(work)
            except people.PersonError as error:
                raise ConfigError(str(error)) from error

        yield people, _passwords(), written


def _change(config: Config, action: str, name: str, change: Callable[[Any, Any, int], object], why: str = "") -> None:
    """Change something about a person. Raises ``ConfigError`` where there is nobody of this name."""
    with _reviews(config) as (people, _, written):

        def changed(connection: Any) -> None:  # noqa: ANN401  # as above
            person = people.person_named(connection, name)
            if person is None:
                raise people.NobodyThere(f"there is nobody named {name!r}; dupwatch people list shows all")
            change(people, connection, person.person_id)

        written(action, name, changed, why)


def _given_password() -> str:
    """Read a password. At a terminal it is asked for twice, and not shown."""
    if sys.stdin.isatty():
        given = str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    else:
        given = sys.stdin.readline().rstrip("\r\n")
    least, most = _passwords().PASSWORD_CHARS_MIN, _passwords().PASSWORD_CHARS_MAX
    if not least <= len(given) <= most:
        raise ConfigError(f"a password has {least} to {most} characters, and this one has {len(given)}")
    return given


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
    """Print a password, before it counts: one that could not be printed would be nobody's."""
    with results():
        write(f"{new_password}\n".encode())


def _say(sentence: str, *, is_shown: bool = False) -> None:
    """Say what was done; on standard error where standard output has a password, and that it is not shown again."""
    if is_shown:
        more = "The password is shown this once; the person can change it on the page of their account."
        render.console(stderr=True).print(f"{sentence} {more}")
        return
    with results():
        render.console().print(sentence)


def _user() -> str:
    """Return who runs the command, by the system and not by the environment."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"
