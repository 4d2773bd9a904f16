"""The page of an article: its versions, its verdict in words, the articles it repeats, its flags, and its text."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from consumer.console.context import ArticleView, article_view
from consumer.console.pages.look_up.pasted_text import check_id
from consumer.console.pages.sources.preferred_line import PreferredLine, read_preferred
from consumer.console.pages.stored_articles import articles_named
from consumer.console.pages.text_differences import plain_part
from consumer.console.verdict_words import ended_before_text, part_sentences, verdict_sentences
from consumer.console.visit import SignedInVisit
from consumer.model.verdict import BankMention, EndedBefore, Released, Verdict
from consumer.reviews.database import Connection
from consumer.reviews.flag_row import IN_FORCE, FlagRow
from consumer.reviews.kinds.rules import COPY_KINDS
from consumer.reviews.pairs.reports import flags_of_article
from consumer.reviews.portable import ID_BYTES_MAX
from consumer.reviews.stories import Story, stories_of_roots
from consumer.reviews.stories import story as story_numbered
from consumer.store_tools.article_facts import ArticleFacts, ArticleHistoryEntry, article_facts
from consumer.store_tools.explanation import SharedPart
from consumer.store_tools.inspection import DuplicateLink
from consumer.text.shown_keywords import shown_keywords
from consumer.text.timestamps import since_1970_ms
from consumer.text.visible import paragraphs

HISTORY_MAX: Final = 100
"""The maximum number of versions and retractions that the page lists. It lists the latest."""
CHAIN_MAX: Final = 20
"""The maximum number of articles of a chain of duplicates that the page lists."""
FLAGS_MAX: Final = 20
"""The maximum number of flags of an article that the page links to. It links to the latest."""
KEYWORDS_MAX: Final = 10
"""The maximum number of keywords of an article that the page shows."""
PASSAGES_MAX: Final = 5
"""The maximum number of shared passages of a part that the page quotes."""
PASSAGE_CHARS_MAX: Final = 300
ID_CHARS_MAX: Final = 32 * 1024
"""The maximum number of characters of an id to read. Of these, ids of more than ``ID_BYTES_MAX`` bytes get an error."""
_VERSION_CHARS_MAX: Final = 64


class QuotedPart(NamedTuple):
    """A part that an article shares with another article. ``passages`` is None if either text is not stored.

    ``left_out`` counts the passages that are not quoted.
    """

    id: str
    version: str
    passages: tuple[str, ...] | None
    left_out: int


class ArticleDetails(NamedTuple):
    """The details of a stored version. Its text has ``parts`` parts; ``text`` is part ``part``, counted from 1."""

    view: ArticleView
    verdict: Verdict | None
    decided_ms: int | None
    keywords: tuple[str, ...]
    fingerprint: str
    origin: str | None
    stretch: int
    ended: bool
    chain: Sequence[DuplicateLink]
    chain_continues: bool
    shared_keywords: tuple[str, ...]
    reasons: list[str]
    ended_before: EndedBefore | None
    ended_before_text: str
    released: Released | None
    banks: tuple[BankMention, ...]
    quoted_parts: list[QuotedPart]
    text: str
    part: int
    parts: int


def show_article(visit: SignedInVisit) -> Response:
    """Show the article that the query names, or an empty form if it names none."""
    given, version = visit.query.exact("id", ID_CHARS_MAX), visit.query.text("version", _VERSION_CHARS_MAX)
    article_id = given if len(given.encode()) <= ID_BYTES_MAX else given.strip()
    check_id(article_id)
    if not article_id:
        return _page(visit, "", None, "")
    facts = article_facts(visit.context.store(), article_id, version or None, _links_max())
    if not facts.history and article_id.strip() not in {"", article_id}:
        # Pasted ids often have a space at the end.
        trimmed = article_facts(visit.context.store(), article_id.strip(), version or None, _links_max())
        if trimmed.history:
            article_id, facts = article_id.strip(), trimmed
    return _page(visit, article_id, facts, version)


def _links_max() -> int:
    """Return how many links to read: the article, the listed ones, and one more to see whether the chain continues."""
    return CHAIN_MAX + 2


def _page(visit: SignedInVisit, article_id: str, facts: ArticleFacts | None, version: str) -> Response:
    flags: list[FlagRow] = []
    story: Story | None = None
    preferred: PreferredLine | None = None
    if article_id:
        with visit.context.database.read_connection() as connection:
            flags = flags_of_article(connection, article_id, FLAGS_MAX)
            story = _story_of(connection, article_id, flags)
            members = None if story is None else read_preferred(connection, [story])
        if story is not None and members is not None:
            preferred = members.line(story.story_id, articles_named(visit.context, members.named))
    is_found = facts is None or bool(facts.links)
    entries: list[ArticleHistoryEntry] = [] if facts is None else facts.entries
    return visit.page(
        "look_up.html",
        status=HTTPStatus.OK if is_found else HTTPStatus.NOT_FOUND,
        id=article_id,
        version=version,
        is_found=is_found,
        article=None if facts is None or not facts.links else _article(visit, facts),
        entries=entries[-HISTORY_MAX:],
        left_out=max(len(entries) - HISTORY_MAX, 0),
        flags_of=flags,
        story=story,
        preferred=preferred,
        window_s=None if visit.context.judging is None else visit.context.judging.window_ms / 1_000,
    )


def _story_of(connection: Connection, article_id: str, flags: Sequence[FlagRow]) -> Story | None:
    """Return the story in which an article is the original or a copy, or None if there is none."""
    own = stories_of_roots(connection, {article_id}).get(article_id)
    copies = [flag.story_id for flag in flags if flag.kind in COPY_KINDS and flag.state in IN_FORCE]
    return own if own is not None or not copies else story_numbered(connection, copies[0])


def _article(visit: SignedInVisit, facts: ArticleFacts) -> ArticleDetails:
    stored, verdict = facts.links[0]
    piece, part, parts = plain_part(facts.body or "", visit.query.integer("part", 1))
    language, record, view = visit.language, stored.record, article_view(stored, facts.body)
    ended_before = verdict.ended_before if verdict and isinstance(verdict.ended_before, EndedBefore) else None
    return ArticleDetails(
        view=view,
        verdict=verdict,
        decided_ms=None if verdict is None else since_1970_ms(datetime.fromisoformat(verdict.decided_at)),
        keywords=shown_keywords(view.keywords)[:KEYWORDS_MAX],
        fingerprint=record.fingerprint.hex(),
        origin=None if record.origin is None else str(record.origin),
        stretch=record.stretch or 0,
        ended=facts.ending is not None,
        chain=facts.links[1 : CHAIN_MAX + 1],
        chain_continues=len(facts.links) > CHAIN_MAX + 1,
        shared_keywords=shown_keywords(facts.shared_keywords),
        reasons=[] if verdict is None else [*verdict_sentences(language, verdict), *part_sentences(language, verdict)],
        ended_before=ended_before,
        ended_before_text="" if ended_before is None else ended_before_text(language, ended_before),
        released=verdict.released if verdict and isinstance(verdict.released, Released) else None,
        banks=verdict.banks if verdict and isinstance(verdict.banks, tuple) else (),
        quoted_parts=list(quoted_parts(facts.passages)),
        text=piece.text,
        part=part,
        parts=parts,
    )


def quoted_parts(shared: Sequence[SharedPart]) -> Iterator[QuotedPart]:
    """Yield the shared parts of an article with the passages that appear word for word in the other article."""
    for part, passages in shared:
        quotes = None
        if passages is not None:
            quotes = tuple(paragraphs(passage.text.strip(), PASSAGE_CHARS_MAX) for passage in passages[:PASSAGES_MAX])
        yield QuotedPart(part.id, part.version, quotes, max(len(passages or ()) - PASSAGES_MAX, 0))
