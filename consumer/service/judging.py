"""What the service answers with, once it is loaded: the store, and what is needed to ask it about articles."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from consumer.decode.article import FieldMap
from consumer.fingerprint import Engine, Lexicon
from consumer.judge.judge import QueryResult
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import VersionBuilder
from consumer.model.article import BodyForm
from consumer.model.limits import DecodeLimits
from consumer.store_tools.releases import Attribution
from storage.interface import Store
from storage.records import Version


@dataclass(frozen=True, slots=True)
class Judging:
    """All of it. Any thread may use it; ``clock`` gives milliseconds since 1970.

    ``release`` undoes the flag of an article, in the version that is named or the latest, and returns the event once
    the sink has it. It raises ``ConfigError`` where it cannot, and ``SinkError``.
    """

    store: Store
    settings: JudgeSettings
    lexicon: Lexicon
    fields: FieldMap
    limits: DecodeLimits
    body_form: BodyForm
    engine: Engine
    builder: VersionBuilder
    query: Callable[[Sequence[Version]], list[QueryResult]]
    release: Callable[[str, str | None, Attribution], bytes]
    clock: Callable[[], int]
    is_remote: bool
