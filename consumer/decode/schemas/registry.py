"""Fetches schemas from a schema registry.

The API is Confluent's, which Karapace, Redpanda and Apicurio (``/apis/ccompat/v7``) support too. The client is
confluent-kafka's, which is imported only when it is needed.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar

from typing_extensions import override

from consumer.decode.schemas.registry_answers import AnswerLimits, SchemaTooLong, limit_answers
from consumer.lifecycle.retry import RetryPolicy, RetrySubject, RetryUntilReachable
from consumer.lifecycle.stopping import StopSignal
from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.article import Reason
from consumer.model.errors import Abandoned, BadRecord, ConfigError, Fatal, SourceError
from consumer.model.hooks import Hooks
from consumer.text.install_advice import install_command
from consumer.text.redaction import with_secrets
from storage.backoff import Backoff

SchemaFormat = Literal["avro", "protobuf"]

_ONE_URL: Final = r"https?://[^\s/,@?#]+(?:/[^\s,@?#]*)?"
URL_PATTERN: Final = rf"{_ONE_URL}(?:,{_ONE_URL})*"
"""One address or several, separated by commas. They must not contain credentials, because messages show them."""
REFERENCES_MAX: Final = 100
"""The maximum number of schemas that a schema may refer to, directly or indirectly."""
_OWN_SETTINGS: Final = frozenset({"url", "timeout", "max.retries"})
_UNKNOWN: Final = (40401, 40402, 40403)
"""The API's codes for an unknown subject, version or schema.

They are a tuple, because the code in an answer may be a list, which a set cannot look up.
"""
_REFUSED: Final = frozenset({401, 403})
_NOT_IMPLEMENTED: Final = 501
_ERROR_CHARS_MAX: Final = 300


SCHEMA_BYTES_MAX: Final = 4 << 20
"""The default limit on a schema together with all schemas that it refers to.

