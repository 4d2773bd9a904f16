"""The comparison of articles outside a store with items of banks."""

from collections.abc import Sequence

from consumer.banks.bank import Banks
from consumer.banks.known_texts import BankMatches
from consumer.config.config import Config
from consumer.judge.versions import ArrivalTime
from consumer.model.article import Article
from consumer.wiring.banks import known_texts
from consumer.wiring.components import judge_settings, lexicon_of, version_builder
from consumer.wiring.stores import unstored_binding
from storage.clock import now_ms


class BankComparison:
    """Compares articles with the items of banks by the configured settings."""

    def __init__(self, config: Config, banks: Banks) -> None:
        lexicon = lexicon_of(config)
        bound = unstored_binding(config, judge_settings(config, lexicon))
        self._builder = version_builder(bound)
        self._known = known_texts(config, bound, lexicon, banks)

    def __len__(self) -> int:
        """Return the number of items that articles are compared with."""
        return len(self._known)

    def matches(self, articles: Sequence[Article]) -> BankMatches:
        """Return the items that each of these articles repeats."""
        texts, languages = [article.body or "" for article in articles], [article.lang for article in articles]
        fingerprints = self._known.engine.fingerprint(texts, languages, self._known.known_shingles)
        arrivals = [ArrivalTime(now_ms(), place) for place in range(len(articles))]
        return self._known.matches(self._builder.versions(articles, arrivals, fingerprints))
