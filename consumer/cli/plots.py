"""Files with plots. Matplotlib is optional and slow to import, so it is loaded only for a plot."""

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from consumer.model.errors import ConfigError, SinkError
from consumer.text.install_advice import install_command
from storage.files import open_or_make

_SUFFIXES: Final = (".png", ".svg")


def check_plot(path: Path) -> None:
    """Raise ``ConfigError`` if the plot cannot be drawn. Call this before the slow work."""
    if path.suffix.lower() not in _SUFFIXES:
        raise ConfigError(f"--plot {path}: the file name must end in {' or '.join(_SUFFIXES)}")
    if find_spec("matplotlib") is None:
        raise ConfigError(
            f"--plot needs matplotlib, which is not installed. Install it with:\n{install_command('plot')}"
        )


def new_figure(inches: tuple[float, float]) -> Any:  # noqa: ANN401  # Matplotlib is optional
    """Return an empty figure of this width and height."""
    return import_module("matplotlib.figure").Figure(figsize=inches, dpi=120, layout="constrained")


def save_figure(figure: Any, path: Path, mode: int) -> None:  # noqa: ANN401  # Matplotlib is optional
    """Write a figure into a PNG or SVG file; a new file gets this mode. Raises ``SinkError``."""
    try:
        with open(open_or_make(path, os.O_WRONLY | os.O_TRUNC, mode), "wb") as file:  # noqa: PTH123  # a descriptor
            figure.savefig(file, format=path.suffix.lower().removeprefix("."))
    except OSError as error:
        raise SinkError(f"the plot {path} cannot be written: {error.strerror}") from error
