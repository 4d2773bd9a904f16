"""The kinds of queue entries, and the meaning of a decision about each."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Kind = Literal["flag", "near_miss", "ended_before", "bank_match"]
MeasuredKind = Literal["flag", "near_miss"]
"""The kinds whose decisions are evidence about thresholds: ``KindRule.is_measured``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRule:
    """The properties of one kind of entry.

    ``is_copy``: it counts as a copy of its story, and in floods. ``releases``: the decision *wrong* releases the
    version. ``is_measured``: decisions count in the threshold report and in estimates, and are exported.
    ``has_original``: it names another article; otherwise it names items of banks, and the article is its own original.
    """

    is_copy: bool = False
    releases: bool = False
    is_measured: bool = False
    has_original: bool = True


RULES: Final[Mapping[Kind, KindRule]] = MappingProxyType(
    {
        # A version that is not kept because it repeats an earlier one.
        "flag": KindRule(is_copy=True, releases=True, is_measured=True),
        # A sampled pair just under the threshold.
        "near_miss": KindRule(is_measured=True),
        # A kept version that repeats an article retracted or replaced earlier; no threshold was involved.
        "ended_before": KindRule(),
        # A version, kept or not, that repeats items of deny banks.
        "bank_match": KindRule(has_original=False),
    }
)
KINDS: Final = tuple(RULES)
COPIES: Final = tuple(kind for kind, rule in RULES.items() if rule.is_copy)
RELEASED: Final = tuple(kind for kind, rule in RULES.items() if rule.releases)
MEASURED: Final = tuple(kind for kind, rule in RULES.items() if rule.is_measured)
