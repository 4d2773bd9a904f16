"""Stores that a run has filled with texts, in which items of banks are looked for."""

from consumer.banks.bank import Banks, Entry
from consumer.banks.known_texts import KnownTexts
from consumer.fingerprint import BlockPlan, Engine, Scheme
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivalTime, VersionBuilder, tombstone
from consumer.model.article import Article
from consumer.store_tools import bank_matches
from consumer.store_tools.bank_matches import BankLookUp, ComparableStore, StoredMatch, StoredMatches
from consumer.store_tools.bank_scan import ScanCounts, scan_store
from consumer.store_tools.text_query import Matcher, QueriedStore, Query
from consumer.workers.engines import chosen_engine, new_engine
from consumer.workers.word_files import load_lexicon
from storage.interface import Store
from storage.memory import MemoryStore
from storage.records import Version
from tests.builders import TIME_MS

LEXICON = load_lexicon()
SCHEME = Scheme(name="jieba-tfidf/3")
SETTINGS = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="", scheme=SCHEME, similarity_min=0.73)
NOW_MS = TIME_MS + 1_000


class StoreOfTexts:
    """A store that a run has filled, with its texts and anchors."""

    def __init__(
        self,
        settings: JudgeSettings = SETTINGS,
        store: Store | None = None,
        *,
        keeps_texts: bool = True,
        parts: bool = True,
    ) -> None:
        self.store = store or MemoryStore()
        self._keeps_texts = keeps_texts
        self.settings = settings
        name = chosen_engine("auto", SCHEME, LEXICON).name
        self.engine: Engine = new_engine(name, SCHEME, LEXICON, sketched=True, parts=parts)
        self.builder = VersionBuilder(SCHEME.name, settings.plan, settings.lane1)
        self._detector = Detector(self.store, settings, lambda: NOW_MS)
        self._line = 0

    @property
    def queried(self) -> QueriedStore:
        """The same with what asks it."""

        def queries(with_matches: Matcher) -> Query:
            return Detector(self.store, self.settings, lambda: NOW_MS, with_bank_matches=with_matches).query

        return QueriedStore(self.opened, queries)

    @property
    def opened(self) -> ComparableStore:
        """The store, with what compares its articles."""
        return ComparableStore(self.store, self.settings, self.builder, self.engine)

    def versions(self, articles: dict[str, str], time_ms: int = TIME_MS, feed: str | None = None) -> list[Version]:
        """Return the versions of texts by id; those of a feed come from its lines, so that a text can come back."""
        made = [Article(name, text) for name, text in articles.items()]
        arrivals = [ArrivalTime(time_ms, self._line + place, feed=feed) for place in range(len(made))]
        self._line += len(made)
        versions = self.builder.versions(made, arrivals, self.engine.fingerprint(list(articles.values())))
        return versions if self._keeps_texts else [version._replace(body=None) for version in versions]

    def judge(
        self,
        articles: dict[str, str],
        time_ms: int = TIME_MS,
        *,
        feed: str | None = None,
        detector: Detector | None = None,
    ) -> None:
        """Judge texts by id, one after the other."""
        for version in self.versions(articles, time_ms, feed):
            (detector or self._detector).judge([version])

    def retract(self, article_id: str, time_ms: int = TIME_MS) -> None:
        """Retract an article."""
        self._line += 1
        self._detector.judge([tombstone(article_id, ArrivalTime(time_ms, self._line), b"x", time_ms)])

    def look_up(self, *entries: Entry, matches_max: int = bank_matches.MATCHES_MAX) -> StoredMatches:
        """Look items up."""
        look_up = BankLookUp(self.opened, lambda: NOW_MS)
        return look_up.find(Banks.of(entries), matches_max)

    def scan(self, *entries: Entry) -> tuple[dict[str, StoredMatch], ScanCounts]:
        """Compare everything; return what repeats an item, by id."""
        known = KnownTexts(self.engine, self.settings, lambda: NOW_MS)
        known.replace(entries)
        counts = ScanCounts()
        batches = scan_store(self.store, known, counts)
        return {match.stored.record.id: match for batch in batches for match in batch.stored_matches()}, counts
