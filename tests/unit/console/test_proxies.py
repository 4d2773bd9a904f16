"""People whom a proxy signs in, headers that anybody can send, and the demo in which nobody signs in."""

from pathlib import Path
from typing import Any, Final

import pytest

from consumer.model.errors import ConfigError
from consumer.reviews import audit, people
from consumer.reviews.audit import AuditFilters
from consumer.reviews.people import Person
from tests.unit.console.serving import Browser, Served, served

TRUSTING: Final[dict[str, Any]] = {"proxy_addresses": ("127.0.0.1",), "proxy_header": "X-User"}


def known(console: Served, name: str) -> Person | None:
    """Return somebody by name."""
    with console.database.read_connection() as connection:
        return people.person_named(connection, name)


def test_a_proxy_signs_people_in(tmp_path: Path) -> None:
    """Who is new is a reviewer, which the audit log has, once."""
    with served(tmp_path, **TRUSTING) as console:
        browser = console.browser()
        for _ in range(2):
            assert "李娜" in browser.get("/me", x_user="李娜".encode().decode("latin-1")).shown
        person = known(console, "李娜")
        assert person is not None
        assert person.role == "reviewer"
        assert browser.get("/people", x_user="李娜".encode().decode("latin-1")).status == 403
        with console.database.read_connection() as connection:
            (entry,) = audit.search(connection, AuditFilters(), None, 1_000).rows
        assert (entry.action, entry.person, entry.why) == ("person.first_seen", "李娜", "reviewer")


def test_a_proxy_that_spells_a_name_in_another_case_is_refused(tmp_path: Path) -> None:
    """It would make a second account of the same person, or of another one who looks the same."""
    with served(tmp_path, **TRUSTING) as console:
        assert console.browser().get("/me", x_user="Ann").status == 200
        answer = console.browser().get("/me", x_user="ann")
        assert (answer.status, "differs from ann only in case" in answer.shown) == (403, True)
        assert known(console, "ann") is None


def test_forms_of_people_whom_a_proxy_signs_in_are_checked_too(tmp_path: Path) -> None:
    """They have no session here; their browser has something to prove itself with all the same."""
    with served(tmp_path, **TRUSTING) as console:
        browser = console.browser()
        token = browser.get("/me", x_user="Ann").token
        assert browser.post("/me/language", {"language": "zh"}, x_user="Ann").status == 403
        other = console.browser()
        assert other.post("/me/language", {"language": "zh", "token": token}, x_user="Ann").status == 403
        assert browser.post("/me/language", {"language": "zh", "token": token}, x_user="Ann").status == 303
        assert "退出登录" not in browser.get("/me", x_user="Ann").shown


def test_a_header_from_anybody_else_means_nothing(tmp_path: Path) -> None:
    """It counts from the address of the connection, whatever is forwarded."""
    with served(tmp_path, proxy_addresses=("10.9.9.9",), proxy_header="X-User") as console:
        console.add("Wei", "admin")
        answer = console.browser().get("/people", x_user="Wei", x_forwarded_for="10.9.9.9")
        assert answer.status == 303
        assert known(console, "10.9.9.9") is None
        assert "Wei" not in console.browser().get("/sign-in", x_user="Wei").shown


def test_without_the_setting_no_header_counts(console: Served) -> None:
    """Nor from this machine."""
    console.add("Wei", "admin")
    assert console.browser().get("/people", x_user="Wei", remote_user="Wei").status == 303


@pytest.mark.parametrize("name", ["\x85", "a" * 201, "An\u202ena", "\xff\xfe", " "])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    """And nobody is added for it."""
    with served(tmp_path, **TRUSTING) as console:
        sent = name if name.isascii() or name == "\xff\xfe" else name.encode().decode("latin-1")
        answer = console.browser().get("/me", x_user=sent)
        assert answer.status == 403 if name.strip() else answer.status in {303, 403}
        with console.database.read_connection() as connection:
            assert people.people(connection) == []


def test_two_headers_name_nobody(tmp_path: Path) -> None:
    """A proxy that adds its header to what the client sent would let everybody choose who they are."""
    with served(tmp_path, **TRUSTING) as console:
        with console.connect() as connection:
            connection.sendall(
                b"GET /me HTTP/1.1\r\nHost: 127.0.0.1\r\nX-User: Wei\r\nX-User: Ann\r\nConnection: close\r\n\r\n"
            )
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
        assert answer.startswith(b"HTTP/1.1 403")
        with console.database.read_connection() as reading:
            assert people.people(reading) == []


