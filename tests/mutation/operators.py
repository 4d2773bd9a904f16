"""Changes that the tool's own operators do not make: a statement is left out, a function returns nothing."""

from collections.abc import Iterator
from typing import Any, Final

import parso
from cosmic_ray.operators.operator import Operator

Node = Any
"""``parso``'s nodes, which have no types."""


class RemoveStatement(Operator):  # type: ignore[misc]  # the tool has no types
    """A call for its effect, an assignment to an attribute or an item, ``raise`` or ``del`` becomes ``pass``."""

    def mutation_positions(self, node: Node) -> Iterator[tuple[Any, Any]]:
        """Where it can be done: as the tool asks."""
        if node.type == "simple_stmt" and _has_effect(node.children[0]):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Node, index: int) -> Node:
        """Do it."""
        del index
        statement = node.children[0]
        prefix = statement.get_first_leaf().prefix
        node.children[0] = parso.python.tree.Keyword("pass", statement.start_pos, prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        """None: the tool's own tests ask for them."""
        return ()


class ReturnNone(Operator):  # type: ignore[misc]  # as above
    """A value that is returned becomes None."""

    def mutation_positions(self, node: Node) -> Iterator[tuple[Any, Any]]:
        """Where it can be done: as the tool asks."""
        if node.type == "return_stmt" and len(node.children) > 1 and node.children[1].get_code().strip() != "None":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Node, index: int) -> Node:
        """Do it."""
        del index
        node.children[1] = parso.python.tree.Keyword("None", node.children[1].start_pos, " ")
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        """None, as above."""
        return ()


OPERATORS: Final = {"dupwatch/RemoveStatement": RemoveStatement, "dupwatch/ReturnNone": ReturnNone}


def _has_effect(statement: Node) -> bool:
    if statement.type in {"raise_stmt", "del_stmt"}:
        return True
    if statement.type == "atom_expr":
        # A call whose result nobody takes.
        return bool(statement.children[-1].get_code().startswith("("))
    if statement.type == "expr_stmt":
        return bool(statement.children[0].type == "atom_expr")
    return False
