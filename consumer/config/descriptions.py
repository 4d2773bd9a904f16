"""The sentences that explain settings: the docstrings below the fields of the sections.

They are read from the source on demand. If pydantic read them, every start of a command would parse all sections.
"""

import ast
from collections.abc import Iterator, Mapping
from inspect import cleandoc, getsource
from itertools import pairwise
from textwrap import dedent
from typing import Final, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from consumer.config.config import Config

SOURCE_PLACEHOLDER: Final = "SOURCE"
"""The placeholder for a source in the names of settings."""
_RULES: Final = "rules."


class Setting(NamedTuple):
    """A setting: its dotted name, its pydantic field, and the sentence that explains it, or "" if there is none."""

    name: str
    field: FieldInfo
    description: str


def all_settings() -> Iterator[Setting]:
    """Yield every setting in the order of ``config show``; those of rules have the name ``rules.SOURCE.…``."""
    yield from _settings("", Config)


def description_of(name: str, descriptions: Mapping[str, str]) -> str:
    """Return the sentence for a name that ``printing.flatten`` yields; it may contain a source or the key of a map."""
    if name.startswith(_RULES):
        return descriptions[f"{_RULES}{SOURCE_PLACEHOLDER}.{name.rpartition('.')[2]}"]
    return next(text for known, text in descriptions.items() if name == known or name.startswith(f"{known}."))


def section_description(name: str) -> str:
    """Return the docstring of a section as one paragraph; nested sections have dotted names."""
    kind: type = Config
    for part in name.split("."):
        if part != SOURCE_PLACEHOLDER:
            kind = _section_in(_fields(kind)[part]) or kind
    return _one_line(kind.__doc__ or "")


def _settings(prefix: str, kind: type) -> Iterator[Setting]:
    descriptions = _descriptions(kind)
    for name, field in _fields(kind).items():
        section = _section_in(field)
        full = f"{prefix}{name}"
        if section is None:
            yield Setting(full, field, descriptions.get(name, ""))
        elif get_origin(field.annotation) is dict:
            yield from _settings(f"{full}.{SOURCE_PLACEHOLDER}.", section)
        else:
            yield from _settings(f"{full}.", section)


def _section_in(field: FieldInfo) -> type | None:
    """Return the section in a field, or in the values of its map; None for a setting."""
    for kind in (field.annotation, *get_args(field.annotation)):
        if isinstance(kind, type) and _fields(kind):
            return kind
    return None


def _fields(kind: type) -> Mapping[str, FieldInfo]:
    """Return the fields of a section, which is a pydantic model or dataclass. Other types have none."""
    if issubclass(kind, BaseModel):
        return kind.model_fields
    fields: Mapping[str, FieldInfo] = getattr(kind, "__pydantic_fields__", {})
    return fields


def _descriptions(kind: type) -> dict[str, str]:
    """Return the docstring of each field of a section that has one, including fields of base classes."""
    bases = [base for base in reversed(kind.__mro__) if base.__module__.partition(".")[0] == "consumer"]
    return {name: text for base in bases for name, text in _own_descriptions(base)}


def _own_descriptions(kind: type) -> Iterator[tuple[str, str]]:
    (definition,) = ast.parse(dedent(getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)  # noqa: S101  # the source is that of a class
    for field, below in pairwise(definition.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            text = ast.literal_eval(below.value)
            yield field.target.id, _one_line(text)


def _one_line(text: str) -> str:
    return " ".join(cleandoc(text).replace("``", "`").split())
