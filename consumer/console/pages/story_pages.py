"""The pages of stories: the largest and fastest ones, one story with its copies, and which source copies which."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from consumer.console.context import ArticleView
from consumer.console.faults import N_, PageError, not_found
from consumer.console.pages.decision_notice import bulk_decision_notice
from consumer.console.pages.look_up.related import related_parts
from consumer.console.pages.queue_filters import one_of
from consumer.console.pages.queue_pages import Tab
from consumer.console.pages.repairs.repaired import repairs_of
from consumer.console.pages.sources.preferred_line import LISTED_COPIES_MAX, PreferredLine, read_preferred
from consumer.console.pages.sources.rank_forms import rank_list, rank_notice
from consumer.console.pages.standing.standing_words import mute_href
from consumer.console.pages.standing.story_part import story_part
from consumer.console.pages.stored_articles import articles_named, original_named, story_rows
from consumer.console.source_matrix import PairLine, source_matrix
from consumer.console.story_chart import Chart, bar_length_ms, chart_of
from consumer.console.visit import SignedInVisit
from consumer.reviews import floods, queue, stories
from consumer.reviews.database import Connection
from consumer.reviews.floods import Flood
from consumer.reviews.paging import BadCursor
from consumer.reviews.standing.standing_decisions import in_force
from consumer.reviews.stories import Story, root_versions
from storage.clock import MS_PER_S

BAR_STEPS: Final = 20
"""The number of bar lengths. Each has a rule in ``base.css``, since the security policy forbids inline styles."""
STORIES_MAX: Final = 20
FLOODS_MAX: Final = 10
PAIRS_MAX: Final = 200
"""The maximum number of pairs of sources that the page of sources reads. It reads the most frequent."""
PAIRS_LISTED_MAX: Final = 50
_SPAN_FIELD: Final = "within"
_SPANS_S: Final[Mapping[str, int]] = {"1h": 3_600, "24h": 86_400, "7d": 604_800}
_DEFAULT_SPAN: Final = "24h"


class StoryLine(NamedTuple):
    """A story in a list; ``step`` is the length of its bar. ``copies_in_span`` is None in the list of the largest."""

    story: Story
    preferred: PreferredLine
    root: ArticleView | None
    copies_in_span: int | None
    step: int


class FloodLine(NamedTuple):
    """A flood in a list, and the original of its story, if the store has it."""

    flood: Flood
    root: ArticleView | None


class _Span(NamedTuple):
    """The time span of a page: its start, its name, and links to other spans."""

    since_ms: int
    name: str
    tabs: tuple[Tab, ...]


def show_stories(visit: SignedInVisit) -> Response:
    """Show the largest stories, those that spread fastest, and floods."""
    span = _requested_span(visit)
    with visit.context.database.read_connection() as connection:
        fastest = stories.fastest_stories(connection, span.since_ms, STORIES_MAX)
        largest = stories.largest_stories(connection, 0, STORIES_MAX)
        begun = [flood for flood in floods.floods(connection, FLOODS_MAX) if flood.last_ms >= span.since_ms]
        listed = [*(each.story for each in fastest), *largest]
        ids = [*(each.root_id for each in listed), *(each.root_id for each in begun)]
        versions = root_versions(connection, ids)
        preferred = read_preferred(connection, listed, LISTED_COPIES_MAX)
    found = articles_named(visit.context, [*versions.items(), *preferred.named])
    most_since = max((each.new_copies for each in fastest), default=1)
    most = max((each.copies for each in largest), default=1)

    def root(root_id: str) -> ArticleView | None:
        return original_named(found, versions, root_id)

    def line(story: Story, copies_in_span: int | None, step: int) -> StoryLine:
        return StoryLine(story, preferred.line(story.story_id, found), root(story.root_id), copies_in_span, step)

    return visit.page(
        "stories.html",
        tabs=span.tabs,
        since_span=span.name,
        floods=[FloodLine(flood, root(flood.root_id)) for flood in begun],
        fastest=[line(each.story, each.new_copies, _step(each.new_copies, most_since)) for each in fastest],
        largest=[line(each, None, _step(each.copies, most)) for each in largest],
        store_is_away=found.is_away,
    )


def show_story(visit: SignedInVisit) -> Response:
    """Show an original and its copies over time."""
    context, cursor = visit.context, visit.query.text("after") or None
    with context.database.read_connection() as connection:
        story = requested_story(visit, connection)
        page = _copies(visit, connection, story.story_id, cursor)
        length_ms = bar_length_ms(story.first_ms, story.last_ms)
        chart = chart_of(stories.timeline(connection, story, length_ms))
        repairs = repairs_of(connection, story)
        versions = root_versions(connection, [story.root_id, *repairs.root_ids])
        notice = bulk_decision_notice(visit, connection, story.story_id, f"/stories/{story.story_id}/undo")
        preferred = read_preferred(connection, [story])
        further_copies = story_part(visit, connection, story)
    copies = [(flag.article_id, flag.version) for flag in page.rows]
    found = articles_named(context, [*versions.items(), *copies, *preferred.named])
    root = original_named(found, versions, story.root_id)
    own_ids = [story.root_id, *(article_id for article_id, _ in copies)]
    related = related_parts([root, *map(found.article, page.rows)], own_ids)
    path = f"/stories/{story.story_id}"
    return visit.page(
        "story.html",
        story=story,
        root=root,
        rows=story_rows(page.rows, found),
        related=related.articles(articles_named(context, related.named)),
        preferred=preferred.line(story.story_id, found),
        chart=chart,
        chart_caption="" if chart is None else _chart_caption(visit, chart),
        before_href=None if page.before is None else f"{path}?{urlencode({'after': page.before})}",
        after_href=None if page.after is None else f"{path}?{urlencode({'after': page.after})}",
        flag_query=urlencode({"order": "oldest", "story_id": story.story_id}),
        store_is_away=found.is_away,
        decision=notice,
        notice=further_copies.notice,
        further_copies=further_copies,
        splits=repairs.split_lines(found, versions),
        merges=repairs.merge_lines(found, versions),
    )


def show_sources(visit: SignedInVisit) -> Response:
    """Show which source copies which."""
    span = _requested_span(visit)
    with visit.context.database.read_connection() as connection:
        counted = stories.pairs_of_sources(connection, span.since_ms, PAIRS_MAX)
        ranks = rank_list(visit, connection)
        standing = in_force(connection, visit.context.now_ms())
    # Sources that have not been read from the store yet are None.
    known = [
        (pair.source, pair.original_source, pair.copies)
        for pair in counted
        if pair.source is not None and pair.original_source is not None
    ]
    most = max((copies for _, _, copies in known), default=1)
    lines = [
        PairLine(source, original, copies, _step(copies, most), _pair_href(source, original))
        for source, original, copies in known
    ]
    return visit.page(
        "sources.html",
        tabs=span.tabs,
        since_span=span.name,
        pairs=lines[:PAIRS_LISTED_MAX],
        matrix=source_matrix(lines, _pair_href),
        ranks=ranks,
        notice=rank_notice(visit),
        muted={(each.source, each.original_source): each for each in standing if each.story_id is None},
        mute_href=mute_href,
    )


def requested_story(visit: SignedInVisit, connection: Connection) -> Story:
    """Return the story in the path. Raises ``PageError`` if it does not exist."""
    story = stories.story(connection, visit.path_parameters["story_id"])
    if story is None:
        raise not_found()
    return story


def _requested_span(visit: SignedInVisit) -> _Span:
    """Return the span in the query. Raises ``PageError``."""
    span_code = one_of(visit.query, _SPAN_FIELD, tuple(_SPANS_S)) or _DEFAULT_SPAN
    names = {code: visit.language.duration(seconds) for code, seconds in _SPANS_S.items()}
    tabs = tuple(
        Tab(
            names[code],
            visit.path if code == _DEFAULT_SPAN else f"{visit.path}?{_SPAN_FIELD}={code}",
            code == span_code,
        )
        for code in _SPANS_S
    )
    return _Span(visit.context.now_ms() - _SPANS_S[span_code] * MS_PER_S, names[span_code], tabs)


def _copies(visit: SignedInVisit, connection: Connection, story_id: int, cursor: str | None) -> queue.QueuePage:
    try:
        return stories.copies(connection, story_id, cursor, visit.context.section.page_rows)
    except BadCursor as error:
        message = N_("This page of copies does not exist. Start at the first page.")
        raise PageError(HTTPStatus.BAD_REQUEST, message) from error


def _chart_caption(visit: SignedInVisit, chart: Chart) -> str:
    """Return a description of a chart for screen readers."""
    top = max(chart.bars, key=lambda bar: bar.copies)
    return visit.language.ngettext(
        "Copies over time. The peak begins at %(time)s: %(num)s within %(span)s.",
        "Copies over time. The peak begins at %(time)s: %(num)s within %(span)s.",
        top.copies,
        time=visit.language.date_time(top.from_ms),
        span=visit.language.duration(chart.bar_s),
    )


def _step(count: int, most: int) -> int:
    """Return the length of a bar, in proportion to the count; no bar is empty."""
    return max(1, round(BAR_STEPS * count / max(most, 1)))


def _pair_href(source: str, original_source: str) -> str:
    named = {"state": "any", "source": source, "original_source": original_source}
    return f"/?{urlencode(named)}"
