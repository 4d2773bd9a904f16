"""The index of words: what comes into it, who brings it there, and what leaves it."""

from dataclasses import dataclass, field

import pytest
from sqlalchemy import delete, update

from consumer.console.intake.indexing import Indexer, IndexerDependencies, clear_index
from consumer.console.intake.intake import ConsoleStopped
from consumer.reviews import queue
from consumer.reviews.database import Database, open_database
from consumer.reviews.decisions import decide, undo
from consumer.reviews.queue import Filters
from consumer.reviews.tables import SEARCH_PAGES, SEARCH_PARTS, SEARCH_WAITING
from consumer.reviews.word_index import parts, waiting
from consumer.reviews.word_index.results import QueueSearch
from storage.errors import StoreUnavailable
from tests.unit.console.newsroom import Newsroom, article
from tests.unit.console.serving import Clock, KnownArticles
from tests.unit.reviews.conftest import address, database, second, with_tables  # noqa: F401  # fixtures
from tests.unit.reviews.made import Address, add_person, counted_writes, number_of, read, word_cutter, write

ORIGINAL = article("original", "", "")


@dataclass
class Index:
    """The index of a database, as one console keeps it."""

    database: Database
    articles: KnownArticles = field(default_factory=KnownArticles)
    clock: Clock = field(default_factory=Clock)
    stopped: bool = False

    def __post_init__(self) -> None:
        self.room = Newsroom(self.database, self.articles)
        self._indexing = self.another()

    def another(self) -> Indexer:
        """What another console keeps it with."""
        return Indexer(IndexerDependencies(self.database, self.articles, word_cutter(), self.clock, self._proceed))

    def _proceed(self) -> None:
        if self.stopped:
            raise ConsoleStopped

    def flag(self, article_id: str, text: str, *, stored: bool = True) -> int:
        """Take in a flag; return its number."""
        return self.room.flag(article(article_id, "", text), ORIGINAL, stored=stored).flag_id

    def work(self) -> int:
        """Do what is to be done; return in how many turns."""
        turns = 1
        while self._indexing.work():
            turns += 1
        return turns

    def found(self, text: str) -> list[str]:
        """The open flags that a search finds, by article."""
        search = QueueSearch(text, word_cutter().terms_of(text))
        page = read(self.database, queue.page, Filters(search=search), "oldest", 10_000)
        return sorted(row.article_id for row in page.rows)


@pytest.fixture
def index(database: Database) -> Index:  # noqa: F811  # a fixture
    """An empty index."""
    return Index(database)


def part_count(index: Index) -> int:
    """How many parts searches read."""
    return len(read(index.database, parts.parts))


def test_a_flag_is_found_by_its_words_while_it_is_undecided(index: Index) -> None:
    """Not before it is indexed, and not once it is decided; skipped it still is, and undone it is again."""
    ann = add_person(index.database, "Ann").person_id
    ids = [index.flag(f"copy-{n}", f"The harbour reopened. Nummer{n} 港口重新开放") for n in range(3)]
    assert index.found("harbour") == []
    assert index.found("copy-1") == ["copy-1"]
    assert read(index.database, waiting.waiting_count) == 3
    index.work()
    assert read(index.database, waiting.waiting_count) == 0
    assert index.found("harbour 港口") == ["copy-0", "copy-1", "copy-2"]
    assert index.found("nummer1 harbour") == ["copy-1"]
    assert index.found("nummer1 nummer2") == []
    assert index.found("") == []
    made = write(index.database, decide, [ids[0], ids[1]], ann, "wrong", "", index.clock(), 10_000)
    write(index.database, decide, [ids[2]], ann, "skip", "", index.clock(), 10_000)
    assert index.found("harbour") == []
    search = QueueSearch("harbour", word_cutter().terms_of("harbour"))
    for state, number in (("skipped", 1), (None, 1), ("wrong", 0)):
        filters = Filters(state=state, search=search)  # type: ignore[arg-type]
        assert len(read(index.database, queue.page, filters, "newest", 9).rows) == number
    assert write(index.database, undo, [made.review_ids[1]], ann, index.clock())
    index.work()
    assert index.found("harbour") == ["copy-1"]


