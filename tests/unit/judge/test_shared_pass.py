"""The pass that all articles of a batch share ranks as a search of each article does."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from consumer.judge import candidates, near_postings
from consumer.judge.candidates import Candidates, Probe, find_candidates, probe_keys
from consumer.judge.near_postings import ArticleRows, rank_together
from consumer.judge.settings import JudgeSettings
from storage.memory import MemoryStore
from storage.postings import PostingRow, postings_of
from storage.records import Version
from tests.builders import TIME_MS
from tests.chaos.near_articles import SETTINGS, edited, new_text, version_of
from tests.examples import drawn


def feed(chance: random.Random, ids: int) -> list[Version]:
    """Return copies, edits and shuffles of a few texts, ties in time, and versions of the same ids."""
    base = new_text(chance)
    texts = [base, edited(base, chance, 0.1), replace(new_text(chance), fingerprint=base.fingerprint), new_text(chance)]
    versions = []
    for number in range(120):
        text = chance.choice([*texts, edited(base, chance, chance.random() / 2), new_text(chance)])
        time_ms = TIME_MS + chance.randrange(-1_200, 1_200) // 50 * 50
        versions.append(version_of(f"article {chance.randrange(ids)}", text, number, time_ms))
    return list({version.record.reference: version for version in versions}.values())


def search(versions: Sequence[Version], settings: JudgeSettings) -> list[Candidates]:
    """Return the candidates of each version among all of them."""
    store = MemoryStore(row_postings_max=1_000)
    store.add([version.record for version in versions])
    probes = [Probe(version.record, probe_keys(version.record, settings)) for version in versions]
    keys = sorted({key for probe in probes for key in probe.keys})
    return find_candidates(probes, dict(zip(keys, store.look_up(keys), strict=True)), settings)


def with_similar_ids(version: Version) -> Version:
    """Return the version with an id whose hash begins with the same word as all others."""
    return version._replace(
        record=msgspec.structs.replace(version.record, reference=bytes(8) + version.record.reference[8:])
    )


@pytest.mark.parametrize("seed", drawn(range(10), 3))
@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("ids", [60, 100_000], ids=["several versions of an id", "one version of each id"])
@pytest.mark.parametrize("similar_ids", [False, True])
def test_a_batch_has_the_candidates_that_each_article_has_alone(
    monkeypatch: pytest.MonkeyPatch, seed: int, ids: int, *, verify: bool, similar_ids: bool
) -> None:
    """In their order, with all that is counted and named besides."""
    chance = random.Random(f"shared pass {seed}")
    settings = replace(SETTINGS, verify=verify, window_ms=1_000, verifications_max=chance.choice([3, 1_024]))
    monkeypatch.setattr(near_postings, "ARTICLES_AT_ONCE", 50)
    monkeypatch.setattr(near_postings, "POSTINGS_NEAR_MAX", chance.choice([20, 1_000]))
    ranked: list[bool] = []

    def noted(articles: Sequence[ArticleRows], by: JudgeSettings) -> list[Any]:
        found = rank_together(articles, by)
        ranked.extend(each is not None for each in found)
        return found

    versions = [with_similar_ids(version) if similar_ids else version for version in feed(chance, ids)]
    monkeypatch.setattr(candidates, "rank_together", noted)
    together = search(versions, settings)
    monkeypatch.setattr(candidates, "rank_together", lambda articles, _: [None] * len(articles))
    assert together == search(versions, settings)
    assert len(ranked) == len(versions)
    assert any(ranked)


def rows_of(new: Version, others: Sequence[Version]) -> ArticleRows:
    """Return the article with rows in which it is stored beside the others."""
    keys = new.record.keys
    stored = [posting for version in (new, *others) for posting in postings_of(version.record)]
    rows = [b"".join(sorted(posting for under, posting in stored if under == key)) for key in keys]
    return ArticleRows(new.record, rows[:4], rows[4:], truncated=False)


def test_what_needs_a_search_of_its_own_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that were cut short or are long, many postings near, several versions of an id, more than may be read."""
    base = new_text(random.Random("alone"))
    new, copy, another = (version_of(name, base, number) for number, name in enumerate(("new", "copy", "another")))
    older = version_of("copy", replace(base, sketch=bytes(256)), 9)
    single = rows_of(new, [copy])

    def ranks(article: ArticleRows, settings: JudgeSettings = SETTINGS) -> bool:
        found = rank_together([single, article, single], settings)
        assert found[0] == found[2] is not None
        return found[1] is not None

    assert ranks(rows_of(new, []))
    assert ranks(rows_of(new, [copy, another]))
    assert not ranks(single._replace(truncated=True))
    assert not ranks(rows_of(new, [copy, older]))
    assert not ranks(rows_of(new, [copy, another]), replace(SETTINGS, verifications_max=1))
    monkeypatch.setattr(near_postings, "POSTINGS_NEAR_MAX", len(new.record.keys))
    assert not ranks(rows_of(new, [copy, another]))
    monkeypatch.setattr(near_postings, "ROWS_BYTES_MAX", sum(map(len, single.by_bands)))
    far = [PostingRow(bytes(56), truncated=False).packed]
    assert ranks(single._replace(by_blocks=single.by_bands))
    assert not ranks(single._replace(by_bands=[*single.by_bands, *far]))
    assert not ranks(single._replace(by_blocks=[*single.by_blocks, *far]))
