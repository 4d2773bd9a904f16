"""Accounts: who there is, what they may do, and that somebody can always see to them."""

import time
from dataclasses import replace
from functools import partial

import pytest
from argon2 import PasswordHasher
from sqlalchemy import update

from consumer.reviews import passwords, people, sessions
from consumer.reviews.database import Database
from consumer.reviews.people import LastAdmin, NameTaken, PersonError, UnknownPerson
from consumer.reviews.tables import PEOPLE
from tests.unit.reviews.made import NOW_MS, add_person, at_once, read, write

PASSWORD = "a password of some length"  # of a test


@pytest.fixture(autouse=True)
def _cheap_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash with the same algorithm and less work."""
    monkeypatch.setattr(passwords, "_HASHER", PasswordHasher(time_cost=1, memory_cost=64, parallelism=1))
    passwords._dummy_hash.cache_clear()


def test_people_are_found_by_name_and_number(database: Database) -> None:
    """Names are told apart by every letter, and by case where two accounts of an earlier version differ in it."""
    ann = write(database, people.add_person, "Ann", "admin", NOW_MS, password=PASSWORD)
    with pytest.raises(NameTaken):
        add_person(database, "ann")
    other = replace(add_person(database, "other"), name="ann")
    with database.write_transaction() as connection:
        connection.execute(update(PEOPLE).where(PEOPLE.c.person_id == other.person_id).values(name="ann"))
    assert read(database, people.people) == [ann, other]
    assert read(database, people.person_named, "Ann") == ann
    assert read(database, people.person_numbered, other.person_id) == other
    assert read(database, people.person_named, "ANN") is None
    assert read(database, people.person_named, "\0") is None
    assert (ann.role, ann.disabled, ann.language, ann.has_password, other.has_password) == (
        "admin",
        False,
        None,
        True,
        False,
    )


@pytest.mark.parametrize("name", ["", "x" * 201, "a\0b", "\udc80"])
def test_names_that_are_none(database: Database, name: str) -> None:
    """They are refused, on both databases alike."""
    with pytest.raises(PersonError):
        add_person(database, name)


def test_a_name_is_taken_once(database: Database, second: Database) -> None:
    """Also by two processes at the same time; a proxy's name is the same person to both."""
    add_person(database, "Ann")
    with pytest.raises(NameTaken):
        add_person(database, "Ann")

    def ensure(each: Database, name: str) -> int:
        return write(each, people.ensure_person, name, "reviewer", NOW_MS).person_id

    for number in range(10):
        one, other = at_once([partial(ensure, each, f"Bob {number}") for each in (database, second)])
        assert one == other


def test_a_password_lets_in_whose_it_is(database: Database) -> None:
    """Not others, nobody without one, and nobody whose account is disabled."""
    add_person(database, "Boss", "admin")
    ann = write(database, people.add_person, "Ann", "admin", NOW_MS, password=PASSWORD)
    add_person(database, "proxied")
    assert read(database, people.person_with_password, "Ann", PASSWORD) == ann
    assert read(database, people.person_with_password, "Ann", PASSWORD + " ") is None
    assert read(database, people.person_with_password, "proxied", PASSWORD) is None
    assert read(database, people.person_with_password, "nobody", PASSWORD) is None
    write(database, people.disable, ann.person_id, NOW_MS)
    assert read(database, people.person_with_password, "Ann", PASSWORD) is None
    write(database, people.enable, ann.person_id)
    assert read(database, people.person_with_password, "Ann", PASSWORD) == ann


def test_a_new_password_ends_what_the_old_one_began(database: Database) -> None:
    """The old one is worth nothing, and sessions end."""
    ann = write(database, people.add_person, "Ann", "admin", NOW_MS, password="the old password")  # of a test
    secret = write(database, sessions.begin_session, ann.person_id, NOW_MS, 1_000)
    write(database, people.set_password, ann.person_id, PASSWORD)
    assert read(database, people.person_with_password, "Ann", "the old password") is None
    assert read(database, people.person_with_password, "Ann", PASSWORD) == ann
    assert sessions.person_of(database, secret, NOW_MS, 1_000) is None


