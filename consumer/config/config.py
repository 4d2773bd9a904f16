"""The configuration: TOML file, environment, command line, in rising order. Unknown names are errors.

``DUPWATCH_JUDGE__MAX_DISTANCE=2`` in the environment is ``max_distance = 2`` under ``[judge]`` in the file.
"""

from itertools import chain
from typing import Annotated, Any, Final

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from consumer.config.consistency import (
    near_miss_faults,
    profile_faults,
    rule_faults,
    schema_faults,
    slot_faults,
    source_faults,
)
from consumer.config.profiles import expand_profiles
from consumer.config.sections.console import ConsoleSection
from consumer.config.sections.feed import FilesSection, SinkSection, SourceSection
from consumer.config.sections.judge import FingerprintSection, JudgeSection, RuleSection
from consumer.config.sections.kafka import KafkaSection, RegistrySection
from consumer.config.sections.service import ServiceSection
from consumer.config.sections.store import StoreSection
from consumer.config.sections.telemetry import HttpSection, LogSection, TracingSection

ENV_PREFIX: Final = "DUPWATCH_"
ENV_NESTING: Final = "__"
CONFIG_VARIABLE: Final = f"{ENV_PREFIX}CONFIG"
"""Names the file for all commands of a container: its health check does not get the options of the run."""
_DAY_S: Final = 86_400


class Config(BaseSettings):
    """All settings. Frozen; the parts of a run are built from this and nothing else."""

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
    service: ServiceSection = ServiceSection()
    console: ConsoleSection = ConsoleSection()
    log: LogSection = LogSection()
    tracing: TracingSection = TracingSection()
    workers: Annotated[int, Field(ge=0, le=256)] = 0
    """Processes that compute fingerprints beside the judge; with 0 the judge's own process does."""

    @model_validator(mode="before")
    @classmethod
    def _expand_profiles(cls, settings: dict[str, Any]) -> dict[str, Any]:
        return expand_profiles(settings)

    @model_validator(mode="after")
    def _consistent(self) -> "Config":
        for fault in chain(
            source_faults(self.source, self.judge),
            schema_faults(self.kafka, self.registry),
            near_miss_faults(self.kafka, self.judge),
            profile_faults(self.judge, self.fingerprint),
            rule_faults(self.rules, self.judge, self.fingerprint),
            slot_faults(self.rules, self.judge, self.fingerprint),
        ):
            raise ValueError(fault)
        return self

    @property
    def guards_facts(self) -> bool:
        """Whether facts are extracted: from all articles if any rule needs them, since a pair obeys both its rules."""
        return bool(self.judge.facts_shared_min or any(rule.facts_shared_min for rule in self.rules.values()))

    @property
    def guards_slots(self) -> bool:
        """Whether slots are extracted, likewise from all articles."""
        rules = (rule.slot_conflicts_max for rule in self.rules.values())
        return any(conflicts is not None for conflicts in (self.judge.slot_conflicts_max, *rules))

    @property
    def lifetime_s(self) -> int:
        """How long a version is kept: the window, and the slack after which it may be deleted.

        Topics of articles have to keep their messages as long, so that a store can be filled from them again.
        """
        return self.judge.window_s + self.store.slack_s

    @property
    def seen_s(self) -> int:
        """How long a text is remembered after it was seen last, in seconds; 0 where nothing is beyond the window."""
        return self.judge.seen_days * _DAY_S
