"""The page on which admins manage people: accounts, roles and new passwords."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final, TypeVar

from starlette.responses import Response

from consumer.console.faults import N_, PageError, not_found
from consumer.console.visit import SignedInVisit
from consumer.reviews import passwords, people
from consumer.reviews.database import Connection
from consumer.reviews.people import NAME_CHARS_MAX, LastAdmin, NameTaken, NobodyThere, Person, Role
from consumer.text.names import is_name

_Result = TypeVar("_Result")

ROLES: Final[dict[Role, str]] = {"reviewer": N_("reviewer"), "admin": N_("admin")}


def show_people(asked: SignedInVisit) -> Response:
    """Show all people."""
    with asked.desk.database.reading() as connection:
        known = people.people(connection)
    return _page(asked, known, said=_SAID.get(asked.query.text("done"), ""))


def add(asked: SignedInVisit) -> Response:
    """Add somebody, with a password that is shown once."""
    name, role = asked.form.text("name", NAME_CHARS_MAX), _role(asked)
    if not is_name(name):
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Give a name, without line ends and invisible characters."))
    password = passwords.generated()

    def added(connection: Connection) -> Person:
        person = people.add_person(connection, name, role, asked.desk.now_ms(), password=password)
        asked.note(connection, "person.add", subject=name, why=role)
        return person

    return _with_password(asked, added, password)


def disable(asked: SignedInVisit) -> Response:
    """Disable an account; its sessions and its standing decisions end."""
    now_ms = asked.desk.now_ms()
    _changed(asked, _change(asked, "person.disable", lambda c, person_id: people.disable(c, person_id, now_ms)))
    return asked.redirect("/people", done="disabled")


def enable(asked: SignedInVisit) -> Response:
    """Enable an account again."""
    _changed(asked, _change(asked, "person.enable", people.enable))
    return asked.redirect("/people", done="enabled")


def change_role(asked: SignedInVisit) -> Response:
    """Give somebody another role."""
    role = _role(asked)
    _changed(asked, _change(asked, "person.role", lambda c, person_id: people.set_role(c, person_id, role), role))
    return asked.redirect("/people", done="role")


def give_password(asked: SignedInVisit) -> Response:
    """Give somebody a new password, which is shown once; their sessions end."""
    password = passwords.generated()
    change = _change(asked, "person.password", lambda c, person_id: people.set_password(c, person_id, password))
    return _with_password(asked, change, password)


_SAID: Final = {
    "disabled": N_("The account is disabled, and its sessions and standing decisions have ended."),
    "enabled": N_("The account is enabled again."),
    "role": N_("The role is changed."),
}


def _with_password(asked: SignedInVisit, work: Callable[[Connection], Person], password: str) -> Response:
    """Change a password, and show it once. All people are read before it counts: afterwards nothing may fail."""

    def changed(connection: Connection) -> tuple[Person, list[Person]]:
        return work(connection), people.people(connection)

    person, known = _changed(asked, changed)
    return _page(asked, known, person=person, password=password)


def _page(
    asked: SignedInVisit, known: Sequence[Person], *, said: str = "", person: Person | None = None, password: str = ""
) -> Response:
    return asked.page(
        "people.html",
        people=known,
        roles=[(role, asked.language.gettext(name)) for role, name in ROLES.items()],
        said=asked.language.gettext(said) if said else "",
        changed=person,
        password=password,
    )


def _changed(asked: SignedInVisit, work: Callable[[Connection], _Result]) -> _Result:
    """Change something about somebody. Raises ``PageError`` where that cannot be."""
    try:
        return asked.desk.database.written(work)
    except NobodyThere as error:
        raise not_found() from error
    except NameTaken as error:
        message = N_(
            "There is somebody of this name already, perhaps in another case, and nobody was added. Choose another "
            "name."
        )
        raise PageError(HTTPStatus.CONFLICT, message) from error
    except LastAdmin as error:
        message = N_("This is the last admin, and nothing was changed. Make somebody else an admin first.")
        raise PageError(HTTPStatus.CONFLICT, message) from error


def _change(
    asked: SignedInVisit, action: str, change: Callable[[Connection, int], None], why: str = ""
) -> Callable[[Connection], Person]:
    """Return what changes the person whom the path names, with an entry in the audit log; it raises ``PageError``."""

    def changed(connection: Connection) -> Person:
        person = people.person_numbered(connection, asked.places["person_id"])
        if person is None:
            raise not_found()
        change(connection, person.person_id)
        asked.note(connection, action, subject=person.name, why=why)
        return person

    return changed


def _role(asked: SignedInVisit) -> Role:
    """Return the role that a form names. Raises ``PageError``."""
    sent = asked.form.text("role")
    for role in ROLES:
        if role == sent:
            return role
    raise PageError(HTTPStatus.BAD_REQUEST, N_("There is no such role."))
