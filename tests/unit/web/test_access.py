"""Who may see the pages: addresses, credentials and names."""

from base64 import b64encode
from pathlib import Path

import pytest

from consumer.model.errors import ConfigError
from consumer.web.access import Access, Account, ListenAddress, check_exposure, is_loopback, read_password


def basic(credentials: str) -> str:
    """The header that a client sends."""
    return f"Basic {b64encode(credentials.encode()).decode()}"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
def test_a_loopback_address_needs_no_password(host: str) -> None:
    """Only this machine can connect to it."""
    assert is_loopback(ListenAddress(host, 0))
    check_exposure(ListenAddress(host, 0), Access(), is_open=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # it is refused
def test_other_addresses_need_a_password_or_http_open(host: str) -> None:
    """The error names both settings; with either of them it is allowed."""
    assert not is_loopback(ListenAddress(host, 0))
    with pytest.raises(ConfigError, match=r"http\.user and http\.password_file, or http\.open = true"):
        check_exposure(ListenAddress(host, 9464), Access(), is_open=False)
    check_exposure(ListenAddress(host, 9464), Access(), is_open=True)
    check_exposure(ListenAddress(host, 9464), Access(Account("ops", "x")), is_open=False)


@pytest.mark.parametrize(
    ("header", "let_in"),
    [
        (basic("ops:s:é"), True),
        (basic("ops:s:é").replace("Basic", "bAsIc"), True),
        (basic("ops:s:"), False),
        (basic("ops"), False),
        (basic("Ops:s:é"), False),
        (basic("ops:s:é") + "!", False),
        ("Basic", False),
        ("Basic ///", False),
        ("Basic é", False),
        ("Bearer " + b64encode("ops:s:é".encode()).decode(), False),
        ("", False),
        (None, False),
    ],
)
def test_credentials(header: str | None, let_in: bool) -> None:  # noqa: FBT001  # a table
    """Only the exact user and password, in UTF-8, are accepted; no other header causes an error."""
    assert Access(Account("ops", "s:é")).accepts(header) is let_in


def test_without_an_account_everybody_is_let_in() -> None:
    """Every request is accepted."""
    assert Access().accepts(None)
    assert not Access().needs_credentials


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("dup.example", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
        (None, False),
    ],
)
def test_under_which_names_articles_are_shown(host: str | None, known: bool) -> None:  # noqa: FBT001  # a table
    """IP addresses, localhost and configured names, but not a foreign name that points here."""
    assert Access(names=["Dup.example"]).allows_host(host) is known
    assert Access(Account("a", "b")).allows_host(host)


def test_a_password_from_a_file(tmp_path: Path) -> None:
    """Without the line end; the error names a file that is empty, missing or not text."""
    path = tmp_path / "password"
    path.write_bytes("pass wörd \n".encode())
    assert read_password(str(path)) == "pass wörd "
    for data in (b"\n", b"\xff"):
        path.write_bytes(data)
        with pytest.raises(ConfigError, match=r"http\.password_file.*password"):
            read_password(str(path))
    path.unlink()
    with pytest.raises(ConfigError, match=r"http\.password_file"):
        read_password(str(path))
