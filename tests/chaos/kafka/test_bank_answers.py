"""That the checks of what verdicts say of banks would see what they are there for."""

from collections import Counter

import pytest

from tests.chaos.kafka.bank_answers import (
    FOLLOWED_MS,
    Change,
    Claim,
    Judged,
    Life,
    Outage,
    check_banks,
    claim_of,
    followed_ms,
)

ITEM, OTHER = ("spam", "1"), ("spam", "2")
LIFE = Life(Change(100_000, 101_000), Change(200_000, 203_000))
FOLLOWED, GONE = 101_000 + FOLLOWED_MS, 203_000 + FOLLOWED_MS
NOTHING: frozenset[tuple[str, str]] = frozenset()


def judged(arrived_ms: int, decided_ms: int, named: frozenset[tuple[str, str]] = NOTHING) -> Judged:
    """A verdict on a copy of the item."""
    return Judged("copy", arrived_ms, decided_ms, ITEM, named)


@pytest.mark.parametrize(
    ("arrived_ms", "decided_ms", "claim"),
    [
        (90_000, 99_999, Claim.NOT_NAMED),
        (90_000, 100_000, Claim.EITHER),
        (FOLLOWED - 1, 150_000, Claim.EITHER),
        (FOLLOWED, 150_000, Claim.NAMED),
        (FOLLOWED, 199_999, Claim.NAMED),
        (FOLLOWED, 200_000, Claim.EITHER),
        (GONE, 250_000, Claim.EITHER),
        (GONE + 1, 250_000, Claim.NOT_NAMED),
        (90_000, 250_000, Claim.EITHER),
    ],
)
def test_what_can_be_said_of_an_item(arrived_ms: int, decided_ms: int, claim: Claim) -> None:
    """It depends on when the article arrived, and when its verdict was decided."""
    verdict = judged(arrived_ms, decided_ms)
    assert claim_of(verdict, LIFE, []) is claim
    is_wrong_without, is_wrong_with = claim is Claim.NAMED, claim is Claim.NOT_NAMED
    without = check_banks([verdict], {ITEM: LIFE}, [])
    assert (without.claims, bool(without.wrong)) == (Counter([claim]), is_wrong_without)
    named = check_banks([verdict._replace(named=frozenset({ITEM}))], {ITEM: LIFE}, [])
    assert (named.claims, bool(named.wrong)) == (Counter([claim]), is_wrong_with)


def test_an_item_that_is_not_removed_goes_on() -> None:
    """And one that was never added is named by nobody."""
    assert claim_of(judged(FOLLOWED, 10**9), LIFE._replace(removed=None), []) is Claim.NAMED
    assert claim_of(judged(FOLLOWED, 10**9), None, []) is Claim.NOT_NAMED
    assert check_banks([judged(FOLLOWED, 10**9, frozenset({ITEM}))], {}, []).wrong


def test_an_item_of_which_an_article_is_no_copy_is_seen() -> None:
    """Beside its own, and in an article that is a copy of none."""
    both = judged(FOLLOWED, 150_000, frozenset({ITEM, OTHER}))
    lives = dict.fromkeys((ITEM, OTHER), LIFE)
    (wrong,) = check_banks([both], lives, []).wrong
    assert "names [('spam', '2')], of which it is no copy" in wrong
    assert check_banks([both._replace(copy_of=None)], lives, []).wrong
    assert not check_banks([both._replace(copy_of=None, named=NOTHING)], lives, []).wrong


@pytest.mark.parametrize(
    ("outages", "expected_ms"),
    [
        ([], 10_000),
        ([Outage(-9_000, -1_000)], 10_000),
        ([Outage(-9_000, 3_000)], 13_000),
        ([Outage(9_999, 12_000)], 22_000),
        ([Outage(10_000, 12_000)], 10_000),
        ([Outage(20_000, 30_000), Outage(4_000, 7_000), Outage(16_000, 18_000)], 40_000),
    ],
)
def test_a_change_is_followed_once_the_brokers_were_there_for_long_enough(
    outages: list[Outage], expected_ms: int
) -> None:
    """Each outage that comes before begins the time anew."""
    assert followed_ms(0, outages) == expected_ms


def test_an_outage_makes_a_claim_weaker() -> None:
    """But not what came long after it."""
    outages = [Outage(105_000, 120_000)]
    assert claim_of(judged(FOLLOWED, 140_000), LIFE, outages) is Claim.EITHER
    assert claim_of(judged(120_000 + FOLLOWED_MS, 140_000), LIFE, outages) is Claim.NAMED