def test_a_decided_flag_leaves_and_a_reopened_one_comes_back(index: Index) -> None:
    """What left is gone from the database within an hour, and not only from what is shown."""
    ann = add_person(index.database, "Ann").person_id
    ids = [index.flag(f"copy-{n}", f"word nummer{n}") for n in range(4)]
    index.work()
    assert number_of(index.database, SEARCH_PAGES) > 0
    made = write(index.database, decide, ids[:3], ann, "wrong", "", index.clock(), 86_400_000)
    index.clock.pass_s(3_601)
    index.work()
    assert [(part.flags, part.places) for part in read(index.database, parts.parts)] == [(1, 1)]
    # That one left the store.
    index.articles.views = {key: view for key, view in index.articles.views.items() if key[0] != "copy-3"}
    assert index.found("word") == ["copy-3"]
    index.clock.pass_s(3_601)
    index.work()
    assert index.found("word") == []
    index.clock.pass_s(61)
    index.work()
    assert [number_of(index.database, table) for table in (SEARCH_PARTS, SEARCH_PAGES)] == [0, 0]
    assert write(index.database, undo, [made.review_ids[0]], ann, index.clock())
    index.work()
    assert index.found("word") == ["copy-0"]


def test_small_parts_become_a_large_one(index: Index) -> None:
    """Nothing is lost or found twice, whoever searches while it happens."""
    ann = add_person(index.database, "Ann").person_id
    ids = []
    for n in range(parts.MERGE_PARTS_MIN):
        ids.append(index.flag(f"copy-{n}", f"word nummer{n} " + " ".join(f"w{n * i}" for i in range(30))))
        index.work()
        assert len(index.found("word")) == n + 1
    assert part_count(index) == 1
    assert number_of(index.database, SEARCH_PARTS) == parts.MERGE_PARTS_MIN + 1
    for n in range(parts.MERGE_PARTS_MIN):
        assert index.found(f"nummer{n}") == [f"copy-{n}"]
    index.clock.pass_s(61)
    index.work()
    assert number_of(index.database, SEARCH_PARTS) == 1
    # Reopened, so that it is in two parts. What is decided is in none that is made from now on.
    made = write(index.database, decide, ids[:1], ann, "right", "", index.clock(), 10_000)
    write(index.database, undo, [made.review_ids[0]], ann, index.clock())
    index.work()
    assert part_count(index) == 2
    assert index.found("nummer0 word") == ["copy-0"]
    write(index.database, decide, ids[1:2], ann, "right", "", index.clock(), 10_000)
    merge = read(index.database, parts.begin_merge, [part.part_id for part in read(index.database, parts.parts)])
    assert merge.flag_ids.tolist() == [ids[0], *ids[2:]]


