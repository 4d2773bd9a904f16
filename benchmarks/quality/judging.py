"""Judges texts in memory with scheme 3 and its defaults, keyed with a secret: without files, ids or times."""

import random
from collections.abc import Sequence
from functools import cache
from typing import Final

from consumer.config.judging import configured_settings
from consumer.config.loading import load_config
from consumer.fingerprint import PUBLISHED_SECRET, Lexicon, Scheme, Secret
from consumer.fingerprint.secret import SECRET_BYTES
from consumer.judge.binding import Binding
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model.article import Article
from consumer.model.verdict import Verdict, decode_verdict
from consumer.workers.engines import chosen_engine, new_engine
from consumer.workers.word_files import load_lexicon
from storage.memory import MemoryStore
from storage.records import Version

KEYED: Final = Scheme(name="jieba-tfidf/3")
BATCH: Final = 128

lexicon = cache(load_lexicon)


def some_secret(seed: int) -> Secret:
    """Return the secret that a seed makes: another run measures with the same ones."""
    return Secret(random.Random(seed).randbytes(SECRET_BYTES))


@cache
def default_settings() -> JudgeSettings:
    """Return the defaults of the scheme."""
    config = load_config(None, {"fingerprint": {"scheme": KEYED.name}})
    return configured_settings(config, KEYED, KEYED.digest(lexicon()))


def versions_of(texts: Sequence[str], secret: Secret = PUBLISHED_SECRET) -> list[Version]:
    """Return a version of each text, in order of arrival; its id is its place."""
    words: Lexicon = lexicon()
    settings = default_settings()
    engine = new_engine(
        chosen_engine("auto", KEYED, words).name, KEYED, words, sketched=True, parts=False, secret=secret
    )
    builder = VersionBuilder(Binding(settings, secret).scheme, settings.plan, settings.lane1)
    articles = [Article(id=str(place), body=text) for place, text in enumerate(texts)]
    arrivals = [ArrivalTime(place, place) for place in range(len(texts))]
    return builder.versions(articles, arrivals, engine.fingerprint(list(texts)))


def judged(texts: Sequence[str], secret: Secret = PUBLISHED_SECRET) -> list[Verdict]:
    """Return the verdicts on texts in their order."""
    detector = Detector(MemoryStore(), default_settings(), clock=lambda: 0)
    versions = versions_of(texts, secret)
    batches = (versions[start : start + BATCH] for start in range(0, len(versions), BATCH))
    return [decode_verdict(event.encoded) for batch in batches for event in detector.judge(batch)]
