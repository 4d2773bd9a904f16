"""Stories: which are large, which spread, one with all its copies; and which source copies which.

Two pictures are drawn: copies over time as bars, and a table of which source copies which.
"""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from consumer.console.context import ArticleView
from consumer.console.faults import N_, PageError, not_found
from consumer.console.pages.queue_filters import one_of
from consumer.console.pages.queue_pages import Tab
from consumer.console.pages.said import said_of_many
from consumer.console.pages.stored_articles import Found, articles_named, story_rows
from consumer.console.visit import Asked
from consumer.reviews import floods, queue, stories
from consumer.reviews.database import Connection
from consumer.reviews.floods import Flood
from consumer.reviews.paging import BadCursor
from consumer.reviews.stories import Bucket, Story, root_versions
from storage.clock import MS_PER_S

BAR_STEPS: Final = 20
"""Lengths that a bar beside a figure can have; each is a rule in ``base.css``, since the policy allows no styles."""
WIDTH: Final = 600
HEIGHT: Final = 96
BARS: Final = 60
"""Bars of a timeline."""
_GAP: Final = 1
_WIDTH_MAX: Final = 24
_HEIGHT_MIN: Final = 3
"""One copy beside a thousand is still to be seen."""
NAMES_MAX: Final = 10
"""Rows and columns; others are in the list of pairs."""
HEAT_STEPS: Final = 4
"""How many shades a cell may have besides none."""
STORIES_MAX: Final = 20
FLOODS_MAX: Final = 10
PAIRS_MAX: Final = 200
"""Pairs of sources that are counted for a page."""
PAIRS_SHOWN: Final = 50
_SPAN_FIELD: Final = "within"
_SPANS_S: Final[Mapping[str, int]] = {"1h": 3_600, "24h": 86_400, "7d": 604_800}
_DEFAULT_SPAN: Final = "24h"


class Bar(NamedTuple):
    """A bar of the picture, for the copies that arrived from ``from_ms`` on."""

    x: int
    y: int
    width: int
    height: int
    from_ms: int
    copies: int


class Timeline(NamedTuple):
    """The bars that are not empty, and what the picture has at its ends. ``most`` is the count of the highest bar."""

    bars: tuple[Bar, ...]
    from_ms: int
    to_ms: int
    bucket_s: float
    most: int
    width: int = WIDTH
    height: int = HEIGHT


def timeline(buckets: Sequence[Bucket]) -> Timeline:
    """Return the bars of spans of equal length that follow each other."""
    if not buckets:
        return Timeline((), 0, 0, 0, 0)
    most = max(bucket.copies for bucket in buckets)
    slot = WIDTH // len(buckets)
    bars = [_bar(place * slot, slot, bucket, most) for place, bucket in enumerate(buckets) if bucket.copies]
    bucket_s = (buckets[0].to_ms - buckets[0].from_ms) / MS_PER_S
    return Timeline(tuple(bars), buckets[0].from_ms, buckets[-1].to_ms, bucket_s, most)


