"""A store of texts as a console searches it, and flags of what is in it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from consumer.console.context import ArticleView, article_view
from consumer.judge.events import storable_reference, version_name
from consumer.store_tools.inspection import latest_version as latest_of
from consumer.store_tools.text_query import QueriedStore
from storage.records import id_hash
from tests.stored_texts import StoreOfTexts
from tests.unit.console.banks import bank, item
from tests.unit.console.newsroom import Newsroom, article


@dataclass
class Archive:
    """A store of texts, as a console opens it; ``error`` is raised instead."""

    made: StoreOfTexts
    error: Exception | None = None

    def __call__(self) -> QueriedStore:
        """Return the store."""
        if self.error is not None:
            raise self.error
        return self.made.queried

    def read(self, pairs: Sequence[tuple[str, str]], *, bodies: bool = True) -> list[ArticleView | None]:
        """Read articles, as ``Articles`` does."""
        store = self().compared.store
        references = [storable_reference(*pair) or b"" for pair in pairs]
        texts = store.bodies(references) if bodies else [None] * len(pairs)
        found = zip(store.read(references), texts, strict=True)
        return [None if stored is None else article_view(stored, text) for stored, text in found]

    def views(self, *names: str) -> list[ArticleView]:
        """Return the latest version of each of these articles."""
        histories = [self.made.store.history(id_hash(name)) for name in names]
        return [article_view(latest, None) for history in histories if (latest := latest_of(history)) is not None]

    def flag(self, room: Newsroom, text: str, original: str, *copies: str) -> None:
        """Take in flags of stored articles that resemble a text."""
        found, _ = self.made.scan(bank("all"), item("all", "text", text, similarity=0.5))
        kept, *flagged = [
            replace(article(name, f"Title of {name}"), version=version_name(found[name].stored.record.reference))
            for name in (original, *copies)
        ]
        for minute, copy in enumerate(flagged, 1):
            room.flag(copy, kept, minute=minute)
