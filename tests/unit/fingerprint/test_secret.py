"""The secret of a store, and what is derived from it."""

import hashlib
import pickle
import secrets

import pytest

from consumer.fingerprint import PUBLISHED_SECRET, SECRET_BYTES, Secret

SECRET = Secret(bytes(range(32)))


def test_nothing_shows_a_secret() -> None:
    """A secret is shown by its id alone, whichever way it gets into a message."""
    for shown in (repr(SECRET), str(SECRET), f"{SECRET}", repr([SECRET]), repr({"secret": SECRET})):
        assert f"Secret(id='{SECRET.id}')" in shown
        assert SECRET.hex()[:8] not in shown
        assert "\\x01" not in shown


def test_random_secrets_differ() -> None:
    """Each random secret is another one, with another id and other keys."""
    made = {Secret(secrets.token_bytes(SECRET_BYTES)) for _ in range(20)} | {PUBLISHED_SECRET, SECRET}
    assert len(made) == len({secret.id for secret in made}) == len({secret.hash_key for secret in made}) == 22


def test_keys_and_ids_are_derived_one_way() -> None:
    """Id, base and key of SipHash are three keyed hashes of BLAKE2b; the base is odd."""

    def derived(purpose: bytes, size: int) -> bytes:
        return hashlib.blake2b(b"", digest_size=size, key=bytes(range(32)), person=purpose).digest()

    assert SECRET.id == derived(b"secret-id", 4).hex()
    base, first, second = SECRET.hash_key
    assert base == int.from_bytes(derived(b"shingle-base", 8), "little") | 1
    assert first.to_bytes(8, "little") + second.to_bytes(8, "little") == derived(b"shingle-siphash", 16)


def test_a_secret_survives_being_written() -> None:
    """Hexadecimal digits and a pickle, which brings it to a worker, give the same secret."""
    assert Secret.from_hex(SECRET.hex()) == SECRET
    assert pickle.loads(pickle.dumps(SECRET)) == SECRET


@pytest.mark.parametrize("digits", ["", "00" * 31, "00" * 33, "zz" * 32, "0" * 63])
def test_other_text_is_no_secret(digits: str) -> None:
    """The error says what a secret looks like, and not what was there."""
    with pytest.raises(ValueError, match="64 hexadecimal digits") as raised:
        Secret.from_hex(digits)
    assert raised.value.__suppress_context__
    assert not digits or digits not in str(raised.value)


def test_the_length_is_checked() -> None:
    """A shorter secret is refused."""
    with pytest.raises(ValueError, match="a secret has 32 bytes, not 31"):
        Secret(bytes(SECRET_BYTES - 1))
