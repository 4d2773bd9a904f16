"""Chooses the engine for fingerprints: by default the compiled one if it can be used, otherwise the one in Python."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final, Literal, NamedTuple

from typing_extensions import override

from consumer.fingerprint import (
    PUBLISHED_SECRET,
    Engine,
    Fingerprinter,
    Fingerprints,
    KnownShingles,
    Lexicon,
    Scheme,
    Secret,
)
from consumer.fingerprint.compiled import CompiledFingerprinter, core_obstacle, core_version
from consumer.model.errors import ConfigError

EngineName = Literal["compiled", "python"]
EngineChoice = Literal["auto", "compiled", "python"]
COMPILED: Final[EngineName] = "compiled"
PYTHON: Final[EngineName] = "python"


class ChosenEngine(NamedTuple):
    """The name of the chosen engine. ``detail`` is the version of the compiled engine, or why Python's was chosen."""

    name: EngineName
    detail: str

    @property
    def description(self) -> str:
        """The name and the detail, for people."""
        return f"{self.name} ({self.detail})"


def chosen_engine(choice: EngineChoice, scheme: Scheme, lexicon: Lexicon) -> ChosenEngine:
    """Return the engine for a scheme. Raises ``ConfigError`` if the compiled engine is required but unusable."""
    if choice == PYTHON:
        return ChosenEngine(PYTHON, "fingerprint.engine selects it")
    reason = core_obstacle(scheme, lexicon)
    if reason is None:
        return ChosenEngine(COMPILED, f"dupwatch-core {core_version()}")
    if choice == COMPILED:
        raise ConfigError(f'fingerprint.engine is "compiled", but {reason}; in a checkout, run make core')
    return ChosenEngine(PYTHON, reason)


def new_engine(
    name: EngineName,
    scheme: Scheme,
    lexicon: Lexicon,
    *,
    sketched: bool,
    parts: bool,
    secret: Secret = PUBLISHED_SECRET,
) -> Engine:
    """Return a new engine with this name."""
    if name == COMPILED:
        return CompiledFingerprinter(scheme, lexicon, sketched=sketched, parts=parts, secret=secret)
    return Fingerprinter(scheme, lexicon, sketched=sketched, parts=parts, secret=secret)


class SerializedEngine(Engine):
    """An engine behind a lock, because the engine in Python is not thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = Lock()

    @property
    @override
    def scheme(self) -> Scheme:
        return self._engine.scheme

    @override
    def fingerprint(
        self, texts: Sequence[str], languages: Sequence[str] | None = None, known: KnownShingles | None = None
    ) -> Fingerprints:
        with self._lock:
            return self._engine.fingerprint(texts, languages, known)

    @override
    def smallest_shingles(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> tuple[bytes, ...]:
        with self._lock:
            return self._engine.smallest_shingles(texts, languages)


class BankAwareEngine(Engine):
    """An engine that also reports which shingles of a text occur in items of banks.

    ``known`` returns the shingles of the current items, or None.
    """

    def __init__(self, engine: Engine, known: Callable[[], KnownShingles | None]) -> None:
        self._engine = engine
        self._known = known

    @property
    @override
    def scheme(self) -> Scheme:
        return self._engine.scheme

    @override
    def fingerprint(
        self, texts: Sequence[str], languages: Sequence[str] | None = None, known: KnownShingles | None = None
    ) -> Fingerprints:
        return self._engine.fingerprint(texts, languages, self._known() if known is None else known)

    @override
    def smallest_shingles(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> tuple[bytes, ...]:
        return self._engine.smallest_shingles(texts, languages)
