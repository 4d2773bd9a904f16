"""Which changes there could be, and those that a seed draws.

Each place in the code has one change; a digest of the seed and of the change decides which one, and which places are
drawn. So the same seed draws the same mutants, and where a module has changed since, only those of the changed lines.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import cosmic_ray.plugins
import msgspec
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import MutationVisitor

from tests.mutation.operators import OPERATORS, Node
from tests.mutation.targets import files


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one place: the ``occurrence``-th where the operator could change the module."""

    group: str
    module: str
    line: int
    definition: str
    operator: str
    occurrence: int
    before: str
    after: str

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return f"{self.module}:{self.line} {self.operator.partition('/')[2]}#{self.occurrence}"


class _Place(NamedTuple):
    """One change that could be made; ``rank`` comes first, since the places are sorted by it."""

    rank: str
    module: str
    line: int
    occurrence: int
    operator: str
    definition: str


def draw(root: Path, seed: int, groups: Sequence[str], count: int) -> list[Mutant]:
    """This many mutants, the same number of each group."""
    drawn: list[Mutant] = []
    for at, group in enumerate(groups):
        wanted = count * (at + 1) // len(groups) - count * at // len(groups)
        ranked = sorted(ranked for module in files(root, group) for ranked in _ranked(root, module, seed))
        found = (mutant for place in ranked if (mutant := _mutant_at(root, group, place)) is not None)
        drawn += islice(found, wanted)
    return drawn


def mutated(source: str, operator: str, occurrence: int) -> str | None:
    """The module with the change; None if there is no such change."""
    code: str | None = MutationVisitor.mutate_code(source, _operator(operator), occurrence)
    return code


def _operators() -> list[str]:
    """Those that take no arguments, the tool's and ours."""
    names = [
        name for name in cosmic_ray.plugins.operator_names() if not cosmic_ray.plugins.get_operator(name).arguments()
    ]
    return sorted([*names, *OPERATORS])


def _operator(name: str) -> Any:  # noqa: ANN401  # the tool has no types
    return OPERATORS[name]() if name in OPERATORS else cosmic_ray.plugins.get_operator(name)()


def _ranked(root: Path, module: str, seed: int) -> Iterator[_Place]:
    """For every place of a module the change that it has."""
    source = (root / module).read_text(encoding="utf-8")
    lines = source.splitlines()
    tree = get_ast(source)
    nodes = list(ast_nodes(tree))
    best: dict[tuple[int, int], _Place] = {}
    for name in _operators():
        seen: Counter[str] = Counter()
        operator = _operator(name)
        positions = ((node, start) for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (node, (line, column)) in enumerate(positions):
            if _is_annotation(node):
                continue
            definition = _definition(node)
            what = f"{seed} {module} {definition} {name} {lines[line - 1].strip()}"
            seen[what] += 1
            rank = hashlib.sha256(f"{what} {seen[what]}".encode()).hexdigest()
            place = _Place(rank, module, line, occurrence, name, definition)
            best[line, column] = min(best.get((line, column), place), place)
    yield from best.values()


def _mutant_at(root: Path, group: str, place: _Place) -> Mutant | None:
    """The mutant; None if it does not compile or changes nothing."""
    source = (root / place.module).read_text(encoding="utf-8")
    code = mutated(source, place.operator, place.occurrence)
    if code is None or code == source:
        return None
    try:
        compile(code, place.module, "exec")
    except (SyntaxError, ValueError):
        return None
    before, after = source.splitlines(), code.splitlines()
    changed = next(
        (at for at, (line, other) in enumerate(zip(before, after, strict=False)) if line != other), place.line - 1
    )
    return Mutant(
        group=group,
        module=place.module,
        line=changed + 1,
        definition=place.definition,
        operator=place.operator,
        occurrence=place.occurrence,
        before=before[changed].strip(),
        after=after[changed].strip(),
    )


def _is_annotation(node: Node) -> bool:
    """Whether it is read by type checkers only: a change there is none, or keeps the module from being imported."""
    child, parent = node, node.parent
    while parent is not None:
        if parent.type == "tfpdef" and child is not parent.children[0]:
            return True
        if parent.type == "annassign" and child is parent.children[1]:
            return True
        if parent.type == "funcdef" and child in parent.children and parent.children.index(child) > 1:
            before = parent.children[parent.children.index(child) - 1]
            if before.type == "operator" and before.value == "->":
                return True
        child, parent = parent, parent.parent
    return False


def _definition(node: Node) -> str:
    names = []
    while node is not None:
        if node.type in {"funcdef", "classdef"}:
            names.append(node.name.value)
        node = node.parent
    return ".".join(reversed(names))
