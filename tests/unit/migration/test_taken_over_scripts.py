"""What was said about a text is found whatever it is written in: by a takeover, and by a release."""

import json
from functools import partial

import pytest

from consumer.config.config import Config
from consumer.fingerprint import Fingerprinter, Lexicon, Scheme
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.migration.adopting import Takeover
from consumer.model.article import Article
from consumer.wiring.source_records import VersionCheck, version_parts
from consumer.workers.pool import InlineFingerprinting
from consumer.workers.word_files import load_lexicon
from storage.memory import MemoryStore
from storage.records import StoredVersion, Version
from tests.builders import TIME_MS, raw_message
from tests.unit.migration.test_stand_ins import BEFORE, NOW, POST, RUSSIAN, SIMPLIFIED, TRADITIONAL, filled, judged

TEXTS = {"simplified": SIMPLIFIED, "traditional": TRADITIONAL, "post": POST, "Russian": RUSSIAN}


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """The lexicon of the jieba package."""
    return load_lexicon()


def version(name: str, scheme: str, lexicon: Lexicon) -> Version:
    """Return the article of that name by a scheme."""
    fingerprints = Fingerprinter(Scheme(name=scheme), lexicon).fingerprint([TEXTS[name]])
    article = Article(id=name, body=TEXTS[name])
    return VersionBuilder(scheme, NOW.plan, NOW.lane1).versions([article], [ArrivalTime(TIME_MS, 1)], fingerprints)[0]


class InOrder:
    """Arrivals of the test's own."""

    def arrived_at(self, record: object, article: Article) -> ArrivalTime:
        """Return when the article arrived."""
        del record
        return ArrivalTime(TIME_MS + 7, [*TEXTS].index(article.id))


def test_what_was_not_committed_is_taken_over_in_any_script(lexicon: Lexicon) -> None:
    """Messages are decoded again, and their versions are those that the old store has verdicts of."""
    before, store = MemoryStore(), MemoryStore()
    sent = judged(before, BEFORE, *(version(name, "jieba-tfidf/1", lexicon) for name in TEXTS))
    takeover = Takeover(
        decode=lambda record: Article(**json.loads(record.data)),
        fingerprinting=InlineFingerprinting(Fingerprinter(NOW.scheme, lexicon)),
        builder=VersionBuilder(NOW.scheme.name, NOW.plan, NOW.lane1),
        arrivals=InOrder(),  # type: ignore[arg-type]  # all that is asked of them
        judge=filled(store, before, []),
    )
    messages = [raw_message(json.dumps({"id": name, "body": text}).encode()) for name, text in TEXTS.items()]
    assert takeover.adopt(messages) == len(TEXTS)
    stored = store.read([version(name, "jieba-tfidf/2", lexicon).reference for name in TEXTS])
    assert [each and each.verdict for each in stored] == [event.encoded for event in sent]


@pytest.mark.parametrize("scheme", ["jieba-tfidf/1", "jieba-tfidf/2"])
def test_a_release_finds_the_record_in_any_script(lexicon: Lexicon, scheme: str) -> None:
    """Of a version that either scheme has stored; a copy in the other script is another version."""
    check = VersionCheck(partial(version_parts, Config()))
    for name, text in TEXTS.items():
        stored = StoredVersion(version(name, scheme, lexicon).record, None, None)
        for other in TEXTS.values():
            record = raw_message(json.dumps({"body": other}).encode(), name.encode())
            assert check.is_version(record, stored) is (other == text)