def test_somebody_who_is_disabled_does_not_come_in_through_the_proxy(tmp_path: Path) -> None:
    """And is told so, since signing in again would not help."""
    with served(tmp_path, **TRUSTING) as console:
        ann = console.add("Ann")
        console.database.write(lambda c: people.disable(c, ann.person_id, console.clock()))
        answer = console.browser().get("/me", x_user="Ann")
        assert answer.status == 403
        assert "The account Ann is disabled" in answer.shown


def test_the_clients_address_is_the_last_that_is_no_proxy(tmp_path: Path) -> None:
    """What is before it comes from the client, who can write anything."""
    with served(tmp_path, proxy_addresses=("127.0.0.0/8", "10.0.0.0/8"), proxy_header="X-User") as console:
        forwarded = {
            "9.9.9.9, 203.0.113.7, 10.0.0.3": "203.0.113.7",
            "203.0.113.7": "203.0.113.7",
            "2001:db8::1": "2001:db8::1",
            "::ffff:203.0.113.8": "203.0.113.8",
            "203.0.113.7, <script>": "127.0.0.1",
            "": "127.0.0.1",
            "10.0.0.1": "127.0.0.1",
        }
        for header in forwarded:
            browser = console.browser()
            token = browser.get("/sign-in").token
            browser.post("/sign-in", {"token": token, "name": "x", "password": "y"}, x_forwarded_for=header)
        with console.database.read_connection() as connection:
            noted = [
                entry.address
                for entry in audit.search(connection, AuditFilters(action="session.refused"), None, 1_000).rows
            ]
        assert noted[::-1] == list(forwarded.values())


def test_behind_tls_of_a_proxy_cookies_are_secure(tmp_path: Path) -> None:
    """They have the prefix that keeps other hosts from setting them."""
    with served(tmp_path, **TRUSTING) as console:
        console.add("Ann")
        browser = console.browser()
        token = browser.get("/sign-in", x_forwarded_proto="https").token
        form = {"token": token, "name": "Ann", "password": "correct horse battery"}
        origin = browser.url.replace("http:", "https:")
        answer = browser.post("/sign-in", form, x_forwarded_proto="https", origin=origin)
        (line,) = answer.all_headers("set-cookie")
        assert line.startswith(f"__Host-dupwatch-{console.identity}=")
        assert "Secure" in line
        assert "Domain" not in line
        assert browser.post("/sign-out", {"token": token}, x_forwarded_proto="https").status == 403


def test_whoever_is_no_proxy_cannot_say_that_there_is_tls(console: Served) -> None:
    """A browser would not keep such cookies, and nobody could sign in."""
    (line,) = console.browser().get("/sign-in", x_forwarded_proto="https").all_headers("set-cookie")
    assert line.startswith(f"dupwatch-form-{console.identity}=")
    assert "Secure" not in line


def test_a_wrong_address_of_a_proxy_is_a_wrong_setting(tmp_path: Path) -> None:
    """It names the setting and the value."""
    with (
        pytest.raises(ConfigError, match=r"console.proxy_addresses: 'proxy.local'"),
        served(tmp_path, proxy_addresses=("proxy.local",), proxy_header="X-User"),
    ):
        pass


def test_everybody_is_one_person_in_the_demo(tmp_path: Path) -> None:
    """Without signing in, and with all rights; forms are checked as always."""
    with served(tmp_path, fixed_person="demo") as console:
        browser = console.browser()
        assert browser.get("/people").status == 200
        assert Browser(console.url).post("/me/language", {"language": "zh"}).status == 403
        assert browser.send("/me/language", language="zh").status == 303
        assert known(console, "demo") == Person(1, "demo", "admin", "zh", disabled=False)


def test_a_demo_is_for_this_machine_only(tmp_path: Path) -> None:
    """Nobody else may be an admin without a password."""
    with (
        pytest.raises(ConfigError, match="must listen on a loopback address"),
        served(tmp_path, fixed_person="demo", listen="0.0.0.0:0"),
    ):
        pass
