"""Generates ``docs/metrics.md``: ``python -m consumer.telemetry.metrics_page > docs/metrics.md``."""

import sys
from collections.abc import Iterator
from typing import Final

from consumer.judge.known_originals import FLOOD_COPIES_MIN, KNOWN_ORIGINALS_MAX
from consumer.telemetry.metrics import GROUPS, SOURCES_MAX
from consumer.telemetry.metrics.measure import Label, Measure
from consumer.telemetry.source_names import CHARS_MAX, NONE, OTHER

_INTRO: Final = f"""# Metrics

A run over topics serves these metrics to Prometheus at `/metrics`, on the address in `http.listen`. This page is
generated from the code, and a test fails when it is out of date:
`python -m consumer.telemetry.metrics_page > docs/metrics.md`.

Every series whose label values are listed here exists from the start, at 0, so that `rate` sees its first count. A
histogram `NAME` has the samples `NAME_bucket{{le="…"}}`, `NAME_sum` and `NAME_count`; the tables show its lowest and
highest bound. `/metrics` also has `process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_open_fds` and
other metrics of the main process, and for some counters and histograms a `…_created`: when counting began.

- **Stages.** `poll`, `decode`, `fingerprint`, `look_up`, `settle`, `emit` and `commit` are observed once per batch.
  `look_up` finds near articles: rows, records, comparisons. `settle` is the rest of judging, including all writes.
  `back_pressure` is the Kafka client waiting because the records it has fetched are not judged yet. Time spent waiting
  for an unreachable store is in none of them.
- **Workers.** With `workers`, other processes compute the fingerprints. Their time comes back with each result and is
  counted here; `rate(dupwatch_stage_seconds_sum{{stage="fingerprint"}}[5m]) / dupwatch_workers` is how busy one is.
  `poll` and `decode` then run in parallel with judging.
- **Sources.** The first {SOURCES_MAX} source names (`http.sources_max`) get series of their own, including those in
  `[rules]`. All later ones are counted as `{OTHER}`, and articles without a source as `{NONE}`. Names are cut to
  {CHARS_MAX} characters, without invisible characters.
- **Floods.** An original starts a flood with its {FLOOD_COPIES_MIN}th copy. Each process remembers
  {KNOWN_ORIGINALS_MAX:,} originals and forgets the ones without a copy for the longest time.
  `rate(dupwatch_flood_copies_total[5m])` is the number of such copies per second.
- **Drift.** When the feed changes, or how its texts are extracted from their pages, the distributions of keywords and
  of similarities change: compare today's with last week's (`offset 1w`).
- **A hanging loop**:
  `dupwatch_busy == 1 and on(job, instance) time() - dupwatch_loop_heartbeat_timestamp_seconds{{thread="main"}} > 60`.
  A run that waits for its store or for a broker still turns.
- Timestamps are 0 before the first event.
"""
_HEAD: Final = "| name | type | labels | unit | |\n|---|---|---|---|---|\n"


def page() -> str:
    """Return the page as Markdown."""
    return "".join(_parts())


def _parts() -> Iterator[str]:
    yield _INTRO
    for title, measures in GROUPS:
        yield f"\n## {title}\n\n{_HEAD}"
        yield from map(_row, measures)


def _row(measure: Measure) -> str:
    labels = "; ".join(map(_label, measure.labels))
    return f"| `{measure.name}` | {_type(measure)} | {labels} | {measure.unit} | {measure.help} |\n"


def _type(measure: Measure) -> str:
    if not measure.bounds:
        return measure.kind
    return f"{measure.kind}, {measure.bounds[0]:.15g} to {measure.bounds[-1]:.15g}"


def _label(label: Label) -> str:
    values = ", ".join(f"`{value}`" for value in label.values)
    return f"{label.name}: {'; '.join(filter(None, (values, label.others)))}"


if __name__ == "__main__":
    sys.stdout.write(page())
