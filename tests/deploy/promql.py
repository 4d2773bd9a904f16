"""The parts of PromQL that tests have to understand."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from consumer.judge.tally import Tally
from consumer.telemetry.metrics import Build, ConsoleMetrics, Metrics, ServiceMetrics

_STRING: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_BRACED: Final = re.compile(r"\{[^{}]*\}")
_GROUPING: Final = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)")
_DURATION: Final = re.compile(r"\[[^\]]*\]|\boffset\s+\w+")
_WORDS: Final = frozenset({"and", "or", "unless", "offset", "bool", "by", "without", "on", "ignoring"})
_COMPARISON: Final = re.compile(r"(==|!=|>=|<=|>|<)(?!\s*bool)")
_OFFSET: Final = re.compile(r"\s*\boffset\s+\w+")
_BUT_FOR_THE_PAST: Final = re.compile(r"\s+unless\s+\w+\s+offset\s+\w+")
_VARIABLES: Final = {"$__rate_interval": "10m", "$job": ".+", "$instance": ".+"}
_SUFFIXES: Final = {
    "counter": ("_total",),
    "histogram": ("_bucket", "_sum", "_count"),
    "gauge": ("",),
    "info": ("_info",),
}
OF_PROMETHEUS: Final = frozenset({"up", "ALERTS"})


def metrics_named(expr: str) -> set[str]:
    """The metrics that an expression names."""
    bare = _DURATION.sub("", _GROUPING.sub("", _BRACED.sub("", _STRING.sub('""', expr))))
    called = {match.group(1) for match in re.finditer(r"([a-zA-Z_]\w*)\s*\(", bare)}
    return {name for name in re.findall(r"(?<![\w.$])[a-zA-Z_:][\w:]*", bare) if name not in called | _WORDS}


def selectors(expr: str) -> Iterator[str]:
    """What of an expression chooses series: names with their labels."""
    for name in sorted(metrics_named(expr)):
        for match in re.finditer(rf"(?<![\w:]){re.escape(name)}(?![\w:])(\{{[^{{}}]*\}})?", expr):
            yield match.group()


def without_thresholds(expr: str) -> Iterator[str]:
    """The alternatives of an alert, which ``or`` joins, each so that it has a value whether the alert fires or not.

    Comparisons answer 0 or 1, nothing is asked whether it is absent, and no past is asked for.
    """
    for alternative in _alternatives(expr):
        pieces = re.split(r"(\{[^{}]*\}|\"[^\"]*\")", _OFFSET.sub("", _BUT_FOR_THE_PAST.sub("", alternative)))
        compared = (piece if at % 2 else _COMPARISON.sub(r"\1 bool", piece) for at, piece in enumerate(pieces))
        yield "".join(compared).replace("absent(", "(")


def _alternatives(expr: str) -> Iterator[str]:
    depth, begin = 0, 0
    for match in re.finditer(r"[()]|\bor\b", expr):
        if match.group() != "or":
            depth += 1 if match.group() == "(" else -1
        elif depth == 0:
            yield expr[begin : match.start()]
            begin = match.end()
    yield expr[begin:]


def chosen(expr: str) -> str:
    """A panel's query as Grafana sends it where all is chosen, but for the past, which a new server has not."""
    expr = _OFFSET.sub("", expr)
    for variable, value in _VARIABLES.items():
        expr = expr.replace(variable, value)
    return expr


@cache
def metrics_shown() -> frozenset[str]:
    """The names of all samples that a consumer, a service or a console can show: from the classes, not from a page."""
    names: set[str] = set()
    for metrics in (Metrics(), ServiceMetrics(), ConsoleMetrics()):
        metrics.show_build(Build("0", "scheme", "plan"))
        metrics.watch(Tally())
        names |= {family.name + suffix for family in metrics.registry.collect() for suffix in _SUFFIXES[family.type]}
    return frozenset(names)
