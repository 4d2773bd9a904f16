"""Bank matches: events about articles that repeat denied texts."""

import json

import jsonschema
import msgspec

from consumer.model.bank_match import bank_match, decode_bank_match, retroactive_match
from consumer.model.verdict import BankMention, Verdict
from tests.cli.command import SCHEMAS

OFFER = BankMention(bank="spam", item="offer", action="deny", form="part", similarity=0.9583)
OTHER = BankMention(bank="spam", item="other", action="deny", form="equal", similarity=1.0)
VERDICT = Verdict(
    id="a1", version="00" * 16, outcome="unique", cluster="a1",
    arrived_at="2026-11-26T09:00:00.000Z", decided_at="2026-11-26T09:00:00.100Z",
)  # fmt: skip
NAMED = msgspec.structs.replace(VERDICT, banks=(OFFER,))


def test_a_match_is_retroactive_or_does_not_say_so() -> None:
    """Readers of earlier events see the same bytes as before."""
    plain, later = bank_match(NAMED), retroactive_match(VERDICT, OFFER)
    assert plain is not None
    assert later is not None
    assert plain == (
        b'{"schema":"dupwatch.bank-match/1","id":"a1","version":"00000000000000000000000000000000","outcome":"unique",'
        b'"banks":[{"bank":"spam","item":"offer","action":"deny","form":"part","similarity":0.9583}],'
        b'"arrived_at":"2026-11-26T09:00:00.000Z","decided_at":"2026-11-26T09:00:00.100Z"}'
    )
    assert later == plain[:-1] + b',"retroactive":true}'
    assert retroactive_match(VERDICT, OFFER) == later
    assert decode_bank_match(later).retroactive is True
    schema = json.loads((SCHEMAS / "bank-match.schema.json").read_text())
    for event in (plain, later):
        jsonschema.validate(json.loads(event), schema)


def test_what_a_verdict_names_is_not_said_again() -> None:
    """Nor is anything said of a retraction; another item is named alone."""
    assert retroactive_match(NAMED, OFFER) is None
    assert retroactive_match(msgspec.structs.replace(VERDICT, version=None, outcome="retracted"), OFFER) is None
    other = retroactive_match(NAMED, OTHER)
    assert other is not None
    assert decode_bank_match(other).banks == (OTHER,)
