"""Writes an alert when a source sends many copies: from topic dupwatch.duplicates to topic alerts.

It counts flags by source in windows of ten minutes of their ``decided_at``. The alert of a window is written once, when
it has COPIES_MAX copies (10): ``{"source": "blog", "from": "…", "to": "…", "copies": 10}``.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from quixstreams import Application

WINDOW = timedelta(minutes=10)
COPIES_MAX = int(os.environ.get("COPIES_MAX", "10"))


def is_flag(verdict: Mapping[str, object]) -> bool:
    """Return whether an event is a flag; a release comes through the same topic."""
    return verdict["outcome"] == "duplicate"


def source_of(flag: dict[str, Any]) -> str:
    """Return the source of the copy; a message needs a key to be counted."""
    return flag.get("source") or "no source"


def decided_ms(verdict: dict[str, Any], _headers: object, _timestamp_ms: int, _type: object) -> int:
    """Return the time by which a verdict belongs to a window: a replay brings the same."""
    return round(datetime.fromisoformat(verdict["decided_at"]).timestamp() * 1000)


def alert(window: dict[str, Any], source: str, _timestamp_ms: int, _headers: object) -> dict[str, object]:
    """Return the alert of a window of this source."""
    start, end = (datetime.fromtimestamp(window[name] / 1000, UTC).isoformat() for name in ("start", "end"))
    return {"source": source, "from": start, "to": end, "copies": window["value"]}


def main() -> None:
    """Run until SIGTERM."""
    app = Application(
        broker_address=os.environ["KAFKA_ADDRESS"],
        consumer_group="alert-on-copies",
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
    )
    verdicts = app.topic("dupwatch.duplicates", timestamp_extractor=decided_ms)
    alerts = app.topic("alerts", key_serializer="str")
    flags = app.dataframe(verdicts).filter(is_flag)
    by_source = flags.group_by(source_of, "source", key_serializer="str", key_deserializer="str")
    counts = by_source.tumbling_window(WINDOW, grace_ms=WINDOW).count().current()
    full = counts.filter(lambda window: window["value"] == COPIES_MAX)
    full.apply(alert, metadata=True).to_topic(alerts)
    app.run()


if __name__ == "__main__":
    main()
