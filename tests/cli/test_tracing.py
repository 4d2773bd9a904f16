"""Tracing of a whole run of the demo: consumer and topics without a server."""

import subprocess
import sys
from collections import Counter

import pytest

from consumer.text.install_advice import install_command
from tests.cli.command import ROOT, SAMPLE, TIMEOUT_S, Command, environment, run_process, run_without
from tests.unit.telemetry.collector import collecting


def test_a_run_sends_its_spans() -> None:
    """The batches together have all records of the feed, each with its stages; the run ends after they are sent."""
    with collecting() as collector:
        settings = ("tracing.enabled=true", f"tracing.endpoint={collector.endpoint}", "tracing.close_s=30")
        ended = run_process("demo", "--rate", "2000", *(part for setting in settings for part in ("--set", setting)))
        assert ended.code == 0, ended.err
        spans = collector.spans
    batches = [span for span in spans if span.name == "process articles"]
    counts = [
        attribute.value.int_value
        for span in batches
        for attribute in span.attributes
        if attribute.key == "messaging.batch.message_count"
    ]
    assert sum(counts) == len(SAMPLE.read_bytes().splitlines())
    children = Counter(span.name for span in spans if span.parent_span_id)
    assert children["decode"] == children["emit"] == children["commit"] == len(batches)


def test_without_the_extra_it_is_named() -> None:
    """A run with tracing does not start; one without it imports none of its modules."""
    refused = run_without(["opentelemetry"], "demo", "--set", "tracing.enabled=true")
    assert refused.code == 2
    assert refused.err.endswith(f"Install it with:\n{install_command('tracing')}\n")
    assert "Traceback" not in refused.err
    loaded = "import sys, consumer.cli.main; print([name for name in sys.modules if name.startswith('opentelemetry')])"
    assert run_python([sys.executable, "-c", loaded]).stdout == "[]\n"


def run_python(command: list[str]) -> "subprocess.CompletedProcess[str]":
    """Run Python code in the root of this checkout."""
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S, cwd=ROOT, env=environment()
    )


@pytest.mark.parametrize("setting", ["tracing.endpoint=collector:4318", "tracing.close_s=0", "tracing.nope=1"])
def test_wrong_settings(dupwatch: Command, setting: str) -> None:
    """The message names them."""
    ended = dupwatch("config", "check", "--set", setting)
    assert ended.code == 2
    assert setting.partition("=")[0] in ended.err
