"""The store as the console sees it: what it holds, and what it does while it is not there."""

from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import pytest

from consumer.banks.bank import Bank, BankItem, Banks
from consumer.config.loading import load_config
from consumer.console.intake.store_reading import BATCH_MAX, entry_verdicts
from consumer.console.stored_matches import MatchSearch
from consumer.judge.detector import Detector
from consumer.judge.events import released_event, version_name
from consumer.judge.versions import ArrivalTime
from consumer.model.article import Article
from consumer.model.errors import StoreMismatch
from consumer.model.verdict import Verdict, encode
from consumer.wiring import stores
from consumer.wiring.components import engine, judge_settings, lexicon_of, version_builder
from consumer.wiring.console_store import (
    ComparableStores,
    LazyStore,
    SettingsCheck,
    StoredArticleReader,
    unwritable_path,
)
from storage.errors import StoreRefused, StoreUnavailable
from storage.files import may_write
from storage.interface import Store
from storage.memory import MemoryStore
from storage.records import Release, Version
from tests.builders import TIME_MS, make_version
from tests.cli.test_looking_without_rights import obey_modes
from tests.unit.banks.test_known_texts import edited, written


@pytest.fixture
def store() -> Iterator[Store]:
    """One that is empty."""
    opened = MemoryStore()
    yield opened
    opened.close()


def name_of(version: Version) -> tuple[str, str]:
    """Id and version of an article, as events have them."""
    return version.record.id, version_name(version.record.reference)


def verdict_on(copy: Version, original: Version) -> Verdict:
    """A flag."""
    return Verdict(
        id=copy.record.id,
        version=name_of(copy)[1],
        outcome="duplicate",
        duplicate_of=original.record.id,
        duplicate_of_version=name_of(original)[1],
        distance=1,
        similarity=0.9,
        cluster=original.record.id,
        arrived_at="2025-11-24T16:00:00.000Z",
        decided_at="2025-11-24T16:00:00.000Z",
    )


def test_articles_are_read_in_the_order_that_is_asked_for(store: Store) -> None:
    """Each once, and None for what is not there or could not be; texts only where they are wanted."""
    first, second = make_version("a", b"1", "One."), make_version("b", b"2", "Two.", source="press", title="B")
    store.create([first, second])
    asked: list[int] = []
    read = store.read

    def counted(references: list[bytes]) -> object:
        asked.append(len(references))
        return read(references)

    store.read = counted  # type: ignore[method-assign, assignment]
    articles = StoredArticleReader(lambda: store)
    pairs = [
        name_of(second),
        ("c", "0" * 32),
        name_of(first),
        name_of(second),
        ("b", "no version"),
        ("\ud800", "0" * 32),
    ]
    views = articles.read(pairs)
    assert asked == [3]
    assert [None if view is None else (view.id, view.source, view.body) for view in views] == [
        ("b", "press", "Two."),
        None,
        ("a", "wire", "One."),
        ("b", "press", "Two."),
        None,
        None,
    ]
    assert views[2] is not None
    assert (views[2].arrived_ms, views[2].ended_ms, views[2].keywords) == (TIME_MS, None, ("harbour", "ferry"))
    (bare,) = articles.read([name_of(first)], bodies=False)
    assert bare is not None
    assert (bare.title, bare.body) == ("A ferry in the harbour", None)
    assert articles.read([]) == []


def test_a_version_that_was_replaced_says_when(store: Store) -> None:
    """And that it has a verdict."""
    first, second = make_version("a", b"1"), make_version("a", b"2", time_ms=TIME_MS + 5)
    other = make_version("b", b"1")
    store.create([first, second, other])
    store.settle([(first.record.reference, encode(verdict_on(first, other)))])
    (view,) = StoredArticleReader(lambda: store).read([name_of(first)])
    assert view is not None
    assert view.ended_ms == TIME_MS + 5
    assert view.verdict == verdict_on(first, other)


def test_flags_and_releases_are_found_in_a_store(store: Store) -> None:
    """As they are stored; what is kept, pending or no article is not among them."""
    original = make_version("original", b"0")
    copies = [make_version(f"copy-{number}", b"%d" % number) for number in range(BATCH_MAX + 3)]
    released = make_version("released", b"7")
    store.create([original, released, *copies])
    flags = [(copy.record.reference, encode(verdict_on(copy, original))) for copy in copies[1:]]
    store.settle(flags)
    store.settle([(released.record.reference, encode(verdict_on(released, original)))])
    event = released_event(verdict_on(released, original), by="Ann", reason=None, decided_ms=TIME_MS)
    store.release([Release(released.record.reference, event.encoded, original.record.reference)])
    batches = list(entry_verdicts(store))
    assert [len(batch) for batch in batches] == [BATCH_MAX, 3]
    found = {verdict.id: verdict for batch in batches for verdict in batch}
    assert found == {"released": event.verdict, **{copy.record.id: verdict_on(copy, original) for copy in copies[1:]}}


def test_a_store_that_is_still_to_come_is_waited_for(tmp_path: Path) -> None:
    """Nothing is created by asking; once consumers have made it, it is there."""
    config = load_config(None, {"store": {"url": f"lmdb:{tmp_path / 'store'}"}})
    lazy = LazyStore(config, lambda _: None, None)
    with pytest.raises(StoreUnavailable, match="does not exist yet"):
        lazy()
    assert list(tmp_path.iterdir()) == []
    with stores.opened_store(config) as made:
        made.create([make_version("a", b"1")])
    assert lazy().settings() is None
    assert lazy() is lazy()
    lazy.close()


