"""Selects and orders the bank matches of an article among the items that resemble it.

An item matches if its bank is enabled, the item has not ended, and the similarity reaches the item's own threshold or
else that of its bank. For an item that is a part of an article, the threshold is higher by ``PART_MARGIN``, but at most
1. An item of an ``allow`` bank must match the whole article, and the pair must pass the fact guard and the slot guard.
Pairs are processed as arrays, since an article of a campaign may resemble a thousand items.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from consumer.banks.bank import Bank
from consumer.banks.index import MATCH_FORMS, PART, PART_MARGIN
from consumer.banks.segment import ItemPairs, ItemTable
from consumer.judge.guards import guards_let_pass
from consumer.judge.settings import JudgeSettings
from consumer.model.verdict import BANK_MATCHES_MAX
from storage.records import ALLOW, DENY, BankMatch, Record

_SIMILARITY_DIGITS: Final = 4
_PART: Final = MATCH_FORMS.index(PART)


@dataclass(frozen=True, slots=True, eq=False)
class BankRules:
    """The requirements of b banks for a match, by bank number.

    ``similarities`` float64[b] apply to items without their own; ``denies`` and ``allows`` bool[b] are both false for
    disabled and removed banks.
    """

    similarities: npt.NDArray[np.float64]
    denies: npt.NDArray[np.bool_]
    allows: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, banks: Mapping[str, Bank], names: Collection[str]) -> Self:
        """Return the rules of the banks with these names, which must be in the order of the banks' numbers."""
        by_number = [banks.get(name) for name in names]
        actions = [bank.action if bank is not None and bank.enabled else None for bank in by_number]
        return cls(
            np.array([1.0 if bank is None else bank.item_similarity for bank in by_number], np.float64),
            np.array([action == DENY for action in actions], np.bool_),
            np.array([action == ALLOW for action in actions], np.bool_),
        )

    def accepted_pairs(self, found: ItemPairs, items: ItemTable, now_ms: int) -> ItemPairs:
        """Return the distinct pairs that meet the requirements of the item and its bank, ordered by article."""
        numbers, own_similarities = items.banks[found.items], items.similarities[found.items]
        is_part = found.forms == _PART
        required = np.where(np.isnan(own_similarities), self.similarities[numbers], own_similarities)
        required = np.where(is_part, np.minimum(required + PART_MARGIN, 1.0), required)
        is_active = self.denies[numbers] | self.allows[numbers]
        return found.select(
            is_active & (found.similarities >= required) & (items.ends_ms[found.items] > now_ms)
        ).first_of_each()


def matches_by_article(
    accepted: ItemPairs, items: ItemTable, rules: BankRules, records: Sequence[Record], settings: JudgeSettings
) -> Iterator[tuple[int, list[BankMatch]]]:
    """Yield the place of each article with accepted pairs, and its matches in any order. There may be no matches.

    All matches of ``allow`` banks are included. Others are left out if they cannot be among the first
    ``BANK_MATCHES_MAX`` + 1.
    """
    if not len(accepted.items):
        return
    allows = rules.allows[items.banks[accepted.items]]
    order = np.lexsort((-_rounded(accepted.similarities), allows, accepted.articles))
    accepted, allows = accepted.select(order), allows[order]
    articles, starts, counts = np.unique(accepted.articles, return_index=True, return_counts=True)
    for article, start, count in zip(articles.tolist(), starts.tolist(), counts.tolist(), strict=True):
        end = start + count
        middle = end - int(np.count_nonzero(allows[start:end]))
        yield (
            article,
            [
                *_matches(DENY, _most_similar_pairs(accepted.select(np.arange(start, middle))), items),
                *_matches(
                    ALLOW,
                    _allowed_pairs(accepted.select(np.arange(middle, end)), items, records[article], settings),
                    items,
                ),
            ],
        )


def ranked(matches: list[BankMatch]) -> tuple[BankMatch, ...]:
    """Return the matches to keep: first those of ``allow`` banks, then the others, each with the most similar first.

    Sorts ``matches`` in place.
    """
    matches.sort(key=lambda match: (match.action != ALLOW, -match.similarity, match.bank, match.item))
    return tuple(matches[:BANK_MATCHES_MAX])


def _matches(action: str, pairs: ItemPairs, items: ItemTable) -> Iterator[BankMatch]:
    similarities = _rounded(pairs.similarities).tolist()
    for place, form, similarity in zip(pairs.items.tolist(), pairs.forms.tolist(), similarities, strict=True):
        bank, _, item = items.names[place].partition("/")
        yield BankMatch(bank, item, action, MATCH_FORMS[form], similarity)


def _most_similar_pairs(pairs: ItemPairs) -> ItemPairs:
    """Return the first ``BANK_MATCHES_MAX`` + 1 pairs of an article, and ties with the last.

    ``pairs`` must be in descending order of similarity.
    """
    if len(pairs.items) <= BANK_MATCHES_MAX:
        return pairs
    similarities = _rounded(pairs.similarities)
    return pairs.select(similarities >= similarities[BANK_MATCHES_MAX])


def _allowed_pairs(pairs: ItemPairs, items: ItemTable, record: Record, settings: JudgeSettings) -> ItemPairs:
    """Return the pairs of an article and items of ``allow`` banks that both guards let pass."""
    thresholds = settings.thresholds_for(record.source)
    item_facts = [items.fingerprints.facts.get(place, b"") for place in pairs.items.tolist()]
    return pairs.select(np.array([guards_let_pass(facts, record.facts, thresholds) for facts in item_facts], np.bool_))


def _rounded(similarities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return similarities rounded as in verdicts."""
    return similarities.round(_SIMILARITY_DIGITS)