def _bar(x: int, slot: int, bucket: Bucket, most: int) -> Bar:
    height = max(_HEIGHT_MIN, HEIGHT * bucket.copies // most)
    return Bar(x, HEIGHT - height, min(max(slot - _GAP, 1), _WIDTH_MAX), height, bucket.from_ms, bucket.copies)


class PairLine(NamedTuple):
    """A pair of sources in a list."""

    source: str
    original_source: str
    copies: int
    step: int
    href: str

    @property
    def is_within(self) -> bool:
        """Whether a source copied itself."""
        return self.source == self.original_source


class Cell(NamedTuple):
    """Copies of one pair; ``step`` is its shade."""

    copies: int
    step: int
    href: str


class Row(NamedTuple):
    """A source that copied, and its cells in the order of the columns."""

    name: str
    cells: tuple[Cell, ...]


class Matrix(NamedTuple):
    """The table. ``is_cut``: there are more sources than it has."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    is_cut: bool


def source_matrix(pairs: Sequence[PairLine], href: Callable[[str, str], str]) -> Matrix:
    """Return the table of the sources with the most copies, most first."""
    rows, columns = (
        _most([(pair.source, pair.copies) for pair in pairs]),
        _most([(pair.original_source, pair.copies) for pair in pairs]),
    )
    copies = {(pair.source, pair.original_source): pair.copies for pair in pairs}
    most = max(copies.values(), default=1)

    def cell(row: str, column: str) -> Cell:
        count = copies.get((row, column), 0)
        return Cell(count, -(-count * HEAT_STEPS // most), href(row, column))

    return Matrix(
        tuple(columns),
        tuple(Row(row, tuple(cell(row, column) for column in columns)) for row in rows),
        is_cut=any(pair.source not in rows or pair.original_source not in columns for pair in pairs),
    )


def _most(counted: Sequence[tuple[str, int]]) -> list[str]:
    total: dict[str, int] = {}
    for name, copies in counted:
        total[name] = total.get(name, 0) + copies
    return sorted(total, key=lambda name: (-total[name], name))[:NAMES_MAX]


class StoryLine(NamedTuple):
    """A story in a list; ``since`` is how many copies came within the span, ``step`` the length of its bar."""

    story: Story
    root: ArticleView | None
    since: int | None
    step: int


class FloodLine(NamedTuple):
    """A flood in a list."""

    flood: Flood
    root: ArticleView | None


class _Span(NamedTuple):
    """The span of time that a page looks back on: since when, its name, and the links to others."""

    since_ms: int
    name: str
    tabs: tuple[Tab, ...]


def show_stories(asked: Asked) -> Response:
    """Show the stories that are large, and those that spread."""
    span = _span_in(asked)
    with asked.desk.database.reading() as connection:
        fastest = stories.fastest(connection, span.since_ms, STORIES_MAX)
        largest = stories.largest(connection, 0, STORIES_MAX)
        begun = [flood for flood in floods.floods(connection, FLOODS_MAX) if flood.last_ms >= span.since_ms]
        listed = [*(each.story for each in fastest), *largest]
        ids = [*(each.root_id for each in listed), *(each.root_id for each in begun)]
        versions = root_versions(connection, ids)
    found = articles_named(asked.desk, versions.items())
    most_since = max((each.since for each in fastest), default=1)
    most = max((each.copies for each in largest), default=1)

    def root(root_id: str) -> ArticleView | None:
        return _root(found, versions, root_id)

    return asked.page(
        "stories.html",
        tabs=span.tabs,
        since_span=span.name,
        floods=[FloodLine(flood, root(flood.root_id)) for flood in begun],
        fastest=[
            StoryLine(each.story, root(each.story.root_id), each.since, _step(each.since, most_since))
            for each in fastest
        ],
        largest=[StoryLine(each, root(each.root_id), None, _step(each.copies, most)) for each in largest],
        store_is_away=found.is_away,
    )


def show_story(asked: Asked) -> Response:
    """Show an original and its copies over time."""
    desk, place = asked.desk, asked.query.text("after") or None
    with desk.database.reading() as connection:
        story = the_story(asked, connection)
        page = _copies(asked, connection, story.story_id, place)
        drawn = timeline(stories.timeline(connection, story.story_id, BARS))
        versions = root_versions(connection, [story.root_id])
        said = said_of_many(asked, connection, story.story_id, f"/stories/{story.story_id}/undo")
    copies = [(flag.article_id, flag.version) for flag in page.rows]
    found = articles_named(desk, [*versions.items(), *copies])
    path = f"/stories/{story.story_id}"
    return asked.page(
        "story.html",
        story=story,
        root=_root(found, versions, story.root_id),
        rows=story_rows(page.rows, found),
        timeline=drawn,
        timeline_said=_said_of(asked, drawn),
        before_href=None if page.before is None else f"{path}?{urlencode({'after': page.before})}",
        after_href=None if page.after is None else f"{path}?{urlencode({'after': page.after})}",
        flag_query=urlencode({"order": "oldest", "story_id": story.story_id}),
        store_is_away=found.is_away,
        decision=said,
    )


def show_sources(asked: Asked) -> Response:
    """Show which source copies which."""
    span = _span_in(asked)
    with asked.desk.database.reading() as connection:
        counted = stories.pairs_of_sources(connection, span.since_ms, PAIRS_MAX)
    # What was not read from the store yet is not known to be of any source.
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
    return asked.page(
        "sources.html",
        tabs=span.tabs,
        since_span=span.name,
        pairs=lines[:PAIRS_SHOWN],
        matrix=source_matrix(lines, _pair_href),
    )


def the_story(asked: Asked, connection: Connection) -> Story:
    """Return the story that the path names. Raises ``PageError`` where there is none."""
    story = stories.story(connection, asked.places["story_id"])
    if story is None:
        raise not_found()
    return story


def _span_in(asked: Asked) -> _Span:
    """Return the span that a query asks for. Raises ``PageError``."""
    wanted = one_of(asked.query, _SPAN_FIELD, tuple(_SPANS_S)) or _DEFAULT_SPAN
    names = {code: asked.language.span(seconds) for code, seconds in _SPANS_S.items()}
    tabs = tuple(
        Tab(
            names[code],
            asked.path if code == _DEFAULT_SPAN else f"{asked.path}?{_SPAN_FIELD}={code}",
            None,
            code == wanted,
        )
        for code in _SPANS_S
    )
    return _Span(asked.desk.now_ms() - _SPANS_S[wanted] * MS_PER_S, names[wanted], tabs)


def _copies(asked: Asked, connection: Connection, story_id: int, place: str | None) -> queue.Page:
    try:
        return stories.copies(connection, story_id, place, asked.desk.section.page_rows)
    except BadCursor as error:
        message = N_("This page of copies cannot be found. Begin at the first page.")
        raise PageError(HTTPStatus.BAD_REQUEST, message) from error


def _root(found: Found, versions: dict[str, str], root_id: str) -> ArticleView | None:
    version = versions.get(root_id)
    return None if version is None else found.articles.get((root_id, version))


def _said_of(asked: Asked, drawn: Timeline) -> str:
    """Return what the picture of a timeline shows, in words."""
    if not drawn.bars:
        return ""
    top = max(drawn.bars, key=lambda bar: bar.copies)
    return asked.language.ngettext(
        "Copies over time. Most came from %(time)s on: %(num)s within %(span)s.",
        "Copies over time. Most came from %(time)s on: %(num)s within %(span)s.",
        top.copies,
        time=asked.language.moment(top.from_ms),
        span=asked.language.span(drawn.bucket_s),
    )


def _step(count: int, most: int) -> int:
    return max(1, round(BAR_STEPS * count / max(most, 1)))


def _pair_href(source: str, original_source: str) -> str:
    named = {"state": "any", "source": source, "original_source": original_source}
    return f"/?{urlencode(named)}"
