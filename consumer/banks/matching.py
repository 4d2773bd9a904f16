"""Which of the items that are like an article count as its bank matches, and in which order.

An item counts while its bank is enabled and it has not ended, if it is similar enough for itself or its bank. One of a
bank that allows has to be the whole article, without figures of its own. Pairs are compared as arrays, since an article
of a campaign may be like a thousand items.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from consumer.banks.bank import Bank
from consumer.banks.index import FORMS, PART, PART_MARGIN
from consumer.banks.segment import ItemTable, Likenesses
from consumer.judge.guards import guards_let_pass
from consumer.judge.settings import JudgeSettings
from consumer.model.verdict import BANK_MATCHES_MAX
from storage.records import ALLOW, DENY, BankMatch, Record

_SIMILARITY_DIGITS: Final = 4
_PART: Final = FORMS.index(PART)


@dataclass(frozen=True, slots=True, eq=False)
class BankRules:
    """What b banks ask of a match, by the number of the bank.

    ``similarities`` float64[b] are for items without one of their own; ``denies`` and ``allows`` bool[b] are both false
    for banks that are disabled or removed.
    """

    similarities: npt.NDArray[np.float64]
    denies: npt.NDArray[np.bool_]
    allows: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, banks: Mapping[str, Bank], numbers: Collection[str]) -> Self:
        """Return the rules of banks; ``numbers`` has the names of the banks in the order of their numbers."""
        held = [banks.get(name) for name in numbers]
        actions = [bank.action if bank is not None and bank.enabled else None for bank in held]
        return cls(
            np.array([1.0 if bank is None else bank.item_similarity for bank in held], np.float64),
            np.array([action == DENY for action in actions], np.bool_),
            np.array([action == ALLOW for action in actions], np.bool_),
        )

    def met_by(self, found: Likenesses, items: ItemTable, now_ms: int) -> Likenesses:
        """Return the pairs that are enough for the item and its bank, each once."""
        numbers, own = items.banks[found.items], items.similarities[found.items]
        is_part = found.forms == _PART
        wanted = np.where(np.isnan(own), self.similarities[numbers], own)
        wanted = np.where(is_part, np.minimum(wanted + PART_MARGIN, 1.0), wanted)
        counts = self.denies[numbers] | self.allows[numbers]
        return found.of(counts & (found.similarities >= wanted) & (items.ends_ms[found.items] > now_ms)).first_of_each()


def matches_by_article(
    met: Likenesses, items: ItemTable, rules: BankRules, records: Sequence[Record], settings: JudgeSettings
) -> Iterator[tuple[int, list[BankMatch]]]:
    """Yield the articles that match an item, and their matches in any order.

    All items that allow are among them. Of the others those are left out that cannot be among the first
    ``BANK_MATCHES_MAX`` + 1.
    """
    if not len(met.items):
        return
    allows = rules.allows[items.banks[met.items]]
    order = np.lexsort((-_rounded(met.similarities), allows, met.articles))
    met, allows = met.of(order), allows[order]
    articles, starts, counts = np.unique(met.articles, return_index=True, return_counts=True)
    for article, start, count in zip(articles.tolist(), starts.tolist(), counts.tolist(), strict=True):
        end = start + count
        middle = end - int(np.count_nonzero(allows[start:end]))
        yield (
            article,
            [
                *_matches(DENY, _most_similar(met.of(np.arange(start, middle))), items),
                *_matches(ALLOW, _allowed(met.of(np.arange(middle, end)), items, records[article], settings), items),
            ],
        )


def ranked(matches: list[BankMatch]) -> tuple[BankMatch, ...]:
    """Return the matches that are kept: what allows before what denies, and then the most similar."""
    matches.sort(key=lambda match: (match.action != ALLOW, -match.similarity, match.bank, match.item))
    return tuple(matches[:BANK_MATCHES_MAX])


def _matches(action: str, pairs: Likenesses, items: ItemTable) -> Iterator[BankMatch]:
    similarities = _rounded(pairs.similarities).tolist()
    for place, form, similarity in zip(pairs.items.tolist(), pairs.forms.tolist(), similarities, strict=True):
        bank, _, item = items.names[place].partition("/")
        yield BankMatch(bank, item, action, FORMS[form], similarity)


def _most_similar(pairs: Likenesses) -> Likenesses:
    """Return the first pairs of an article, in the order of similarity, with all that are as similar as the last."""
    if len(pairs.items) <= BANK_MATCHES_MAX:
        return pairs
    similarities = _rounded(pairs.similarities)
    return pairs.of(similarities >= similarities[BANK_MATCHES_MAX])


def _allowed(pairs: Likenesses, items: ItemTable, record: Record, settings: JudgeSettings) -> Likenesses:
    """Return the pairs in which the article has no figures of its own. No part is among them: none is looked for."""
    thresholds = settings.thresholds_for(record.source)
    held = [items.fingerprints.facts.get(place, b"") for place in pairs.items.tolist()]
    return pairs.of(np.array([guards_let_pass(facts, record.facts, thresholds) for facts in held], np.bool_))


def _rounded(similarities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return similarities as verdicts give them."""
    return similarities.round(_SIMILARITY_DIGITS)
