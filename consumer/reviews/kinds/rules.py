"""The kinds of entries of the queue, and what a decision about each of them means."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Kind = Literal["flag", "near_miss", "ended_before", "bank_match"]
MeasuredKind = Literal["flag", "near_miss"]
"""The kinds whose decisions say something about thresholds: ``KindRule.is_measured``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRule:
    """What an entry of a kind is about, and what follows from a decision.

    ``is_copy``: it counts as a copy of its story, and in floods. ``releases``: *wrong* releases the version.
    ``is_measured``: decisions count in the threshold report and in estimates, and are exported. ``has_original``: it
    names another article; otherwise it names items of banks, and its original is the article itself.
    """

    is_copy: bool = False
    releases: bool = False
    is_measured: bool = False
    has_original: bool = True


RULES: Final[Mapping[Kind, KindRule]] = MappingProxyType(
    {
        # A version that is not kept, because it repeats an earlier one.
        "flag": KindRule(is_copy=True, releases=True, is_measured=True),
        # A sampled pair just under the threshold.
        "near_miss": KindRule(is_measured=True),
        # A kept version that repeats one which had been retracted or replaced before: no threshold let it pass.
        "ended_before": KindRule(),
        # A version, kept or not, that repeats items of banks that deny.
        "bank_match": KindRule(has_original=False),
    }
)
KINDS: Final = tuple(RULES)
COPIES: Final = tuple(kind for kind, rule in RULES.items() if rule.is_copy)
RELEASED: Final = tuple(kind for kind, rule in RULES.items() if rule.releases)
MEASURED: Final = tuple(kind for kind, rule in RULES.items() if rule.is_measured)