A registry keeps each schema in a Kafka message, by default of at most 1 MB.
"""
BRIEF_RETRY_S: Final = 15.0
"""How many seconds an interactive command retries the registry."""
_PAUSE_S: Final = 1.0

Result = TypeVar("Result")


class RegistryUnavailable(SourceError):  # noqa: N818  # named like StoreUnavailable
    """The registry does not answer, or gives an invalid answer. The request may be repeated later."""


class UnusableSchema(Exception):  # noqa: N818  # the state of a schema, whose records become dead letters
    """A schema cannot be used. The message says why."""


def mismatch(detail: str) -> BadRecord:
    """Return the error for a payload that does not match its schema."""
    return BadRecord(Reason.SCHEMA_MISMATCH, f"the payload does not match its schema: {detail}")


class RegistryOptions(NamedTuple):
    """The address of a registry, "URL[,URL]", the time limit for an answer in seconds, and settings of the client.

    ``secret_files`` maps settings to the files that hold their values. ``schema_bytes_max`` limits one schema together
    with all schemas that it refers to.
    """

    url: str
    request_s: float
    client: Mapping[str, str | int | float | bool]
    secret_files: Mapping[str, str]
    schema_bytes_max: int = SCHEMA_BYTES_MAX


class StoredSchema(NamedTuple):
    """A schema in the registry: its type ("AVRO", "PROTOBUF", "JSON") and text.

    ``references`` maps the names of the schemas that it refers to, directly or indirectly, to their texts. Each comes
    after its own references.
    """

    kind: str
    text: str
    references: Mapping[str, str]


class Registry(Protocol):
    """A registry of schemas by id. Schemas never change, so the caller caches them."""

    def schema(self, schema_id: int) -> StoredSchema | None:
        """Return the schema with this id and all schemas that it refers to, or None if the registry lacks one.

        Called for the first record with this id, and again if the result was None or is no longer cached. Raises
        ``UnusableSchema``, ``RegistryUnavailable`` if the call may be repeated later, and ``ConfigError`` if the
        registry denies access or does not return schemas in binary form.
        """
        ...


class ConfluentRegistry(Registry):
    """A registry that uses confluent-kafka's client, a new one for each schema.

    The constructor raises ``ConfigError`` if the client is not installed, rejects its settings, or does not allow its
    answers to be limited; for settings that dupwatch makes itself; and if a file with a secret cannot be read.
    """

    def __init__(self, options: RegistryOptions, schema_format: SchemaFormat) -> None:
        given = with_secrets(options.client, options.secret_files, "registry.secret_files")
        for name in given:
            if name in _OWN_SETTINGS:
                raise ConfigError(
                    f"registry: {name} is set by dupwatch; remove it from registry.client or registry.secret_files, "
                    "and use registry.url and registry.request_s"
                )
        self._url = options.url
        self._limits = AnswerLimits(options.schema_bytes_max, options.request_s)
        # The caller retries, because only it knows for how long.
        self._settings = {**given, "url": options.url, "timeout": options.request_s, "max.retries": 0}
        # By default Protobuf schemas are returned as text, which would need a compiler; Avro has one form only.
        self._schema_form = "serialized" if schema_format == "protobuf" else None
        try:
            self._module: Any = import_module("confluent_kafka.schema_registry")
        except ImportError as error:
            raise ConfigError(
                f"values in {schema_format} need packages that are not installed ({error}). Install them with:\n"
                f"{install_command('schemas')}"
            ) from error
        with self._client():
            pass

    @override
    def schema(self, schema_id: int) -> StoredSchema | None:
        try:
            with self._client() as client:
                found = client.get_schema(schema_id, fmt=self._schema_form)
                references: dict[str, str] = {}
                self._collect(client, found, references, set())
                return StoredSchema(found.schema_type, _text(found), references)
        except (Fatal, UnusableSchema):
            raise
        except SchemaTooLong as error:
            raise UnusableSchema(str(error)) from error
        except self._module.SchemaRegistryError as error:
            if error.error_code in _UNKNOWN:
                return None
            raise self._error_for(error) from error
        except Exception as error:
            # The client raises its own errors, errors of its HTTP library, and errors of parsing.
            raise RegistryUnavailable(
                f"{self._url} does not answer as a schema registry: {_error_text(error)}"
            ) from error

    def _error_for(self, error: Any) -> Fatal:  # noqa: ANN401  # the type of a client that may not be installed
        if error.http_status_code in _REFUSED:
            return ConfigError(f"the schema registry {self._url} denies access: {_error_text(error)}; see [registry]")
        if error.http_status_code == _NOT_IMPLEMENTED and self._schema_form is not None:
            return ConfigError(f"the schema registry {self._url} does not return Protobuf schemas in binary form")
        return RegistryUnavailable(f"{self._url} does not answer as a schema registry: {_error_text(error)}")

    def _collect(self, client: Any, schema: Any, into: dict[str, str], begun: set[str]) -> None:  # noqa: ANN401
        for reference in schema.references or ():
            if reference.name in begun:
                continue
            if len(begun) == REFERENCES_MAX:
                raise UnusableSchema(f"it refers to more than {REFERENCES_MAX} others")
            begun.add(reference.name)
            found = client.get_version(reference.subject, reference.version, deleted=True, fmt=self._schema_form).schema
            self._collect(client, found, into, begun)
            into[reference.name] = _text(found)

    @contextmanager
    def _client(self) -> Iterator[Any]:
        try:
            client = self._module.SchemaRegistryClient(self._settings)
        except (ValueError, TypeError, OSError) as error:
            raise ConfigError(f"registry: the client rejects its settings: {_error_text(error)}") from error
        with client:
            # The client has no setting for the size of an answer, and its session is not public.
            limit_answers(getattr(getattr(client, "_rest_client", None), "session", None), self._limits)
            yield client


def _text(schema: Any) -> str:  # noqa: ANN401  # the client's own type
    """Return the text of a schema. Raises ``TypeError`` or ``ValueError`` if it is not text."""
    text = schema.schema_str
    if not isinstance(text, str):
        raise TypeError(f"the schema is not a string, but of type {type(text).__name__}")
    # This raises for a lone surrogate, which JSON can contain but UTF-8 cannot.
    text.encode()
    return text


def _error_text(error: Exception) -> str:
    """Return the type of an error, and its message if it has one."""
    return f"{type(error).__name__}: {error}"[:_ERROR_CHARS_MAX] if str(error) else type(error).__name__


class BriefRetry(RetryPolicy):
    """The retry policy of interactive commands: retry the registry for a while, then fail."""

    def __init__(self, seconds: float = BRIEF_RETRY_S, pause_s: float = _PAUSE_S) -> None:
        self._seconds = seconds
        self._pause_s = pause_s

    @override
    def call(self, work: Callable[[], Result]) -> Result:
        """Return the result of ``work``. Raises ``RegistryUnavailable`` once the time is over, other errors at once."""
        pauses = Backoff(self._pause_s, self._pause_s)
        return pauses.call(work, lambda error: isinstance(error, RegistryUnavailable), self._seconds)


def waiting_for_registry(hooks: Hooks, stopping: StopSignal) -> RetryUntilReachable:
    """Return the retry policy of runs: wait until the registry is back, or abandon the batch if the run must stop."""
    progress = ThreadProgress(hooks)

    def proceed() -> None:
        progress.report()
        if stopping.requested():
            raise Abandoned("the schema registry is out of reach, and the run is stopping")

    registry = RetrySubject("source", "registry", RegistryUnavailable, "The schema registry")
    return RetryUntilReachable(proceed, hooks, registry)
