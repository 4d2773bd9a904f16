"""Keys of retractions: each belongs to its owner, and keys of tombstones from before keep their meaning."""

from pathlib import Path

import pytest

import dupwatch
from consumer.model.submission import RequestOrigin
from consumer.service import writing
from consumer.service.writing import retraction_name
from consumer.web.token import Role, current_time
from storage.interface import Store
from tests.unit.service.kept_sink import KeptSink
from tests.unit.service.serving import Answer, Client, article, judging_of, served, wait_until_ready
from tests.unit.web.token_samples import add

OWNERS = ("An Na", "Bo", "this machine")


def retracted_by(client: Client, secret: str | None, key: str = "one") -> Answer:
    """Retract the article with a token of this secret."""
    client.secret = secret
    answer = client.retract("a", key)
    assert (answer.status, answer.json["outcome"]) == (200, "retracted")
    return answer


def is_retracted(client: Client, secret: str | None) -> bool:
    """Whether the article is retracted now; the token may read."""
    client.secret = secret
    answer = client.get("/v1/articles/a").json["retracted"]
    assert isinstance(answer, bool)
    return answer


def stored_again(client: Client, secret: str | None, number: int) -> None:
    """Store another version of the article, which is in force then."""
    client.secret = secret
    assert client.store(article(number, "a")).status == 200
    assert not is_retracted(client, secret)


def secrets_in(path: Path) -> list[str]:
    """The secret of a token of each owner."""
    roles = (Role.WRITER, Role.READER)
    return [add(path, f"t{place}", *roles, owner=owner, now=current_time()) for place, owner in enumerate(OWNERS)]


def named_by_key_alone(store: Store, article_id: str, origin: RequestOrigin) -> bytes:
    """How retractions were named before keys had owners."""
    del store, article_id
    return b"key:" + origin.key.encode()


def test_a_key_belongs_to_its_owner(window: dupwatch.Window, sink: KeptSink, tmp_path: Path) -> None:
    """Under a key that another owner has used, a retraction ends what is in force; its own key again does not."""
    secrets = secrets_in(tmp_path / "tokens.json")
    answers = []
    with served(judging_of(window), sink, tokens=str(tmp_path / "tokens.json")) as client:
        wait_until_ready(client)
        for number, secret in enumerate(secrets):
            stored_again(client, secret, number)
            answers.append(retracted_by(client, secret).data)
            assert is_retracted(client, secret)
        assert len(set(answers)) == len(OWNERS)
        stored_again(client, secrets[0], 9)
        assert [retracted_by(client, secret).data for secret in secrets] == answers
        assert not is_retracted(client, secrets[0])


def test_an_owner_keeps_the_key_with_another_token(window: dupwatch.Window, sink: KeptSink, tmp_path: Path) -> None:
    """A token is replaced by its successor while a retraction is being repeated."""
    path, roles = tmp_path / "tokens.json", (Role.WRITER, Role.READER)
    first, successor = (add(path, name, *roles, now=current_time()) for name in ("first", "successor"))
    with served(judging_of(window), sink, tokens=str(path)) as client:
        wait_until_ready(client)
        stored_again(client, first, 1)
        answer = retracted_by(client, first)
        stored_again(client, first, 2)
        assert retracted_by(client, successor).data == answer.data
        assert not is_retracted(client, first)


def test_without_tokens_there_is_one_owner(window: dupwatch.Window, sink: KeptSink, tmp_path: Path) -> None:
    """It is no owner of a token, also none of the name that the audit log has for it."""
    secrets = secrets_in(tmp_path / "tokens.json")
    with (
        served(judging_of(window), sink) as local,
        served(judging_of(window), sink, tokens=str(tmp_path / "tokens.json")) as remote,
    ):
        wait_until_ready(local)
        wait_until_ready(remote)
        stored_again(local, None, 1)
        answer = retracted_by(local, None)
        stored_again(local, None, 2)
        assert retracted_by(local, None).data == answer.data
        for number, secret in enumerate(secrets):
            stored_again(local, None, 10 + number)
            assert retracted_by(remote, secret).data != answer.data
            assert is_retracted(local, None)


@pytest.mark.parametrize("store", ["memory:", "lmdb:articles.store"])
def test_tombstones_from_before_keep_their_keys(
    sink: KeptSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    """Their owner is not known: whoever repeats the key gets the same bytes, with a token and without."""
    monkeypatch.chdir(tmp_path)
    secrets = secrets_in(tmp_path / "tokens.json")
    with dupwatch.open(store) as window:
        with monkeypatch.context() as patch, served(judging_of(window), sink) as client:
            patch.setattr(writing, "retraction_name", named_by_key_alone)
            wait_until_ready(client)
            stored_again(client, None, 1)
            before = retracted_by(client, None).data
            stored_again(client, None, 2)
        with served(judging_of(window), sink) as client:
            wait_until_ready(client)
            assert retracted_by(client, None).data == before
            assert not is_retracted(client, None)
            assert retracted_by(client, None, "two").data != before
            stored_again(client, None, 3)
        with served(judging_of(window), sink, tokens=str(tmp_path / "tokens.json")) as client:
            wait_until_ready(client)
            assert [retracted_by(client, secret).data for secret in secrets] == [before] * len(OWNERS)
            assert not is_retracted(client, secrets[0])


def test_names_of_owners_and_keys_do_not_run_together() -> None:
    """Whatever they are, two pairs have two names."""
    with dupwatch.open("memory:") as window:
        names = {
            retraction_name(window._store, "a", RequestOrigin(owner, key))
            for owner in ("", "a", "ab", "key:", "b")
            for key in ("a", "ba", "key:a", "b", "")
        }
    assert len(names) == 25