def test_merging_by_ranges_of_words_is_merging(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that do not fit into memory together are merged one after the other."""
    monkeypatch.setattr(parts, "PAGES_AT_ONCE", 2)
    monkeypatch.setattr("consumer.reviews.word_index.pages.PAGE_ENTRIES", 10)
    texts = {f"copy-{n}": [f"w{(n * 7 + i * i) % 90}" for i in range(30)] for n in range(parts.MERGE_PARTS_MIN)}
    for name, words in texts.items():
        index.flag(name, " ".join(words))
        index.work()
    assert part_count(index) == 1
    for word in [f"w{n}" for n in range(0, 90, 9)]:
        assert index.found(word) == [name for name, words in texts.items() if word in words]


def test_flags_of_another_version_are_found_and_indexed(address: Address) -> None:  # noqa: F811  # a fixture
    """A database of the release before has flags and no index. Opening it reads none of them."""
    opened = open_database(*address)
    index = Index(opened)
    for n in range(3):
        index.flag(f"copy-{n}", "word")
    with opened.write_transaction() as connection:
        # So the migration leaves them.
        for table in (SEARCH_PAGES, SEARCH_PARTS, SEARCH_WAITING):
            connection.execute(delete(table))
    opened.close()
    again = open_database(*address)
    assert number_of(again, SEARCH_WAITING) == 0
    kept = Index(again, index.articles)
    kept.work()
    assert kept.found("word") == ["copy-0", "copy-1", "copy-2"]
    # The next start has nothing to do.
    assert Index(again, index.articles).work() == 1
    assert part_count(kept) == 1
    again.close()


def test_two_consoles_share_the_work(index: Index, second: Database) -> None:  # noqa: F811  # a fixture
    """Each claims other flags; what one leaves undone the other does once the lease is over."""
    for n in range(3):
        index.flag(f"copy-{n}", "word")
    claimed = write(second, waiting.claim, index.clock())
    assert len(claimed.flags) == 3
    index.work()
    assert index.found("word") == []
    index.clock.pass_s(waiting.LEASE_MS / 1_000 + 1)
    index.work()
    assert index.found("word") == ["copy-0", "copy-1", "copy-2"]
    # The first one is late: nothing waits for it, and nothing is found twice.
    write(second, parts.add_part, {flag.flag_id: {77} for flag in claimed.flags}, index.clock())
    write(second, waiting.end, claimed, [], index.clock())
    assert index.found("word") == ["copy-0", "copy-1", "copy-2"]
    (part, other) = read(second, parts.parts)
    until = write(second, parts.claim_parts, [part.part_id], index.clock())
    assert until is not None
    assert write(index.database, parts.claim_parts, [part.part_id, other.part_id], index.clock()) is None
    merging = read(second, parts.begin_merge, [part.part_id])
    write(index.database, lambda c: c.execute(update(SEARCH_PARTS).values(claimed_ms=until + 1)))
    assert not write(second, parts.replace_parts, merging, [], until, index.clock())


def test_a_flag_that_is_reopened_while_it_is_indexed_waits_again(index: Index) -> None:
    """Who indexes it may have seen it decided."""
    ann = add_person(index.database, "Ann").person_id
    flag_id = index.flag("copy", "word")
    made = write(index.database, decide, [flag_id], ann, "right", "", index.clock(), 10_000)
    claimed = write(index.database, waiting.claim, index.clock())
    assert (claimed.flags, list(claimed.flag_ids)) == ([], [flag_id])
    write(index.database, undo, [made.review_ids[0]], ann, index.clock())
    write(index.database, waiting.end, claimed, [], index.clock())
    index.work()
    assert index.found("word") == ["copy"]


def test_a_store_that_is_away_costs_nothing_but_time(index: Index) -> None:
    """Flags wait, are found by id, and are indexed as soon as it is back; so do those of a console that ends."""
    index.flag("copy", "word")
    index.articles.error = StoreUnavailable("no route")
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            index.work()
    index.articles.error = None
    index.stopped = True
    with pytest.raises(ConsoleStopped):
        index.work()
    assert read(index.database, waiting.waiting_count) == 1
    assert index.found("cop") == ["copy"]
    index.stopped = False
    index.work()
    assert index.found("word") == ["copy"]


def test_texts_that_the_store_does_not_have_are_not_tried_for_ever(index: Index) -> None:
    """Some times, an hour apart: it may have been another store."""
    index.flag("gone", "word", stored=False)
    index.flag("late", "word", stored=False)
    for _ in range(waiting.TRIES_MAX - 1):
        index.work()
        index.work()
        assert read(index.database, waiting.waiting_count) == 2
        index.clock.pass_s(3_601)
    index.room.hold(article("late", "", "word"))
    index.work()
    assert read(index.database, waiting.waiting_count) == 0
    assert index.found("word") == ["late"]
    assert index.found("gone") == ["gone"]


def test_an_index_that_is_switched_off_is_deleted(index: Index) -> None:
    """And made again by the next console that wants it."""
    index.flag("copy", "word")
    index.work()
    assert not clear_index(index.database)
    assert [number_of(index.database, table) for table in (SEARCH_PARTS, SEARCH_PAGES, SEARCH_WAITING)] == [0, 0, 0]
    index.another().work()
    assert index.found("word") == ["copy"]


def test_an_index_with_nothing_to_do_writes_nothing(index: Index) -> None:
    """Neither where there is nothing, nor once everything is indexed; nor where there is no index to delete."""
    clear_index(index.database)
    with counted_writes(index.database) as writes:
        clear_index(index.database)
    assert writes == []
    index.work()
    index.flag("copy", "word")
    with counted_writes(index.database) as writes:
        index.work()
        assert writes
        writes.clear()
        for _ in range(3):
            index.work()
        assert writes == []
