"""Turns the events of a content management system into articles: from topic cms.events to topic articles.

An event is ``{"guid": "n1", "state": "published", "headline": "…", "text": "…", "site": "…", "at_ms": 1767225600000}``, and
``"state": "withdrawn"`` retracts the article. A message that is no such event goes on as it came: dupwatch writes it to
its dead letters, where somebody can look at it.
"""

import json
import os
from typing import Any

from quixstreams import Application


def article_of(event: bytes | None) -> bytes | None:
    """Return the article of an event; without an article, the event itself."""
    try:
        return json.dumps(_article(json.loads(event or b"")), ensure_ascii=False).encode()
    except (ValueError, KeyError, TypeError):
        return event


def _article(event: dict[str, Any]) -> dict[str, object]:
    if event["state"] == "withdrawn":
        return {"id": event["guid"], "body": None}
    return {
        "id": event["guid"],
        "title": event.get("headline"),
        "body": event["text"],
        "source": event.get("site"),
        "published_at": event.get("at_ms"),
    }


def id_of(article: bytes | None) -> bytes | None:
    """Return the key of an article: its id, so that all its versions are in one partition."""
    try:
        return str(json.loads(article or b"")["id"]).encode()
    except (ValueError, KeyError, TypeError):
        return None


def main() -> None:
    """Run until SIGTERM."""
    app = Application(
        broker_address=os.environ["KAFKA_ADDRESS"],
        consumer_group="articles-from-cms",
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
    )
    events = app.topic("cms.events", value_deserializer="bytes")
    articles = app.topic("articles", value_serializer="bytes")
    app.dataframe(events).apply(article_of).to_topic(articles, key=id_of)
    app.run()


if __name__ == "__main__":
    main()
