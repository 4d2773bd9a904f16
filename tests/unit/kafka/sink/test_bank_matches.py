"""Bank matches among the messages of a verdict: sent where something is denied, unless they are withheld."""

import msgspec
import pytest

from consumer.kafka.sink.event_headers import event_headers
from consumer.kafka.sink.topic_sink import MessageRouting
from consumer.kafka.topics import SinkTopics
from consumer.model.bank_match import decode_bank_match
from consumer.model.ports import JudgedRecord
from consumer.model.verdict import BankMention, VerdictEvent
from tests.unit.kafka.sink.test_event_headers import FLAG, answer

TOPICS = SinkTopics("p", verdicts=True, bank_matches=True)
OFFER = BankMention(bank="spam", item="offer", action="deny", form="equal", similarity=1.0)


def topics_of(given: JudgedRecord, topics: SinkTopics = TOPICS) -> list[str]:
    """Return the topics that get a message of this answer."""
    return [message.topic for message in MessageRouting(topics, event_headers).verdict_messages(given)]


@pytest.mark.parametrize(("withheld", "sent"), [(False, ["p.bank-matches"]), (True, [])])
def test_a_withheld_match_is_not_sent(*, withheld: bool, sent: list[str]) -> None:
    """The verdict names its items either way."""
    denied = answer(msgspec.structs.replace(FLAG, banks=(OFFER,)))
    given = JudgedRecord(denied.record, denied.event, match_withheld=withheld)
    assert topics_of(given) == ["p.duplicates", "p.verdicts", *sent]
    flag, verdict, *matches = (
        message.value or b"" for message in MessageRouting(TOPICS, event_headers).verdict_messages(given)
    )
    assert flag == verdict == denied.event.encoded
    assert [decode_bank_match(match).banks for match in matches] == [(OFFER,)] * len(sent)


def test_there_is_none_without_banks_or_topic() -> None:
    """Nor of what is allowed alone."""
    allowed = msgspec.structs.replace(FLAG, banks=(msgspec.structs.replace(OFFER, action="allow"),))
    denied = JudgedRecord(answer().record, VerdictEvent.of(msgspec.structs.replace(FLAG, banks=(OFFER,))))
    for given, topics in ((answer(), TOPICS), (answer(allowed), TOPICS), (denied, SinkTopics("p", verdicts=True))):
        assert topics_of(given, topics) == ["p.duplicates", "p.verdicts"]
