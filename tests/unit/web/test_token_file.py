"""What the token file may contain, and who may have written it."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.model.errors import ConfigError
from consumer.web.token import NAME_PATTERN, OWNER_CHARS_MAX, Role, Token, digest_of, new_secret
from consumer.web.token_file import FILE_BYTES_MAX, TOKENS_MAX, encode_tokens, parse, read_tokens
from tests.unit.web.token_samples import NOON, add

PATH = Path("tokens.json")
MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001  # given UTC
    lambda moment: moment.replace(microsecond=0)
)
PRINTABLE = st.characters(exclude_categories=("C", "Z"), include_characters=" ")
"""What ``str.isprintable`` lets pass: a filter would throw away most of what is drawn."""


@st.composite
def tokens(draw: st.DrawFn) -> Token:
    """Any token that a file may have."""
    created = draw(MOMENTS)
    return Token(
        name=draw(st.from_regex(NAME_PATTERN)),
        owner=draw(st.text(PRINTABLE, min_size=1, max_size=OWNER_CHARS_MAX)),
        roles=tuple(draw(st.lists(st.sampled_from(Role), min_size=1, unique=True))),
        sha256=draw(st.binary(min_size=32, max_size=32)).hex(),
        created_at=created,
        expires_at=created + draw(st.timedeltas(timedelta(seconds=1), timedelta(days=366))),
        revoked_at=draw(st.none() | MOMENTS),
    )


@given(st.lists(tokens(), unique_by=(lambda token: token.name, lambda token: token.sha256)).map(tuple))
def test_what_is_written_is_read(written: tuple[Token, ...]) -> None:
    """Every field of every token, in order."""
    assert parse(PATH, encode_tokens(written)) == written


def test_the_longest_file_is_read() -> None:
    """As many tokens as there may be, each as long as it may be, fit into the largest file."""
    longest = [
        Token(
            name=f"{number:0>64}",
            # Four bytes each.
            owner="𠀀" * OWNER_CHARS_MAX,
            roles=tuple(Role),
            sha256=f"{number:0>64x}",
            created_at=NOON,
            expires_at=NOON + timedelta(days=1),
            revoked_at=NOON,
        )
        for number in range(TOKENS_MAX)
    ]
    data = encode_tokens(tuple(longest))
    assert len(data) <= FILE_BYTES_MAX
    assert len(parse(PATH, data)) == TOKENS_MAX
    with pytest.raises(ConfigError, match="more than 10,000 tokens"):
        parse(PATH, encode_tokens((*longest, msgspec.structs.replace(longest[0], name="x", sha256="f" * 64))))
    with pytest.raises(ConfigError, match="more than 16,777,216 bytes"):
        parse(PATH, data + b" " * FILE_BYTES_MAX)


def content(**changes: object) -> bytes:
    """A file with one token that has these values."""
    token = {
        "name": "crawler", "owner": "An Na", "roles": ["reader"], "sha256": "0" * 64,
        "created_at": "2026-11-23T12:00:00Z", "expires_at": "2026-11-24T12:00:00Z",
    }  # fmt: skip
    return msgspec.json.encode({"schema": "dupwatch.tokens/1", "tokens": [token | changes]})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"name": "a b"}, r"\$\.tokens\[0\]\.name"),
        ({"name": "crawler\n"}, r"\$\.tokens\[0\]\.name"),
        ({"name": "n" * 65}, r"\$\.tokens\[0\]\.name"),
        ({"owner": ""}, r"\$\.tokens\[0\]\.owner"),
        ({"owner": "a\u202eb"}, "unprintable character"),
        ({"owner": "o" * 101}, r"\$\.tokens\[0\]\.owner"),
        ({"roles": []}, r"\$\.tokens\[0\]\.roles"),
        ({"roles": ["root"]}, r"\$\.tokens\[0\]\.roles"),
        ({"roles": ["reader", "reader"]}, "names a role twice"),
        ({"sha256": "0" * 63}, r"\$\.tokens\[0\]\.sha256"),
        ({"sha256": "0" * 64 + "\n"}, r"\$\.tokens\[0\]\.sha256"),
        ({"created_at": "2026-11-23T12:00:00"}, r"\$\.tokens\[0\]\.created_at"),
        ({"expires_at": "2026-11-23T12:00:00Z"}, "not after created_at"),
        ({"expires_at": None}, r"\$\.tokens\[0\]\.expires_at"),
        ({"note": "x"}, "unknown field"),
    ],
)
def test_a_value_that_no_token_has(changes: dict[str, object], why: str) -> None:
    """The whole file is refused: half of it might let in whom the other half had shut out."""
    assert len(parse(PATH, content())) == 1
    with pytest.raises(ConfigError, match=f"token file tokens.json is invalid.*{why}"):
        parse(PATH, content(**changes))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"schema": 1}', content()[:-9]])
def test_what_is_no_token_file(data: bytes) -> None:
    """It is refused with advice."""
    with pytest.raises(ConfigError, match=r"is invalid: .*; restore it, or make a new one"):
        parse(PATH, data)


@pytest.mark.parametrize("begin", [b'{"other": ', b'{"schema": "dupwatch.tokens/1", "tokens": '])
def test_deep_nesting(begin: bytes) -> None:
    """It is refused like any other invalid content, whether or not the nested member is known."""
    with pytest.raises(ConfigError, match="is invalid: it is nested too deep; restore it"):
        parse(PATH, begin + b"[" * 100_000)


def test_a_file_of_a_later_version() -> None:
    """It is not read, even if it looks the same otherwise."""
    with pytest.raises(ConfigError, match=r"schema 'dupwatch\.tokens/2'.*this version of dupwatch reads"):
        parse(PATH, content().replace(b"tokens/1", b"tokens/2"))


def test_names_and_hashes_are_unique() -> None:
    """Two tokens of one name could not be told apart in the audit log, and of one hash not at all."""
    one = parse(PATH, content())[0]
    for field, other in (("name", {"sha256": "1" * 64}), ("sha256", {"name": "other"})):
        with pytest.raises(ConfigError, match=f"have the same {field}"):
            parse(PATH, encode_tokens((one, msgspec.structs.replace(one, **other))))


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o620, 0o644, 0o601])
def test_a_file_that_others_can_read_or_change(tmp_path: Path, mode: int) -> None:
    """It is refused, and the message has the command that mends it."""
    path = tmp_path / "tokens.json"
    add(path, "crawler")
    path.chmod(mode)
    with pytest.raises(ConfigError, match=f"mode {mode:04o}.*chmod 600"):
        read_tokens(path)
    for kept in (0o600, 0o640, 0o440, 0o400):
        path.chmod(kept)
        assert len(read_tokens(path)) == 1


def test_a_file_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused, since that user could add a token; root's is read."""
    path = tmp_path / "tokens.json"
    add(path, "crawler")
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr("consumer.web.token_file._ROOT", owner)
    assert len(read_tokens(path)) == 1
    monkeypatch.setattr("consumer.web.token_file._ROOT", owner + 2)
    with pytest.raises(ConfigError, match=f"belongs to user {owner}"):
        read_tokens(path)


def test_what_is_not_a_file(tmp_path: Path) -> None:
    """A folder, a named pipe without a writer, and nothing at all are refused at once."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name, why in (("", "Is a directory"), ("pipe", "not a regular file"), ("none", "No such file")):
        with pytest.raises(ConfigError, match=why):
            read_tokens(tmp_path / name)


def test_a_secret_that_was_typed_into_the_file() -> None:
    """The error does not repeat it."""
    secret = new_secret()
    for changes in ({"roles": [secret]}, {"sha256": secret}, {secret: 1}, {"name": secret}):
        with pytest.raises(ConfigError) as refused:
            parse(PATH, content(**changes))
        assert secret not in str(refused.value)
    assert digest_of(secret) not in secret
