"""The schema registry: where the schemas are that values were written by.

The API is Confluent's, which Karapace, Redpanda and Apicurio (``/apis/ccompat/v7``) have as well. Its client is
confluent-kafka's, of which nothing is imported before it is needed.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple, Protocol

from consumer.decode.registry_answers import AnswerLimits, SchemaTooLong, bound
from consumer.kafka.client_settings import Settings, with_secrets
from consumer.model.errors import ConfigError, Fatal, SourceError
from consumer.text.install_advice import install_command

SchemaFormat = Literal["avro", "protobuf"]

_ONE_URL: Final = r"https?://[^\s/,@?#]+(?:/[^\s,@?#]*)?"
URL_PATTERN: Final = rf"{_ONE_URL}(?:,{_ONE_URL})*"
"""One address or several, none of them with credentials: those would be shown with it."""
FILES_MAX: Final = 100
"""Files that a schema may refer to, directly and through others."""
_OURS: Final = frozenset({"url", "timeout", "max.retries"})
_UNKNOWN: Final = frozenset({40401, 40402, 40403})
"""The API's codes: there is no such subject, version, schema."""
_REFUSED: Final = frozenset({401, 403})
_NOT_IMPLEMENTED: Final = 501
_WORDS_MAX: Final = 300


SCHEMA_BYTES_MAX: Final = 4 << 20
"""A registry keeps each schema in a Kafka message, of 1 MB by default, and schemas refer to others."""


class RegistryUnavailable(SourceError):  # noqa: N818  # named for the registry, as the store's is
    """The registry does not answer, or not as a registry; the same may be asked again later."""


class UnusableSchema(Exception):  # noqa: N818  # what the schema is; every record written by it is refused
    """A schema by which nothing can be read here; the message says why."""


class RegistryOptions(NamedTuple):
    """Where a registry is, "URL[,URL]", how long one answer is waited for, and further settings of its client.

    ``secret_files`` are settings whose value stands in a file. ``schema_bytes_max`` is how much the registry may send
    for one schema and all that it refers to.
    """

    url: str
    request_s: float
    client: Settings
    secret_files: Mapping[str, str]
    schema_bytes_max: int = SCHEMA_BYTES_MAX


class StoredSchema(NamedTuple):
    """A schema as the registry has it: its type ("AVRO", "PROTOBUF", "JSON") and text.

    ``references`` are the texts of what it refers to, by the names it does so by, what others refer to before those.
    """

    kind: str
    text: str
    references: Mapping[str, str]


class Registry(Protocol):
    """Where schemas are, which never change."""

    def schema(self, schema_id: int) -> StoredSchema | None:
        """The schema of an id, with all it refers to; None where there is none.

        Raises ``UnusableSchema``, ``RegistryUnavailable``, and ``ConfigError`` where the registry refuses to be asked.
        """
        ...


class ConfluentRegistry:
    """A registry that is asked through confluent-kafka's client, one that is made anew for each schema.

    ConfigError where the client is not installed, or does not take its settings.
    """

    def __init__(self, options: RegistryOptions, written: SchemaFormat) -> None:
        given = with_secrets(options.client, options.secret_files, "registry.secret_files")
        for name in given:
            if name in _OURS:
                raise ConfigError(f"registry.client: {name} is set by dupwatch itself, from registry.url and request_s")
        self._url = options.url
        self._limits = AnswerLimits(options.schema_bytes_max, options.request_s)
        # A call is made again by whoever knows for how long.
        self._settings = {**given, "url": options.url, "timeout": options.request_s, "max.retries": 0}
        # Text is how Protobuf's schemas are kept, and takes a compiler; of Avro there is one form only.
        self._form = "serialized" if written == "protobuf" else None
        try:
            self._module: Any = import_module("confluent_kafka.schema_registry")
        except ImportError as error:
            raise ConfigError(
                f"values in {written} need packages that are not installed ({error}). Install them with:\n"
                f"{install_command('schemas')}"
            ) from error
        with self._client():
            pass

    def schema(self, schema_id: int) -> StoredSchema | None:
        """As the port says."""
        try:
            with self._client() as client:
                found = client.get_schema(schema_id, fmt=self._form)
                references: dict[str, str] = {}
                self._collect(client, found, references, set())
                return StoredSchema(found.schema_type, found.schema_str, references)
        except (Fatal, UnusableSchema):
            raise
        except SchemaTooLong as error:
            raise UnusableSchema(str(error)) from error
        except self._module.SchemaRegistryError as error:
            if error.error_code in _UNKNOWN:
                return None
            raise self._meaning(error) from error
        except Exception as error:
            # What its client raises is its own affair, of the library it makes requests with, and of what it parses.
            raise RegistryUnavailable(f"{self._url} does not answer as a schema registry: {_words(error)}") from error

    def _meaning(self, error: Any) -> Fatal:  # noqa: ANN401  # the client's own type, known only when it is there
        if error.http_status_code in _REFUSED:
            return ConfigError(f"the schema registry {self._url} refuses to be asked: {_words(error)}; see [registry]")
        if error.http_status_code == _NOT_IMPLEMENTED and self._form is not None:
            return ConfigError(f"the schema registry {self._url} does not give schemas of Protobuf in binary form")
        return RegistryUnavailable(f"{self._url} does not answer as a schema registry: {_words(error)}")

    def _collect(self, client: Any, schema: Any, into: dict[str, str], begun: set[str]) -> None:  # noqa: ANN401
        for one in schema.references or ():
            if one.name in begun:
                continue
            if len(begun) == FILES_MAX:
                raise UnusableSchema(f"it refers to more than {FILES_MAX} others")
            begun.add(one.name)
            found = client.get_version(one.subject, one.version, deleted=True, fmt=self._form).schema
            self._collect(client, found, into, begun)
            into[one.name] = found.schema_str

    @contextmanager
    def _client(self) -> Iterator[Any]:
        try:
            client = self._module.SchemaRegistryClient(self._settings)
        except (ValueError, TypeError, OSError) as error:
            raise ConfigError(f"registry: the client does not take its settings: {_words(error)}") from error
        with client:
            # The client has no setting for the size of an answer, and its session no public name.
            bound(getattr(getattr(client, "_rest_client", None), "session", None), self._limits)
            yield client


def _words(error: Exception) -> str:
    """What an error says; some say nothing but what they are."""
    return f"{type(error).__name__}: {error}"[:_WORDS_MAX] if str(error) else type(error).__name__
