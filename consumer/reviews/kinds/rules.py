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

    ``is_copy``: an entry counts as a copy of its story, and in floods. ``releases``: the decision *wrong* releases the
    version. ``is_measured``: decisions count in the threshold report and in estimates, and are exported.
    ``has_original``: an entry names another article. An entry without an original names items of banks, and its article
    stands for the original.
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
        # A version that repeats an article retracted or replaced earlier. It was kept for that reason, whatever the
        # threshold.
        "ended_before": KindRule(),
        # A version, kept or not, that repeats items of deny banks.
        "bank_match": KindRule(has_original=False),
    }
)
KINDS: Final = tuple(RULES)
COPY_KINDS: Final = tuple(kind for kind, rule in RULES.items() if rule.is_copy)
RELEASABLE_KINDS: Final = tuple(kind for kind, rule in RULES.items() if rule.releases)
MEASURED_KINDS: Final = tuple(kind for kind, rule in RULES.items() if rule.is_measured)
