"""The output of ``dupwatch size``, as text and as JSON."""

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Column
from rich.text import Text

from consumer.cli import render
from consumer.cli.operations.size_request import SizeRequest
from consumer.store_tools.sizing import GB, REPLICAS, Sizing
from consumer.store_tools.sizing_report import FigureGroup, Sources, assumptions, gigabytes
from storage.lmdb.kind import MAP_SHARE_MAX

_NAME_CHARS: Final = 26
_SOURCE_CHARS: Final = 21
_LINE_CHARS: Final = 78


def json_fields(
    request: SizeRequest, found: Sizing, sources: Sources, groups: Sequence[FigureGroup]
) -> dict[str, object]:
    """Return the whole output as a value for JSON."""
    figures = {
        figure.key: {"value": figure.value, "source": figure.source} for group in groups for figure in group.figures
    }
    return {
        "store": request.kind.name.lower(),
        "figures": figures,
        "assumptions": list(assumptions(found, sources)),
        "warnings": list(_warnings(request, found)),
        "commands": list(_commands(request, found)),
    }


def text(
    request: SizeRequest, found: Sizing, sources: Sources, groups: Sequence[FigureGroup]
) -> Iterator[RenderableType]:
    """Yield a table for each group, the assumptions, the warnings, and the commands to run next."""
    for group in groups:
        columns = (
            Column(min_width=_NAME_CHARS, max_width=_NAME_CHARS),
            Column(ratio=1, overflow="fold"),
            Column(min_width=_SOURCE_CHARS, max_width=_SOURCE_CHARS, style="dim"),
        )
        rows = ((figure.name, render.plain(figure.shown), render.plain(figure.source)) for figure in group.figures)
        shown = render.table(columns, rows, group.title)
        shown.show_header, shown.expand = False, True
        yield shown
        yield Text()
    yield Text("Assumptions", "bold")
    yield from (Text(render.plain(sentence)) for sentence in assumptions(found, sources))
    for warning in _warnings(request, found):
        yield Text(warning, "yellow")
    yield Text("\nWhat to do next", "bold")
    yield from (Text(f"  {_wrap_command(command)}") for command in _commands(request, found))


def _warnings(request: SizeRequest, found: Sizing) -> Iterator[str]:
    if found.remote:
        return
    if found.feed.peak_a_s > found.store_a_s:
        yield (
            f"The peak of {found.feed.peak_a_s:,.0f} articles a second is more than one LMDB store is planned for: use"
            " --store hbase, or split the feed."
        )
    if found.store_bytes > request.config.store.map_bytes_max * MAP_SHARE_MAX:
        map_bytes = math.ceil(found.store_bytes / MAP_SHARE_MAX / GB) * GB
        yield (
            f"The store outgrows store.map_bytes_max ({gigabytes(request.config.store.map_bytes_max)}): set"
            f" store.map_bytes_max = {map_bytes}."
        )


def _commands(request: SizeRequest, found: Sizing) -> Iterator[str]:
    """Yield the commands that create the store and the topics as planned."""
    init = ["dupwatch", "store", "init", "--store", request.place, "--articles", str(found.plan.articles)]
    if found.remote:
        init += ["--regions", str(found.regions)]
    yield shlex.join([*init, *request.options, "--apply"])
    topics = ["--sink", "kafka://HOST:PORT/PREFIX", "--source", "kafka://HOST:PORT/TOPIC"]
    shape = ["--partitions", str(found.partitions), "--replication", str(REPLICAS)]
    yield shlex.join(["dupwatch", "topics", "init", *topics, *shape, *request.options])


def _wrap_command(command: str) -> str:
    """Return a command on one line, or with one line for each option if the command is too long for a terminal."""
    return command if len(command) <= _LINE_CHARS else command.replace(" --", " \\\n      --")