def test_a_store_that_cannot_be_is_refused(tmp_path: Path) -> None:
    """A file where its folder has to be will never become one."""
    (tmp_path / "file").touch()
    config = load_config(None, {"store": {"url": f"lmdb:{tmp_path / 'file' / 'store'}"}})
    with pytest.raises(StoreRefused):
        LazyStore(config, lambda _: None, None)()


def written_parts(folder: Path) -> list[bool]:
    """Say of each place in a folder whether it may be written, where modes apply to root."""
    obey_modes()
    places = [folder / name for name in ("file", "kept", "new", "folder", "folder/new", "missing/new")]
    assert unwritable_path(lambda: None, folder / "kept") == folder / "kept"
    assert unwritable_path(lambda: folder, folder / "kept") == folder
    assert unwritable_path(lambda: None, folder / "file") is unwritable_path(lambda: None, None) is None
    return [may_write(place) for place in places]


def test_what_may_be_written_is_found_without_writing(tmp_path: Path) -> None:
    """A file that is not there yet may be made where its folder may be written; nothing is said of no folder."""
    for name, mode in (("file", 0o600), ("kept", 0o400)):
        (tmp_path / name).touch(mode)
    (tmp_path / "folder").mkdir(0o500)
    before = sorted(tmp_path.iterdir())
    with get_context("fork").Pool(1) as pool:
        assert pool.apply(written_parts, (tmp_path,)) == [True, False, True, False, False, True]
        tmp_path.chmod(0o500)
        assert pool.apply(written_parts, (tmp_path,)) == [True, False, False, False, False, True]
    tmp_path.chmod(0o700)
    assert sorted(tmp_path.iterdir()) == before


def read_without_rights(folder: Path) -> tuple[Path | None, int]:
    """Open a store where modes apply to root; what may not be written of it, and how many articles were read."""
    obey_modes()
    lazy = LazyStore(load_config(None, {"store": {"url": f"lmdb:{folder}"}}), lambda _: None, None)
    before = lazy.unwritable()
    found = len(list(lazy().scan()))
    with pytest.raises(StoreRefused, match="for reading only"):
        lazy().create([make_version("b", b"2")])
    lazy.close()
    assert before is None
    return lazy.unwritable(), found


def test_a_store_that_may_not_be_written_is_opened_for_reading(tmp_path: Path) -> None:
    """So pages have their texts; what is in the way is said."""
    folder = tmp_path / "store"
    with stores.opened_store(load_config(None, {"store": {"url": f"lmdb:{folder}"}})) as made:
        made.create([make_version("a", b"1")])
    folder.chmod(0o555)
    with get_context("fork").Pool(1) as pool:
        assert pool.apply(read_without_rights, (folder,)) == (folder, 1)
    folder.chmod(0o755)
    (folder / "data.mdb").chmod(0o400)
    with get_context("fork").Pool(1) as pool:
        assert pool.apply(read_without_rights, (folder,)) == (folder / "data.mdb", 1)


def test_stored_articles_are_compared_as_the_store_was_made(tmp_path: Path) -> None:
    """With its settings and its secret, by tools that are built once; an empty store says that it is empty."""
    config = load_config(None, {"store": {"url": f"lmdb:{tmp_path / 'store'}"}})
    with stores.opened_store(config):
        pass
    lazy = LazyStore(config, lambda _: None, None)
    comparable = ComparableStores(config, lazy)
    with pytest.raises(StoreMismatch, match="nothing was ever judged into it"):
        comparable()
    lexicon, texts = lexicon_of(config), [written(1), written(1)]
    bound = stores.bind(lazy(), judge_settings(config, lexicon), config)
    articles = [Article("notice", texts[0]), Article("copy", texts[1])]
    arrivals = [ArrivalTime(TIME_MS, place) for place in range(2)]
    fingerprints = engine(config, bound, lexicon).fingerprint(texts)
    for version in version_builder(bound).versions(articles, arrivals, fingerprints):
        Detector(lazy(), bound.settings, lambda: TIME_MS).judge([version])
    assert comparable() is comparable()
    near = BankItem(bank="spam", item="notice", text=edited(texts[0], 3))
    found = MatchSearch(comparable, lambda: TIME_MS).find_kept(Banks.of([Bank(bank="spam", action="deny"), near]))
    assert [match.stored.record.id for match in found.matches.found] == ["notice"]
    lazy.close()


def test_a_store_with_other_settings_than_the_console_is_refused(tmp_path: Path) -> None:
    """Or with another secret. What nothing names is as in the store, and a store without settings passes."""
    url = {"url": f"lmdb:{tmp_path / 'store'}"}
    made = load_config(None, {"store": url})
    lexicon = lexicon_of(made)
    (tmp_path / "secret").write_text(f"{'ab' * 32}\n")
    (tmp_path / "secret").chmod(0o600)
    others: list[tuple[dict[str, object], str]] = [
        ({"judge": {"max_distance": 2}}, "max_distance is 3 in the store and 2 here"),
        ({"fingerprint": {"scheme": "jieba-tfidf/2"}}, "jieba-tfidf/2"),
        ({"fingerprint": {"secret_file": str(tmp_path / "secret")}}, "the store's secret has the id"),
    ]
    checks = [(SettingsCheck(load_config(None, {"store": url, **other}), lexicon), said) for other, said in others]
    with stores.opened_store(made) as store:
        for check, _ in checks:
            check(store)
        stores.bind(store, judge_settings(made, lexicon), made)
        for check, said in checks:
            for _ in range(2):
                with pytest.raises(StoreMismatch, match=f"not those of the store {url['url']}: .*{said}"):
                    check(store)
        SettingsCheck(made, lexicon)(store)
