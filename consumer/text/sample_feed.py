"""The sample feed that is installed with dupwatch."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

import consumer
from consumer.model.errors import ConfigError

_WIDE: Final = re.compile("[\uff21-\uff5a]")
"""Latin letters as wide as Chinese characters; one kind of edit in the sample feed writes English with them."""


def sample_feed() -> Path:
    """Return the path of the sample feed, in the package or a checkout. Raises ``ConfigError`` if it is missing."""
    here = Path(consumer.__file__ or "").parent
    for path in (here / "sample" / "feed.jsonl", here.parent / "sample" / "feed.jsonl"):
        if path.is_file():
            return path
    raise ConfigError("the sample feed is not installed; name a file of articles: --feed articles.jsonl")


def sample_texts(path: Path, languages: Sequence[str]) -> list[str]:
    """Return the bodies of the sample feed's articles in these languages, without those that contain wide letters."""
    articles = map(msgspec.json.decode, path.read_bytes().splitlines())
    bodies = [article["body"] for article in articles if article.get("body") and article.get("lang") in languages]
    return [body for body in bodies if not _WIDE.search(body)]
