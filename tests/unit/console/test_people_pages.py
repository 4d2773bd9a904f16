"""Admins add people, give out passwords, change roles, and disable accounts."""

import re

import pytest

from consumer.reviews import audit, people
from consumer.reviews.audit import AuditFilters
from consumer.reviews.database import DatabaseUnavailable
from consumer.reviews.people import Person
from tests.unit.console.serving import PASSWORD, Answer, Served


def known(console: Served) -> dict[str, Person]:
    """Return all people by name."""
    with console.database.read_connection() as connection:
        return {person.name: person for person in people.people(connection)}


def noted(console: Served, action: str) -> list[tuple[str, str, str]]:
    """Return who did this to whom, and why."""
    with console.database.read_connection() as connection:
        found = audit.search(connection, AuditFilters(action=action), None, 1_000).rows
        return [(entry.person, entry.subject, entry.why) for entry in found]


def password_in(answer: Answer) -> str:
    """Return the password that a page shows."""
    found = re.search(r'<p class="once">([^<]+)</p>', answer.text)
    assert found is not None, answer.shown
    return found.group(1)


def test_somebody_new_signs_in_with_the_password_that_was_shown(console: Served) -> None:
    """It is shown once, is in no log, and is long enough to be nobody's guess."""
    wei = console.signed_in("Wei", "admin")
    answer = wei.send("/people/add", name=" 李娜 ", role="reviewer")
    assert answer.status == 200
    password = password_in(answer)
    assert len(password) >= 16
    assert password not in wei.get("/people").text
    assert noted(console, "person.add") == [("Wei", "李娜", "reviewer")]
    assert console.browser().sign_in("李娜", password).status == 303
    assert password not in wei.get("/audit").text
    assert known(console)["李娜"].role == "reviewer"


def test_a_name_is_there_once(console: Served) -> None:
    """The second is refused, and the first keeps their password."""
    wei = console.signed_in("Wei", "admin")
    console.add("Ann")
    answer = wei.send("/people/add", name="Ann", role="admin")
    assert answer.status == 409
    assert "This name is taken" in answer.shown
    assert known(console)["Ann"].role == "reviewer"
    assert console.browser().sign_in("Ann").status == 303
    assert noted(console, "person.add") == []


def test_a_name_has_to_be_one(console: Served) -> None:
    """Nobody is added without a name, with an invisible one, or with a role that does not exist."""
    wei = console.signed_in("Wei", "admin")
    for name, role in (
        ("", "admin"),
        ("\u202eAnn", "admin"),
        ("A\nB", "admin"),
        ("a" * 201, "admin"),
        ("Ann", "owner"),
    ):
        assert wei.send("/people/add", name=name, role=role).status == 400
    assert set(known(console)) == {"Wei"}


def test_names_that_differ_in_case_only_are_one_name(console: Served) -> None:
    """Two people who look the same in the history would be taken for each other; older accounts stay."""
    wei = console.signed_in("Wei", "admin")
    assert wei.send("/people/add", name="Ann", role="reviewer").status == 200
    answer = wei.send("/people/add", name="ann", role="admin")
    assert (answer.status, "perhaps with other capitals" in answer.shown) == (409, True)
    assert set(known(console)) == {"Wei", "Ann"}


def test_disabling_an_account_ends_its_sessions_at_once(console: Served) -> None:
    """Until it is enabled again, when they sign in anew."""
    wei, ann = console.signed_in("Wei", "admin"), console.signed_in("Ann")
    one = known(console)["Ann"].person_id
    answer = wei.send(f"/people/{one}/disable")
    assert (answer.status, answer.header("location")) == (303, "/people?done=disabled")
    assert "Its sessions and standing decisions have ended" in wei.get("/people?done=disabled").shown
    assert ann.get("/me").status == 303
    assert console.browser().sign_in("Ann").status == 403
    assert wei.send(f"/people/{one}/enable").status == 303
    assert ann.get("/me").status == 303
    assert console.browser().sign_in("Ann").status == 303
    assert noted(console, "person.disable") == noted(console, "person.enable") == [("Wei", "Ann", "")]


def test_the_last_admin_stays(console: Served) -> None:
    """Or nobody could see to people any more."""
    wei = console.signed_in("Wei", "admin")
    console.add("Ann")
    one = known(console)["Wei"].person_id
    for path, form in (("disable", {}), ("role", {"role": "reviewer"})):
        answer = wei.send(f"/people/{one}/{path}", **form)
        assert answer.status == 409
        assert "last admin" in answer.shown
    assert known(console)["Wei"].role == "admin"
    assert not known(console)["Wei"].disabled
    assert noted(console, "person.disable") == noted(console, "person.role") == []


def test_a_role_counts_from_the_next_request_on(console: Served) -> None:
    """In both directions, in sessions that are there."""
    wei, ann = console.signed_in("Wei", "admin"), console.signed_in("Ann")
    one = known(console)["Ann"].person_id
    assert ann.get("/people").status == 403
    assert wei.send(f"/people/{one}/role", role="admin").status == 303
    assert ann.get("/people").status == 200
    assert wei.send(f"/people/{one}/role", role="reviewer").status == 303
    assert ann.get("/people").status == 403
    assert noted(console, "person.role") == [("Wei", "Ann", "reviewer"), ("Wei", "Ann", "admin")]


def test_a_new_password_ends_the_sessions_that_the_old_one_began(console: Served) -> None:
    """The old one does nothing any more."""
    wei, ann = console.signed_in("Wei", "admin"), console.signed_in("Ann")
    password = password_in(wei.send(f"/people/{known(console)['Ann'].person_id}/password"))
    assert ann.get("/me").status == 303
    assert console.browser().sign_in("Ann", PASSWORD).status == 403
    assert console.browser().sign_in("Ann", password).status == 303
    assert noted(console, "person.password") == [("Wei", "Ann", "")]


def test_people_who_are_not_there_are_not_found(console: Served) -> None:
    """Nothing happens to anybody else."""
    wei = console.signed_in("Wei", "admin")
    for path, form in (("disable", {}), ("enable", {}), ("role", {"role": "admin"}), ("password", {})):
        assert wei.send(f"/people/4711/{path}", **form).status == 404
    assert len(noted(console, "session.begin")) == 1


@pytest.mark.parametrize(("path", "form"), [("/people/add", {"name": "Ann"}), ("/people/2/password", {})])
def test_a_password_that_cannot_be_shown_does_not_count(
    console: Served, monkeypatch: pytest.MonkeyPatch, path: str, form: dict[str, str]
) -> None:
    """It would be nobody's: the database goes away before the page is made, and nothing was changed."""
    wei = console.signed_in("Wei", "admin")
    console.add("Bob")

    def away(*_: object) -> None:
        raise DatabaseUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(people, "people", away)
        assert wei.send(path, "/me", role="reviewer", **form).status == 503
    assert known(console).keys() == {"Wei", "Bob"}
    assert console.browser().sign_in("Bob", PASSWORD).status == 303