def test_the_last_admin_stays(database: Database) -> None:
    """Whoever else is no admin, or is disabled, does not count."""
    ann, bob = add_person(database, "Ann", "admin"), add_person(database, "Bob", "admin")
    add_person(database, "Wei")
    write(database, people.disable, bob.person_id, NOW_MS)
    for work in (people.disable, people.set_role):
        with pytest.raises(LastAdmin, match="Ann"):
            write(database, work, ann.person_id, NOW_MS if work is people.disable else "reviewer")  # type: ignore[arg-type]
    write(database, people.enable, bob.person_id)
    write(database, people.set_role, ann.person_id, "reviewer")
    assert [person.role for person in read(database, people.people)] == ["reviewer", "admin", "reviewer"]
    write(database, people.disable, ann.person_id, NOW_MS)


def test_two_admins_who_disable_each_other(database: Database, second: Database) -> None:
    """At the same time: one of them stays."""
    for number in range(8):
        pair = [add_person(database, f"{name} {number}", "admin").person_id for name in ("Ann", "Bob")]
        for other in read(database, people.people):
            if other.person_id not in pair and not other.disabled:
                write(database, people.disable, other.person_id, NOW_MS)

        def disable(each: Database, person_id: int) -> bool:
            try:
                write(each, people.disable, person_id, NOW_MS)
            except LastAdmin:
                return False
            return True

        done = at_once([partial(disable, database, pair[0]), partial(disable, second, pair[1])])
        assert sorted(done) == [False, True]


def test_nobody_is_changed_who_is_not_there(database: Database) -> None:
    """It is said, and not passed over."""
    with pytest.raises(UnknownPerson):
        write(database, people.set_language, 99, "zh")


def test_language(database: Database) -> None:
    """It can be chosen, and left to the browser again."""
    ann = add_person(database, "Ann")
    write(database, people.set_language, ann.person_id, "zh")
    found = read(database, people.person_named, "Ann")
    assert found is not None
    assert found.language == "zh"
    write(database, people.set_language, ann.person_id, None)
    assert read(database, people.person_named, "Ann") == ann


def test_who_has_no_account_takes_as_long_as_a_wrong_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody learns from the time which names there are."""
    monkeypatch.setattr(passwords, "_HASHER", PasswordHasher(time_cost=2, memory_cost=16_384, parallelism=1))
    passwords._dummy_hash.cache_clear()
    known = passwords.hash_of(PASSWORD)
    assert not passwords.matches(None, "the first one makes the hash")

    def took_s(password_hash: str | None) -> float:
        began_s = time.process_time()
        assert not passwords.matches(password_hash, "wrong")
        return time.process_time() - began_s

    # The least of some: other tests may slow down any of them. Without a hash of nobody's it takes next to nothing.
    one, nobody = (min(took_s(password_hash) for _ in range(5)) for password_hash in (known, None))
    assert 0.25 < one / nobody < 4
    passwords._dummy_hash.cache_clear()


def test_hashes_of_other_parameters_are_renewed(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the password is at hand: the same password still fits."""
    ann = write(database, people.add_person, "Ann", "admin", NOW_MS, password=PASSWORD)
    monkeypatch.setattr(passwords, "_HASHER", PasswordHasher(time_cost=2, memory_cost=64, parallelism=1))
    assert passwords.is_outdated(passwords_hash(database))
    write(database, people.renew_hash, ann.person_id, PASSWORD)
    renewed = passwords_hash(database)
    assert not passwords.is_outdated(renewed)
    write(database, people.renew_hash, ann.person_id, PASSWORD)
    assert passwords_hash(database) == renewed
    assert read(database, people.person_with_password, "Ann", PASSWORD) == ann


def passwords_hash(database: Database) -> str:
    """The one hash that is stored."""
    with database.read_connection() as connection:
        return str(connection.exec_driver_sql("SELECT password_hash FROM people").scalar_one())


def test_the_parameters_are_those_of_the_library() -> None:
    """Argon2id, with what its authors recommend."""
    assert PasswordHasher().hash("x").startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert len({passwords.new_password() for _ in range(50)}) == 50
    assert all(len(passwords.new_password()) == 20 for _ in range(5))
    assert not passwords.matches("no hash", PASSWORD)
