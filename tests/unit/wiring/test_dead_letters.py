"""Where the dead letters of a run go: beside its verdicts, wherever those go."""

import io
from pathlib import Path

import pytest

from consumer.config.loading import load_config
from consumer.files.lines import Position
from consumer.files.sinks import Nowhere
from consumer.kafka.sink.outgoing import Outgoing
from consumer.kafka.topics import SinkTopics
from consumer.model.errors import BadRecord, SinkError
from consumer.model.ports import Marks, Rejection
from consumer.model.record import RawRecord
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.wiring.components import Streams
from consumer.wiring.dead_letters import check_dead_letter_sink, dead_letter_sink, dead_letters_file
from consumer.wiring.outputs import FileOutput, NoOutput, Output, StreamOutput, TopicOutput

CONFIG = load_config(None, {})


class RecordingOutbox:
    """Records what is sent."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []

    def send(self, message: Outgoing) -> None:
        """Record a message."""
        self.sent.append(message)

    def flush(self) -> None:
        """Do nothing: what is sent is recorded at once."""

    def close(self) -> None:
        """Do nothing: nothing is open."""


def rejection() -> Rejection:
    """Return the rejection of a line that is not JSON."""
    record = RawRecord(1, 0, b"{", 1, None, None, Position(1, 2))
    return DeadLetterPolicy("feed", Nowhere()).reject(record, BadRecord("invalid_json", "not JSON"))


def reject_to(output: Output) -> None:
    """Write one dead letter beside these verdicts."""
    sink = dead_letter_sink(CONFIG, output)
    sink.reject([rejection()])
    sink.flush()
    sink.close()


def test_letters_of_a_file_are_in_a_file_beside_it(tmp_path: Path) -> None:
    """They are cut back to what earlier runs committed."""
    verdicts = tmp_path / "verdicts.jsonl"
    letters = dead_letters_file(verdicts)
    letters.write_bytes(b"committed\nnot committed\n")
    reject_to(FileOutput(verdicts, Marks(0, len(b"committed\n")), "unused"))
    first, second = letters.read_bytes().splitlines()
    assert first == b"committed"
    assert b'"reason":"invalid_json"' in second
    assert not verdicts.exists()


def test_letters_of_another_run_are_refused_with_the_reason(tmp_path: Path) -> None:
    """Before the run, and when the sink is built."""
    output = FileOutput(tmp_path / "verdicts.jsonl", None, "nobody knows which run wrote it")
    dead_letters_file(output.path).write_bytes(b"precious\n")
    with pytest.raises(SinkError, match="nobody knows which run wrote it"):
        check_dead_letter_sink(output)
    with pytest.raises(SinkError, match="nobody knows which run wrote it"):
        dead_letter_sink(CONFIG, output)


def test_letters_of_a_stream_are_on_standard_error() -> None:
    """Standard output has verdicts only."""
    out, err = io.BytesIO(), io.BytesIO()
    reject_to(StreamOutput(Streams(out, err)))
    assert out.getvalue() == b""
    assert b'"reason":"invalid_json"' in err.getvalue()


def test_letters_of_topics_go_through_the_outbox_of_the_verdicts() -> None:
    """So they share its transactions."""
    outbox = RecordingOutbox()
    reject_to(TopicOutput(SinkTopics("judged"), outbox))
    assert [message.topic for message in outbox.sent] == ["judged.dead-letters"]


def test_a_run_without_verdicts_has_no_letters() -> None:
    """Both are discarded."""
    assert isinstance(dead_letter_sink(CONFIG, NoOutput()), Nowhere)
