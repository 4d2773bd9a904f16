"""A store of texts as a console searches it, and flags of what is in it."""

from dataclasses import dataclass, replace

from consumer.judge.events import version_name
from consumer.store_tools.bank_matches import ComparableStore
from tests.stored_texts import StoreOfTexts
from tests.unit.console.banks import bank, item
from tests.unit.console.newsroom import Newsroom, article


@dataclass
class Archive:
    """A store of texts, as a console opens it; ``error`` is raised instead."""

    made: StoreOfTexts
    error: Exception | None = None

    def __call__(self) -> ComparableStore:
        """Return the store."""
        if self.error is not None:
            raise self.error
        return self.made.opened

    def flag(self, room: Newsroom, text: str, original: str, *copies: str) -> None:
        """Take in flags of stored articles that resemble a text."""
        found, _ = self.made.scan(bank("all"), item("all", "text", text, similarity=0.5))
        kept, *flagged = [
            replace(article(name, f"Title of {name}"), version=version_name(found[name].stored.record.reference))
            for name in (original, *copies)
        ]
        for minute, copy in enumerate(flagged, 1):
            room.flag(copy, kept, minute=minute)
