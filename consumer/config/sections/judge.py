"""The definition of near-duplicates: ``[fingerprint]``, ``[judge]`` and ``[rules.SOURCE]``."""

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from consumer.config.profiles import FactsName, ProfileName
from consumer.config.setting_types import SECTION_VALIDATION, Count, Section, Share, Text
from consumer.fingerprint import BlockPlan, Scheme
from consumer.judge.settings import FACTS_REVISION, STRETCHES_LIMIT, Conflicts, JudgeSettings, SourceRule

_SCHEME = Scheme()
_JUDGE = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="")


class FingerprintSection(Section):
    """The scheme: how a text becomes a fingerprint."""

    scheme: Text = _SCHEME.name
    """The name of the scheme; docs/use/schemes.md lists them."""
    keywords_max: Count | None = None
    """How many keywords of a text count, those with the greatest weights; when unset, all."""
    dictionary: Text | None = None
    """A file of words for jieba, in addition to its own."""
    stop_words: Text | None = None
    """A file of words that are not keywords, in place of jieba's list."""
    idf: Text | None = None
    """A table of inverse document frequencies, in place of jieba's; dupwatch idf build makes one."""
    short_keywords_max: Annotated[int, Field(ge=0)] = _SCHEME.short_keywords_max
    """A text with at most this many different keywords is short, unless it has enough shingles
    (docs/use/fingerprint.md). Only a text that is equal after folding repeats a short text."""
    bands: Annotated[int, Field(ge=1, le=16)] = _SCHEME.sketch.bands
    """Keys under which a sketch is looked up. More keys find less similar texts, and cost more look-ups."""
    band_minima: Annotated[int, Field(ge=1, le=8)] = _SCHEME.sketch.band_minima
    """Minima per band. Texts share a band if all its minima agree. Fewer minima find less similar texts, and more
    unrelated ones."""
    secret_file: Text | None = None
    """A file with the secret of a new store, 64 hexadecimal digits; when unset, a new store makes its own."""
    decorations: bool = _SCHEME.decorations
    """Leave links, @names, repost marks and [emoji] out of the text; needs jieba-tfidf/3."""
    engine: Literal["auto", "compiled", "python"] = "auto"
    """The engine that computes fingerprints; both compute the same bytes. auto is compiled if dupwatch-core is
    installed, else python."""


class JudgeSection(Section):
    """When two articles are near.

    All settings except parts, seen_days and postings_watch decide verdicts, and a store is bound to them.
    """

    profile: ProfileName | None = None
    """The kind of feed: news, posts or mixed. Sets defaults for bands, band_minima, one_bits_distance_max and
    similarity_min."""
    plan: Text = _JUDGE.plan.name
    """How fingerprints are cut into blocks for look-ups: 4x16, 16x28, or 8x16 and 4x32 for schemes of 128 bits."""
    max_distance: Annotated[int, Field(ge=0, le=128)] = _JUDGE.max_distance
    """Every earlier article within this many bits is found; without verify, all of these are near."""
    reach: Annotated[int, Field(ge=0, le=128)] = _JUDGE.reach
    """With verify, an article found by its fingerprint is compared if it differs in at most this many bits."""
    one_bits_distance_max: Annotated[int, Field(ge=0, le=64)] = _JUDGE.one_bits_distance_max
    """An article that shares a band is compared if at most this many of the 64 one-bit minima differ."""
    verify: bool = _JUDGE.verify
    """Let the similarity of sketches decide. Without it, the distance of fingerprints decides alone: plain SimHash."""
    similarity_min: Share | None = None
    """Minimum similarity of near articles; when unset, 0.73 with jieba-tfidf/3, and 0.75 with other schemes."""
    facts_shared_min: Share = _JUDGE.facts_shared_min
    """The fact guard: the minimum share of numbers, dates and names that similar articles have in common; 0 switches it
    off."""
    facts: FactsName | None = None
    """A guard for texts with the same frame but other facts: "slots" sets slot_conflicts_max = 0, and needs
    jieba-tfidf/3."""
    slot_conflicts_max: Conflicts | None = _JUDGE.slot_conflicts_max
    """The slot guard: the maximum number of slots in which similar articles with a common frame may differ; when unset,
    any number."""
    facts_revision: Annotated[int, Field(ge=1, le=FACTS_REVISION)] = _JUDGE.facts_revision
    """The revision of the fact guard. Older stores have 1, with which a story can become a copy of a frame without
    facts."""
    lane1: bool = _JUDGE.lane1
    """Also look articles up by the bands of their sketches, which finds copies with edits throughout."""
    window_s: Count = _JUDGE.window_ms // 1000
    """How far apart the arrivals of an article and its copy may be."""
    verifications_max: Count = _JUDGE.verifications_max
    """Maximum articles that one article is compared with; a verdict that hits this limit says truncated."""
    stretches_max: Annotated[int, Field(ge=0, le=STRETCHES_LIMIT)] = _JUDGE.stretches_max
    """How often one text of an id may come back into force within the window; 0 for never."""
    parts: bool = False
    """Let verdicts name earlier articles that share a long stretch with this one without being near."""
    seen_days: Annotated[int, Field(ge=0, le=3_650)] = 0
    """How many days a text is remembered after it was last seen, so that verdicts can say seen_before; 0 for none."""
    postings_watch: Count = 20_000
    """Warn when a look-up reads more postings than this on average; changes no verdict."""

    @model_validator(mode="after")
    def _consistent(self) -> "JudgeSection":
        if self.verify and self.reach < self.max_distance:
            raise ValueError(
                f"reach {self.reach} is less than max_distance {self.max_distance}; raise judge.reach to at least "
                f"{self.max_distance}, or lower judge.max_distance"
            )
        if not self.verify and self.lane1:
            raise ValueError(
                "lane1 looks up by sketches, so it needs verify = true; set lane1 = false for plain SimHash"
            )
        if not self.verify and self.facts_shared_min:
            raise ValueError("facts_shared_min has no effect with verify = false; plain SimHash compares no facts")
        if not self.verify and self.slot_conflicts_max is not None:
            raise ValueError("slot_conflicts_max has no effect with verify = false; plain SimHash compares no slots")
        return self


@dataclass(frozen=True, config=SECTION_VALIDATION)
class RuleSection(SourceRule):
    """Different settings for the articles of one source."""

    # Its settings are the fields of SourceRule.
