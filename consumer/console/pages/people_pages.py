"""The page on which admins manage people: accounts, roles and new passwords."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final, TypeVar

from starlette.responses import Response

from consumer.console.faults import N_, PageError, not_found
from consumer.console.visit import SignedInVisit
from consumer.reviews import passwords, people
from consumer.reviews.database import Connection
from consumer.reviews.people import NAME_CHARS_MAX, LastAdmin, NameTaken, Person, Role, UnknownPerson
from consumer.text.names import is_name

_Result = TypeVar("_Result")

ROLES: Final[dict[Role, str]] = {"reviewer": N_("reviewer"), "admin": N_("admin")}


def show_people(visit: SignedInVisit) -> Response:
    """Show all people."""
    with visit.context.database.read_connection() as connection:
        known = people.people(connection)
    return _page(visit, known, notice=_NOTICES.get(visit.query.text("done"), ""))


def add(visit: SignedInVisit) -> Response:
    """Add a person with a password that is shown once."""
    name, role = visit.form.text("name", NAME_CHARS_MAX), _role(visit)
    if not is_name(name):
        raise PageError(HTTPStatus.BAD_REQUEST, N_("Enter a name without line breaks or invisible characters."))
    password = passwords.new_password()

    def add_person(connection: Connection) -> Person:
        person = people.add_person(connection, name, role, visit.context.now_ms(), password=password)
        visit.add_audit_entry(connection, "person.add", subject=name, why=role)
        return person

    return _with_password(visit, add_person, password)


def disable(visit: SignedInVisit) -> Response:
    """Disable an account, and end its sessions and standing decisions."""
    now_ms = visit.context.now_ms()
    _write(visit, _change(visit, "person.disable", lambda c, person_id: people.disable(c, person_id, now_ms)))
    return visit.redirect("/people", done="disabled")


def enable(visit: SignedInVisit) -> Response:
    """Enable an account again."""
    _write(visit, _change(visit, "person.enable", people.enable))
    return visit.redirect("/people", done="enabled")


def change_role(visit: SignedInVisit) -> Response:
    """Change a person's role."""
    role = _role(visit)
    _write(visit, _change(visit, "person.role", lambda c, person_id: people.set_role(c, person_id, role), role))
    return visit.redirect("/people", done="role")


def give_password(visit: SignedInVisit) -> Response:
    """Give a person a new password, shown once, and end their sessions."""
    password = passwords.new_password()
    change = _change(visit, "person.password", lambda c, person_id: people.set_password(c, person_id, password))
    return _with_password(visit, change, password)


_NOTICES: Final = {
    "disabled": N_("Account disabled. Its sessions and standing decisions have ended."),
    "enabled": N_("Account enabled."),
    "role": N_("Role changed."),
}


def _with_password(visit: SignedInVisit, work: Callable[[Connection], Person], password: str) -> Response:
    """Run a change that sets a password, and show the password once.

    The list of people is read in the same transaction, since a failure after the change would lose the password.
    """

    def change_and_list(connection: Connection) -> tuple[Person, list[Person]]:
        return work(connection), people.people(connection)

    person, known = _write(visit, change_and_list)
    return _page(visit, known, person=person, password=password)


def _page(
    visit: SignedInVisit, known: Sequence[Person], *, notice: str = "", person: Person | None = None, password: str = ""
) -> Response:
    return visit.page(
        "people.html",
        people=known,
        roles=[(role, visit.language.gettext(name)) for role, name in ROLES.items()],
        notice=visit.language.gettext(notice) if notice else "",
        changed=person,
        password=password,
    )


def _write(visit: SignedInVisit, work: Callable[[Connection], _Result]) -> _Result:
    """Run a change of people in a transaction. Raises ``PageError`` if it is refused."""
    try:
        return visit.context.database.write(work)
    except UnknownPerson as error:
        raise not_found() from error
    except NameTaken as error:
        message = N_("This name is taken, perhaps with other capitals. Nobody was added. Choose another name.")
        raise PageError(HTTPStatus.CONFLICT, message) from error
    except LastAdmin as error:
        message = N_("This is the last admin. Nothing was changed. Make somebody else an admin first.")
        raise PageError(HTTPStatus.CONFLICT, message) from error


def _change(
    visit: SignedInVisit, action: str, change: Callable[[Connection, int], None], why: str = ""
) -> Callable[[Connection], Person]:
    """Return a function that changes the person in the path and records the change in the audit log.

    It raises ``PageError`` if the person does not exist.
    """

    def change_person(connection: Connection) -> Person:
        person = people.person_numbered(connection, visit.path_parameters["person_id"])
        if person is None:
            raise not_found()
        change(connection, person.person_id)
        visit.add_audit_entry(connection, action, subject=person.name, why=why)
        return person

    return change_person


def _role(visit: SignedInVisit) -> Role:
    """Return the role in a form. Raises ``PageError`` for an unknown role."""
    sent = visit.form.text("role")
    for role in ROLES:
        if role == sent:
            return role
    raise PageError(HTTPStatus.BAD_REQUEST, N_("There is no such role."))
