"""Takes over the verdicts of messages that the old consumers have judged and not committed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from consumer.judge.versions import VersionBuilder
from consumer.migration.adopting import AdoptingJudge
from consumer.model.article import Article
from consumer.model.errors import BadRecord
from consumer.model.record import RawRecord
from consumer.pipeline.arrivals import Arrivals
from consumer.pipeline.loop import distinct_ids
from consumer.workers.pool import Fingerprinting
from storage.records import Version


@dataclass(frozen=True, slots=True)
class Takeover:
    """Builds versions of messages, and adopts those that have a verdict in the store in force. Judges nothing."""

    decode: Callable[[RawRecord], Article]
    fingerprinting: Fingerprinting
    builder: VersionBuilder
    arrivals: Arrivals
    judge: AdoptingJudge

    def adopt(self, records: Sequence[RawRecord]) -> int:
        """Take over what has a verdict, and return how many versions that were. Bad records are skipped."""
        articles = list(self._bodied(records))
        if not articles:
            return 0
        timed = self.fingerprinting.submit(
            [article.body or "" for _, article in articles], [article.lang for _, article in articles]
        ).result()
        arrivals = [self.arrivals.arrived_at(record, article) for record, article in articles]
        versions = self.builder.versions([article for _, article in articles], arrivals, timed.fingerprints)
        parts = ([version for version in part if isinstance(version, Version)] for part in distinct_ids(versions))
        return sum(len(self.judge.adopt(part)) for part in parts)

    def _bodied(self, records: Sequence[RawRecord]) -> Iterator[tuple[RawRecord, Article]]:
        for record in records:
            try:
                article = self.decode(record)
            except BadRecord:
                continue
            if article.body is not None:
                yield record, article
