"""``dupwatch query``: what an article would repeat, without storing it."""

from pathlib import Path
from typing import Annotated

import typer

from consumer.app import (
    STREAM,
    fingerprinter,
    lexicon_of,
    opened_store,
    record_decoder,
    stored_settings,
    version_builder,
)
from consumer.cli.options import ConfigOption, SetOption, StoreOption, configured
from consumer.cli.results import results, write_json
from consumer.detector import Detector
from consumer.errors import BadRecord
from consumer.events import rounded, version_name
from consumer.ports import Position
from consumer.sources.file import FileSource, ReadLimits
from consumer.versions import Came
from storage.clock import now_ms


def query(
    source: Annotated[str, typer.Argument(metavar="FILE|-", help="Articles as JSON lines; - is standard input.")],
    store: StoreOption = None,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Tell what each article would duplicate if it came now. Stores nothing; writes one line of JSON for each."""
    chosen = configured(config, settings, store__url=store)
    lexicon = lexicon_of(chosen)
    path = None if source == STREAM else Path(source)
    limits = ReadLimits(record_bytes_max=chosen.source.record_bytes_max)
    decode = record_decoder(chosen)
    with opened_store(chosen, readonly=True) as opened:
        judged_by = stored_settings(opened, lexicon)
        detector = Detector(opened, judged_by, now_ms)
        engine = fingerprinter(judged_by, lexicon)
        builder = version_builder(judged_by)
        for batch in FileSource(path, limits, Position()).batches():
            for record in batch.records:
                try:
                    article = decode(record)
                    if article.body is None:
                        _write({"line": record.line, "error": "retraction", "detail": "a retraction repeats nothing"})
                        continue
                except BadRecord as error:
                    _write({"line": record.line, "error": error.reason, "detail": error.detail})
                    continue
                fingerprints = engine.fingerprint([article.body or ""], [article.lang])
                version = builder.versions([article], [Came(now_ms(), record.line)], fingerprints)[0]
                matches, truncated = detector.query(version)
                _write(
                    {
                        "id": article.id,
                        "matches": [
                            {
                                "id": match.record.id,
                                "version": version_name(match.record.reference),
                                "title": match.record.title,
                                "distance": match.distance,
                                "similarity": rounded(match.similarity),
                            }
                            for match in matches
                        ],
                        "truncated": truncated,
                    }
                )


def _write(line: dict[str, object]) -> None:
    with results():
        write_json(line)
