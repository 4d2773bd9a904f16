"""Whether a record is a version, and what is built for that."""

import json

import pytest

from consumer.config.config import Config
from consumer.judge.versions import ArrivalTime
from consumer.model.article import Article
from consumer.model.record import RawRecord
from consumer.wiring.source_records import VersionCheck, VersionParts, version_parts
from storage.records import StoredVersion, stretch_reference
from tests.builders import make_record, raw_message

BODY = "The ferry leaves the harbour at seven, and returns in the evening with the last passengers of the day."


@pytest.fixture(scope="module")
def parts() -> VersionParts:
    """Those of the default configuration."""
    return version_parts(Config())


@pytest.fixture
def stored(parts: VersionParts) -> StoredVersion:
    """The version of the article ``a``."""
    fingerprints = parts.engine.fingerprint([BODY], [""])
    (version,) = parts.builder.versions([Article(id="a", body=BODY)], [ArrivalTime(0, 0)], fingerprints)
    return StoredVersion(version.record, None, None)


def message(body: object = BODY, key: bytes = b"a") -> RawRecord:
    """A message with a body."""
    return raw_message(json.dumps({"body": body}).encode(), key)


def test_a_version_is_its_id_and_content(parts: VersionParts, stored: StoredVersion) -> None:
    """Another id, another text, a retraction and what is no article are others."""
    check = VersionCheck(lambda: parts)
    assert check.is_version(message(), stored)
    for other in (message(key=b"b"), message(BODY + " Again."), message(None), raw_message(b"{", b"a")):
        assert not check.is_version(other, stored)


def test_a_stretch_is_a_version_of_the_same_content(parts: VersionParts, stored: StoredVersion) -> None:
    """Under its own reference; one that does not fit to its number is not."""
    check, first = VersionCheck(lambda: parts), stored.record.reference
    for stretch in (1, 2):
        later = stored._replace(record=make_record(reference=stretch_reference(first, stretch), stretch=stretch))
        assert check.is_version(message(), later)
    wrong = stored._replace(record=make_record(reference=stretch_reference(first, 1), stretch=2))
    assert not check.is_version(message(), wrong)


def test_decoder_and_engine_are_built_once(parts: VersionParts, stored: StoredVersion) -> None:
    """And not before there is a record."""
    built: list[VersionParts] = []

    def build() -> VersionParts:
        built.append(parts)
        return parts

    check = VersionCheck(build)
    assert built == []
    for _ in range(3):
        check.is_version(message(), stored)
    assert len(built) == 1
