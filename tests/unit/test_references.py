"""The reference pages are what the code says: settings, commands and events."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from jsonschema import Draft202012Validator

from consumer.cli.reference import commands, events, settings
from consumer.config.config import Config
from consumer.config.descriptions import all_settings, description_of
from consumer.config.printing import flatten
from tests.cli.every_command import commands as all_commands

DOCS: Final = Path(__file__).parents[2] / "docs"
SCHEMAS: Final = DOCS / "schemas"
PAGES: Final = {"settings": settings.page, "commands": commands.page, "events": events.page}


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_page_is_what_its_command_prints(name: str) -> None:
    """A change of the code without a run of the command fails here."""
    page: Callable[[], str] = PAGES[name]
    assert page() == (DOCS / "use" / f"{name}.md").read_text(encoding="utf-8")
    assert f"python -m consumer.cli.reference.{name};" in page()


def test_every_setting_is_explained() -> None:
    """In a sentence of its own, and under the name that ``config show`` gives it."""
    described = {setting.name: setting.description for setting in all_settings()}
    assert [name for name, _ in flatten(Config.model_construct())] == list(described)
    assert [name for name, text in described.items() if not text.endswith((".", "}"))] == []
    assert [name for name, text in described.items() if len(text.split()) < 3] == []


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("rules.wire.flag", "rules.SOURCE.flag"),
        ('rules."a.b".never_with', "rules.SOURCE.never_with"),
        ('kafka.client."sasl.password"', "kafka.client"),
        ("console.authority.wire", "console.authority"),
        ("http.user", "http.user"),
    ],
)
def test_a_name_that_people_choose_has_the_sentence_of_its_setting(name: str, known: str) -> None:
    """Names of sources and of client settings are in no section."""
    described = {setting.name: setting.description for setting in all_settings()}
    assert description_of(name, described) == described[known]


def test_every_command_is_in_the_reference() -> None:
    """With all its options."""
    page = commands.page()
    sections = {part.partition("`")[0]: part for part in page.split("\n### `dupwatch ")[1:]}
    assert sections.keys() == {" ".join(name) for name in all_commands()}
    for name, command in all_commands().items():
        options = [option for parameter in command.params for option in parameter.opts if option.startswith("-")]
        assert [option for option in options if option not in sections[" ".join(name)]] == []


def test_every_event_has_a_valid_example() -> None:
    """Of each schema one at least."""
    for example in events.EXAMPLES:
        schema = json.loads((SCHEMAS / f"{example.schema}.schema.json").read_bytes())
        Draft202012Validator(schema).validate(json.loads(example.data))
    named = {example.schema for example in events.EXAMPLES}
    assert named == {path.name.removesuffix(".schema.json") for path in SCHEMAS.iterdir()}


def test_every_member_of_an_event_is_explained() -> None:
    """In its schema, unless there is only one value that it can have."""
    for path in SCHEMAS.iterdir():
        schema = json.loads(path.read_bytes())
        for branch in schema.get("oneOf", ()) if "properties" not in schema else [schema]:
            for member, content in branch["properties"].items():
                assert "description" in content or "const" in content, (path.name, member)
