"""The configuration: TOML file, environment, command line, in rising order. Unknown names are errors.

``DUPWATCH_JUDGE__MAX_DISTANCE=2`` in the environment is ``max_distance = 2`` under ``[judge]`` in the file.
"""

from typing import Annotated

from pydantic import Field, model_validator
from pydantic_settings import (
    BaseSettings,
    SettingsConfigDict,
)

from consumer.config.sections import (
    FilesSection,
    FingerprintSection,
    HttpSection,
    JudgeSection,
    KafkaSection,
    LogSection,
    RegistrySection,
    RuleSection,
    SinkSection,
    SourceSection,
    StoreSection,
    TracingSection,
)

ENV_PREFIX = "DUPWATCH_"
CONFIG_VARIABLE = f"{ENV_PREFIX}CONFIG"
"""Names the file, for all commands of a container: its health check gets no options of the run."""
SECRETS_IN = ("kafka.client", "kafka.consumer", "kafka.producer", "registry.client")
SECRETS = frozenset({"http.password"})
ENV_NESTING = "__"


class Config(BaseSettings):
    """All of it. Frozen; the only thing that the parts of a run are built from."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix=ENV_PREFIX,
        env_nested_delimiter=ENV_NESTING,
        validate_default=True,
    )

    source: SourceSection = SourceSection()
    sink: SinkSection = SinkSection()
    store: StoreSection = StoreSection()
    files: FilesSection = FilesSection()
    fingerprint: FingerprintSection = FingerprintSection()
    judge: JudgeSection = JudgeSection()
    rules: dict[str, RuleSection] = {}
    kafka: KafkaSection = KafkaSection()
    registry: RegistrySection = RegistrySection()
    http: HttpSection = HttpSection()
    log: LogSection = LogSection()
    tracing: TracingSection = TracingSection()
    workers: Annotated[int, Field(ge=0, le=256)] = 0
    """Processes that make fingerprints beside the judge; 0 makes them in the judge's own."""

    @model_validator(mode="after")
    def _batch_can_be_verified(self) -> "Config":
        if self.source.batch_records_max > self.judge.verifications_max:
            raise ValueError(
                f"source.batch_records_max {self.source.batch_records_max} is more than judge.verifications_max"
                f" {self.judge.verifications_max}: a flood within one batch would not be looked at in full"
            )
        return self

    @model_validator(mode="after")
    def _schemas_have_a_registry(self) -> "Config":
        if self.kafka.value_format != "json" and not self.registry.url:
            raise ValueError(
                f'kafka.value_format = "{self.kafka.value_format}" needs schemas: name their registry in registry.url'
            )
        return self

    @model_validator(mode="after")
    def _fact_guards_have_effect(self) -> "Config":
        for name, rule in self.rules.items():
            if rule.facts_shared_min is not None and not self.judge.verify:
                raise ValueError(f"rules.{name}.facts_shared_min has no effect with verify = false")
            if rule.facts_shared_min is not None and rule.facts_shared_min < self.judge.facts_shared_min:
                raise ValueError(
                    f"rules.{name}.facts_shared_min can only be stricter than {self.judge.facts_shared_min}"
                )
        return self

    @property
    def guards_facts(self) -> bool:
        """Whether the facts of any article are asked for: of all, then, since a pair's stricter guard counts."""
        return bool(self.judge.facts_shared_min or any(rule.facts_shared_min for rule in self.rules.values()))

    @model_validator(mode="after")
    def _rules_have_effect(self) -> "Config":
        for name, rule in self.rules.items():
            if rule.max_distance is not None and self.judge.verify:
                raise ValueError(
                    f"rules.{name}.max_distance has no effect with verify = true; set similarity_min instead"
                )
            if rule.similarity_min is not None and not self.judge.verify:
                raise ValueError(
                    f"rules.{name}.similarity_min has no effect with verify = false; set max_distance instead"
                )
            if rule.similarity_min is not None and rule.similarity_min < self.judge.similarity_min:
                raise ValueError(f"rules.{name}.similarity_min can only be stricter than {self.judge.similarity_min}")
            if rule.max_distance is not None and rule.max_distance > self.judge.max_distance:
                raise ValueError(f"rules.{name}.max_distance can only be stricter than {self.judge.max_distance}")
        return self

    @property
    def lifetime_s(self) -> int:
        """How long a version is kept: the window, and the slack after which it may be deleted.

        Topics of articles have to keep their messages as long, so that a store can be filled from them again.
        """
        return self.judge.window_s + self.store.slack_s
