"""``docs/metrics.md``, made of the metrics: ``python -m consumer.telemetry.metrics_page > docs/metrics.md``."""

import sys
from collections.abc import Iterator
from typing import Final

from consumer.judge.known_originals import FLOOD_COPIES_MIN, KNOWN_ORIGINALS_MAX
from consumer.telemetry.measures import GROUPS, Label, Measure
from consumer.telemetry.metrics import SOURCES_MAX
from consumer.telemetry.source_names import CHARS_MAX, NONE, OTHER

_INTRO: Final = f"""# Metrics

What `/metrics` tells Prometheus while topics are read; it is at `http.listen`. This page is made of the code, and a
test fails where it is not: `python -m consumer.telemetry.metrics_page > docs/metrics.md`.

Every series of a label with a fixed list of values is there from the start, at 0, so that `rate` sees its first count.
A histogram `NAME` has the samples `NAME_bucket{{le="…"}}`, `NAME_sum` and `NAME_count`; the tables have its lowest and
its highest bound. Besides there are `process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_open_fds`
and others of the main process, and for some of the counters and histograms a `…_created`: since when they count.

- **Stages.** `poll`, `decode`, `fingerprint`, `look_up`, `settle`, `emit` and `commit` are observed once a batch.
  `look_up` is the finding of what is near: rows, records, comparisons. `settle` is all the rest of judging, with
  everything that it writes. `back_pressure` is the Kafka client's: it takes nothing more in, since what it has taken in
  is not judged yet. What was waited for a store that was away is in none of them.
- **Workers.** With `workers` other processes make the fingerprints. Their seconds come back with each result and count
  here: `rate(dupwatch_stage_seconds_sum{{stage="fingerprint"}}[5m]) / dupwatch_workers` is how busy one is. `poll` and
  `decode` then run beside the judge too.
- **Sources.** The first names that come, {SOURCES_MAX} of them (`http.sources_max`), have series of their own, those
  with `[rules]` among them; all that come later are `{OTHER}`, and articles that name no source are `{NONE}`. A name is
  cut to {CHARS_MAX} characters, and what cannot be seen is left out of it.
- **Floods.** From its {FLOOD_COPIES_MIN}th copy on an original makes a flood, as far as one process remembers:
  {KNOWN_ORIGINALS_MAX:,} originals, those longest without a copy forgotten first.
  `rate(dupwatch_flood_copies_total[5m])` is how many such copies come in a second.
- **Drift.** When the feed, or how its texts are cut out of their pages, changes, the distributions of keywords and of
  similarities do: compare today's with those of a week ago (`offset 1w`).
- **A loop that hangs**:
  `dupwatch_busy == 1 and on(job, instance) time() - dupwatch_loop_heartbeat_timestamp_seconds{{thread="main"}} > 60`.
  A run that waits for its store or for a broker turns all the same.
- Times since 1970 are 0 where there was none yet.
"""
_HEAD: Final = "| name | type | labels | unit | |\n|---|---|---|---|---|\n"


def page() -> str:
    """The whole page."""
    return "".join(_parts())


def _parts() -> Iterator[str]:
    yield _INTRO
    for title, measures in GROUPS.items():
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
