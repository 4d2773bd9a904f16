"""No function and no module of the program outgrows what can be read at once."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FUNCTION_LINES_MAX: Final = 70
MODULE_LINES_MAX: Final = 350
MODULES: Final = sorted(
    path for package in ("consumer", "dupwatch", "storage") for path in (ROOT / package).rglob("*.py")
)


def function_lines(source: str) -> Iterator[tuple[str, int]]:
    """Yield the name and the number of lines of each function, with its docstring and decorators."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield node.name, (node.end_lineno or first) - first + 1


def test_modules_and_functions_can_be_read_at_once() -> None:
    """Split what is longer by reason to change, and not in the middle."""
    too_long = []
    for path in MODULES:
        source, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        if (lines := len(source.splitlines())) > MODULE_LINES_MAX:
            too_long.append(f"{name}: {lines} lines")
        too_long += [
            f"{name}: {function} has {lines} lines"
            for function, lines in function_lines(source)
            if lines > FUNCTION_LINES_MAX
        ]
    assert too_long == []


def test_modules_are_found() -> None:
    """Or nothing would be checked."""
    assert {"config.py", "interface.py"} <= {path.name for path in MODULES}


def test_lines_are_counted_from_the_first_decorator_to_the_last_line() -> None:
    """Methods and functions within functions count by themselves, too."""
    source = "@first\n@second\ndef outer():\n    '''Say.'''\n    async def inner():\n        pass\n    return inner\n"
    assert list(function_lines(source)) == [("outer", 7), ("inner", 2)]
