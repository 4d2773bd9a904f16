"""``dupwatch query``: find the stored articles that an article would duplicate, without storing it."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from consumer.cli import render
from consumer.cli.articles.difference_view import passages_json
from consumer.cli.options import ConfigOption, LastingStoreOption, SetOption, command_config
from consumer.cli.results import results, write_json
from consumer.cli.runs.feed_report import show_blank_lines
from consumer.cli.texts import input_name, is_folder, is_one_article, is_text, no_valid_article, read_article
from consumer.config.config import Config
from consumer.config.judging import with_stored_settings
from consumer.files.source import STREAM
from consumer.fingerprint import TextKind
from consumer.judge.comparison import not_released
from consumer.judge.events import reference_in, rounded, version_name
from consumer.judge.judge import QueryResult
from consumer.model.article import Article
from consumer.model.errors import BadRecord, SourceError
from consumer.model.hooks import Hooks
from consumer.store_tools.explanation import SharedPart, shared_passages
from consumer.store_tools.inspection import id_hash_of, stored_article
from consumer.store_tools.requested_settings import check_unchanged
from consumer.store_tools.text_query import TextQuery
from consumer.wiring.banks import followed_banks, matcher_of
from consumer.wiring.comparable_store import queries
from consumer.wiring.components import engine, feed_file, file_decoder, lexicon_of, version_builder
from consumer.wiring.stores import opened_store, stored_binding
from storage.clock import now_ms
from storage.records import Record, Version

_JSON_SUFFIXES: Final = frozenset({".json", ".jsonl", ".ndjson"})


def query(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-|ID",
            help="A file of articles (JSON lines, CSV or TSV) or of one article (JSON or plain text); - for articles "
            "from standard input; or the id of a stored article.",
        ),
    ],
    store: LastingStoreOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Find what each article would duplicate if it arrived now. Stores nothing; writes one line of JSON per article.

    The settings are those of the store; other settings are refused. The exit code is 3 if no line is a valid article.
    """
    chosen = command_config(config, overrides, store__url=store)
    lexicon = lexicon_of(chosen)
    with ExitStack() as resources:
        opened = resources.enter_context(opened_store(chosen, readonly=True))
        bound = stored_binding(opened, lexicon)
        stored_settings = bound.settings
        check_unchanged(chosen, stored_settings)
        chosen = with_stored_settings(chosen, stored_settings)
        known = resources.enter_context(followed_banks(chosen, bound, lexicon, Hooks()))
        query_of = queries(chosen, opened, stored_settings)(matcher_of(known))
        text_query = TextQuery(
            opened, engine(chosen, bound, lexicon, known=known), version_builder(bound), query_of, now_ms
        )
        path = Path(source)
        if source != STREAM and not is_text(source) and not is_folder(source):
            _write(_answer_stored(text_query, chosen, source))
        elif source != STREAM and path.is_file() and is_one_article(source, chosen):
            article = read_article(source, chosen)
            if article.id == source and (path.suffix.lower() in _JSON_SUFFIXES or _begins_like_json(article)):
                render.console(stderr=True).print(f"{render.plain(source)} is not JSON; it was read as plain text.")
            _write(_answer(article.id, *text_query.answer([article])[0]))
        else:
            _answer_lines(text_query, chosen, source)


def _begins_like_json(article: Article) -> bool:
    return (article.body or "").lstrip().startswith(("{", "["))


def _answer_stored(text_query: TextQuery, config: Config, article_id: str) -> dict[str, object]:
    """Return the answer for a stored article, as if it arrived now. Released pairs are left out."""
    store = text_query.store
    if not store.history(id_hash_of(article_id)):
        raise SourceError(
            f"no file named {article_id!r}, and no article with that id in {config.store.url}. To query a text, write "
            "it to a file."
        )
    stored = stored_article(store, config.store.url, article_id).stored
    record = msgspec.structs.replace(stored.record, time_ms=now_ms())
    (found,) = text_query.query([Version(record, None)])
    others = store.read([match.record.reference for match in found.matches])
    pairs = zip(found.matches, others, strict=True)
    matches = [match for match, other in pairs if other is None or not_released(stored, other)]
    ended = found.ended_before
    if ended is not None and reference_in(ended.id, ended.version) == stored.released_from:
        ended = None
    body = store.bodies([stored.record.reference])[0]
    found = found._replace(matches=matches, ended_before=ended)
    return _answer(article_id, record, found, shared_passages(store, body, found.parts))


@dataclass(slots=True)
class _Faults:
    """Counts of all lines and of failed lines, and the fault of the first failed line."""

    lines: int = 0
    failed: int = 0
    first_fault: str = field(default="")

    def add(self, line: int, error: str, detail: str) -> dict[str, object]:
        self.failed += 1
        self.first_fault = self.first_fault or f"line {line}: {detail}"
        return {"line": line, "error": error, "detail": detail, "outcome": "error"}


def _answer_lines(text_query: TextQuery, config: Config, source: str) -> None:
    faults = _Faults()
    for answer in _answers(text_query, config, source, faults):
        _write(answer)
    if faults.lines and faults.failed == faults.lines:
        raise no_valid_article(source, faults.lines, faults.first_fault)
    if not faults.lines:
        render.console(stderr=True).print(f"{input_name(source)} is empty.")


def _answers(text_query: TextQuery, config: Config, feed: str, faults: _Faults) -> Iterator[dict[str, object]]:
    decode = file_decoder(config)
    with closing(feed_file(config, feed)) as source:
        for batch in source.batches():
            answers: list[dict[str, object] | None] = []
            articles: list[Article] = []
            for record in batch.records:
                faults.lines += 1
                try:
                    article = decode(record)
                except BadRecord as error:
                    answers.append(faults.add(record.line, error.reason, error.detail))
                    continue
                if article.body is None:
                    answers.append(faults.add(record.line, "retraction", "a retraction has no text"))
                else:
                    articles.append(article)
                    answers.append(None)
            answered = zip(articles, text_query.answer(articles), strict=True)
            found = iter(_answer(article.id, *about) for article, about in answered)
            yield from (next(found) if answer is None else answer for answer in answers)
        show_blank_lines(render.console(stderr=True), source)


def _answer(article_id: str, record: Record, found: QueryResult, shared: Sequence[SharedPart]) -> dict[str, object]:
    answer: dict[str, object] = {
        "id": article_id,
        "text_kind": TextKind(record.kind).label,
        "matches": [
            {
                "id": match.record.id,
                "version": version_name(match.record.reference),
                "title": match.record.title,
                "distance": match.distance,
                "similarity": rounded(match.similarity),
            }
            for match in found.matches
        ],
        "truncated": found.truncated,
        "outcome": "duplicate" if found.matches else "unique",
    }
    if found.seen_before is not None:
        answer["seen_before"] = msgspec.to_builtins(found.seen_before)
    if found.ended_before is not None and not found.matches:
        answer["ended_before"] = msgspec.to_builtins(found.ended_before)
    if found.parts:
        answer["parts"] = [msgspec.to_builtins(each.part) | passages_json(each) for each in shared]
    if found.banks:
        answer["banks"] = msgspec.to_builtins(found.banks)
    return answer


def _write(line: dict[str, object]) -> None:
    with results():
        write_json(line)
