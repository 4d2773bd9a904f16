"""The detectors that are compared, each as its publisher sets it, and with the threshold that fits a set best.

- ``SimHash as published``: weighted words, 64 bits, 3 bits apart, without verification (dupwatch's code).
- ``simhash``: the features and the index of the package, 2 bits apart.
- ``datasketch``: ``MinHashLSH`` with 128 permutations and a threshold of 0.7, over shingles of 5 characters.
- ``rensa``: ``RMinHashLSH`` with 128 permutations in 16 bands, over the same shingles.

All of them keep a text that they do not flag, name one earlier text for a flag, and run on one core. Times are
processor time, from the text to the verdict.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from benchmarks.quality.compare import SETTINGS, judge_with_dupwatch
from benchmarks.quality.feed import write_lines
from benchmarks.quality.judging import lexicon, some_secret
from benchmarks.quality.real.truth import Flag, RealSet
from benchmarks.speed.peers import RENSA_BANDS, THRESHOLD, MinHashLsh, RensaLsh, SimhashPackage, installed
from consumer.config.loading import load_config
from consumer.config.profiles import PROFILES
from consumer.judge.detector import Detector
from consumer.judge.versions import ArrivalTime
from consumer.model.article import Article as JudgedArticle
from consumer.wiring.components import engine, judge_settings, version_builder
from consumer.wiring.stores import unstored_binding
from storage.memory import MemoryStore

SIMHASH_AS_PUBLISHED: Final = "SimHash as published"
SIMHASH: Final = "simhash"
DATASKETCH: Final = "datasketch"
RENSA: Final = "rensa"
PROFILES_SHOWN: Final = tuple(name for name in PROFILES if name != "mixed")
"""*mixed* judges a feed without rules as *posts* does."""
_PUBLISHED_DISTANCE: Final = 3
_PACKAGE_DISTANCE: Final = 2
_PAIRS_AT_ONCE: Final = 128
_OWNER_ONLY: Final = 0o600


class Judged(NamedTuple):
    """The flags of a run, and the processor seconds that a text took."""

    flags: list[Flag]
    seconds: float


Judge = Callable[[RealSet, float], Judged]
"""Judges a set with a threshold."""


class NamingIndex(Protocol):
    """A peer with the texts that it did not flag."""

    def named(self, article_id: str, text: str, /) -> str | None:
        """Name an earlier text that this one repeats; if there is none, keep this one."""
        ...


class Peer(NamedTuple):
    """A detector, what its threshold is, the one that its publisher sets, and others to choose the best from."""

    name: str
    unit: str
    published: float
    others: tuple[float, ...]
    judge: Judge


def dupwatch(profile: str, seed: int) -> Callable[[RealSet], Judged]:
    """Return dupwatch with a profile, the defaults of everything else, and the secret of a seed."""

    def judge(real: RealSet) -> Judged:
        return judged_by_dupwatch(real, {"judge": {"profile": profile}}, seed)

    return judge


def judged_by_dupwatch(real: RealSet, overrides: Mapping[str, Mapping[str, Any]], seed: int) -> Judged:
    """Judge a set with these settings and the secret of a seed: a feed as ``dupwatch run`` does, pairs one by one."""
    with tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as folder:
        secret, feed = Path(folder) / "secret", Path(folder) / "feed.jsonl"
        secret.touch(_OWNER_ONLY)
        secret.write_text(some_secret(seed).hex())
        keyed = {**overrides.get("fingerprint", {}), "secret_file": str(secret)}
        settings = {**{name: dict(section) for name, section in overrides.items()}, "fingerprint": keyed}
        if real.in_pairs:
            return _judged_in_pairs(real, settings)
        write_lines(feed, real.articles)
        verdicts, _, seconds = judge_with_dupwatch(feed, settings, time.process_time)
    return Judged([Flag(v.duplicate_of, v.id) for v in verdicts if v.duplicate_of is not None], seconds)


def _judged_in_pairs(real: RealSet, settings: dict[str, Any]) -> Judged:
    """Judge each pair with an empty store, fingerprinted many at a time."""
    config = load_config(None, settings | {"store": {"url": "memory:"}})
    bound = unstored_binding(config, judge_settings(config, lexicon()))
    computing, builder = engine(config, bound, lexicon()), version_builder(bound)
    flags = []
    began = time.process_time()
    for start in range(0, len(real.articles), 2 * _PAIRS_AT_ONCE):
        texts = real.articles[start : start + 2 * _PAIRS_AT_ONCE]
        articles = [JudgedArticle(id=text.id, body=text.body, lang=text.lang) for text in texts]
        prints = computing.fingerprint([text.body for text in texts], [text.lang for text in texts])
        versions = builder.versions(articles, [ArrivalTime(place, place) for place in range(len(texts))], prints)
        for place in range(0, len(versions), 2):
            detector = Detector(MemoryStore(), bound.settings, clock=lambda: 0)
            events = detector.judge(versions[place : place + 2])
            flags += [Flag(e.verdict.duplicate_of, e.verdict.id) for e in events if e.verdict.duplicate_of is not None]
    return Judged(flags, _seconds_a_text(real, began))


def simhash_as_published(real: RealSet, distance: float) -> Judged:
    """Judge with weighted words and 64 bits, without verification; dupwatch's own code with the published settings."""
    published = SETTINGS["dupwatch, SimHash as published"]
    return judged_by_dupwatch(real, published | {"judge": published["judge"] | {"max_distance": int(distance)}}, seed=0)


def _one_by_one(new_index: Callable[[float], NamingIndex]) -> Judge:
    """Return a judge that asks an index of a threshold text by text, a new index for each feed of a set."""

    def judge(real: RealSet, threshold: float) -> Judged:
        new_index(threshold)
        flags: list[Flag] = []
        began = time.process_time()
        for feed in real.feeds():
            index = new_index(threshold)
            for article in feed:
                earlier = index.named(article.id, article.body)
                if earlier is not None:
                    flags.append(Flag(earlier, article.id))
        return Judged(flags, _seconds_a_text(real, began))

    return judge


PEERS: Final = (
    Peer(SIMHASH_AS_PUBLISHED, "bits", _PUBLISHED_DISTANCE, (4, 5, 6, 7), simhash_as_published),
    Peer(SIMHASH, "bits", _PACKAGE_DISTANCE, (3, 5, 7, 9, 11), _one_by_one(lambda bits: SimhashPackage(int(bits)))),
    Peer(DATASKETCH, "threshold", THRESHOLD, (0.3, 0.4, 0.5, 0.6, 0.8, 0.9), _one_by_one(MinHashLsh)),
    Peer(RENSA, "bands", RENSA_BANDS, (8, 32, 64), _one_by_one(lambda bands: RensaLsh(int(bands)))),
)


def peers() -> Iterator[Peer]:
    """Yield the peers whose packages are installed."""
    for peer in PEERS:
        if peer.name == SIMHASH_AS_PUBLISHED or installed(peer.name):
            yield peer


def missing_peers() -> list[str]:
    """Return the packages that are not installed."""
    return [peer.name for peer in PEERS if peer.name != SIMHASH_AS_PUBLISHED and not installed(peer.name)]


def _seconds_a_text(real: RealSet, began: float) -> float:
    return (time.process_time() - began) / max(1, len(real.articles))
