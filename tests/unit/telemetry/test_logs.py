"""The lines of the log: their fields, and that no logged value can forge a line."""

import io
import json
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consumer.model.dead_letter import LetterPosition, dead_letter
from consumer.model.errors import BadRecord
from consumer.model.hooks import Hooks
from consumer.model.verdict import Verdict
from consumer.pipeline.batches import BatchCommitted
from consumer.telemetry import logs
from consumer.telemetry.batch_log import SUMMARY_PAUSE_S, BatchLog

log = logging.getLogger("dupwatch")
EVIL = 'id"\n{"level":"critical","message":"forged"}\r\x1b[31m\u2028\u202e\x85\x00' + "x" * 100_000


class Written:
    """Collects what is written to standard error, which is not a terminal."""

    def __init__(self, captured: pytest.CaptureFixture[str]) -> None:
        self._captured = captured
        self._text = ""

    def getvalue(self) -> str:
        """All of it."""
        self._text += self._captured.readouterr().err
        return self._text

    def forget(self) -> None:
        """Forget what was written."""
        self.getvalue()
        self._text = ""


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """What the log writes; the previous set-up is restored afterwards.

    Threads of earlier tests may still log, and start more threads: their lines are none of this test's.
    """
    own, start = {threading.current_thread()}, threading.Thread.start

    def note_and_start(thread: threading.Thread) -> None:
        if threading.current_thread() in own:
            own.add(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", note_and_start)
    monkeypatch.setattr(logs._StandardError, "filter", lambda *_: threading.current_thread() in own)
    before, hook = list(logging.getLogger().handlers), threading.excepthook
    levels = logging.getLogger().level, log.level
    yield Written(capsys)
    logging.getLogger().handlers[:] = before
    logging.getLogger().setLevel(levels[0])
    log.setLevel(levels[1])
    threading.excepthook = hook


def raised(error: Exception) -> None:
    """Raise it."""
    raise error


def lines(stream: Written) -> list[dict[str, Any]]:
    """The parsed lines: each has to be a JSON object."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_has_what_there_is_to_know(written: Written) -> None:
    """A line has time, level, logger, thread, message, and the given fields."""
    logs.set_up("json", "info")
    log.info("Judged %d", 3, extra={"article_id": "文章", "distance": 2, "keywords": ["a", "b"], "similarity": None})
    (line,) = lines(written)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info", "logger": "dupwatch", "thread": "MainThread", "message": "Judged 3", "article_id": "文章",
        "distance": 2, "keywords": ["a", "b"], "similarity": None,
    }  # fmt: skip


def test_nothing_logged_is_more_than_a_value(written: Written) -> None:
    """A line is one short line without control characters, whatever an article contains."""
    logs.set_up("json", "info")
    try:
        raised(ValueError(EVIL))
    except ValueError:
        log.exception("It fails for %s", EVIL, extra={"article_id": EVIL, "ids": [EVIL] * 1000, "time_": EVIL})
    text = written.getvalue()
    assert text.count("\n") == 1
    assert len(text.splitlines()) == 1
    assert len(text) < 80_000
    assert all(char.isprintable() for char in text.rstrip("\n"))
    (line,) = lines(written)
    assert line["level"] == "error"
    assert line["article_id"].startswith('id"\\n{"level":"critical"')
    assert len(line["article_id"]) < 2 * logs.FIELD_CHARS_MAX
    assert line["exception"]["type"] == "ValueError"
    assert "test_nothing_logged_is_more" in line["exception"]["stack"]


def test_no_field_takes_the_place_of_the_logs_own(written: Written) -> None:
    """A given field with the name of a standard field is left out."""
    logs.set_up("json", "info")
    log.info("true", extra={"level": "forged", "time": "forged", "logger": "forged"})
    (line,) = lines(written)
    assert "forged" not in line.values()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.characters(), max_size=40))
def test_any_text_makes_one_line(written: Written, text: str) -> None:
    """JSON is one line that can be encoded; text for people has a bar before each further line of a record."""
    for form in ("json", "text"):
        written.forget()
        # Pytest's handlers would put the text as it is into a report, which could then not be sent by a worker.
        logging.getLogger().handlers.clear()
        logs.set_up(form, "info")
        log.info("%s", text, extra={"article_id": text})
        output = written.getvalue()
        output.encode()
        shown = output.splitlines()
        if form == "json":
            assert json.loads(output)["level"] == "info"
            assert len(shown) == 1
        else:
            assert shown[0].startswith("INFO     ")
            assert all(line.startswith("         | ") or not line.strip() for line in shown[1:])


@pytest.mark.parametrize("starts_another", [False, True])
def test_lines_of_other_threads_are_left_out(request: pytest.FixtureRequest, *, starts_another: bool) -> None:
    """A thread that an earlier test has left behind changes no result here, nor one that it starts now."""
    over = threading.Event()
    begun = threading.Event()
    logged = threading.Event()

    def log_on() -> None:
        while not over.wait(0.001):
            log.warning("noise")
            logged.set()

    def log_from_another() -> None:
        assert begun.wait(30)
        another = threading.Thread(target=log_on)
        another.start()
        another.join()

    thread = threading.Thread(target=log_from_another if starts_another else log_on)
    thread.start()
    try:
        written: Written = request.getfixturevalue("written")
        logs.set_up("json", "info")
        begun.set()
        logged.clear()
        assert logged.wait(30)
        log.info("mine")
        assert [line["message"] for line in lines(written)] == ["mine"]
    finally:
        over.set()
        thread.join()


def test_text_for_people(written: Written) -> None:
    """Level, message and fields; the lines of a stack are indented behind a bar."""
    logs.set_up("text", "warning")
    log.info("too low")
    try:
        raised(ValueError("why"))
    except ValueError:
        log.exception("It failed\nERROR    forged", extra={"article_id": "a"})
    shown = written.getvalue().splitlines()
    assert shown[0] == "ERROR    It failed"
    assert shown[1] == "         | ERROR    forged  article_id=a"
    assert shown[-1] == "         | ValueError: why"
    assert "\x1b" not in written.getvalue()


def test_auto_is_text_on_a_terminal_and_json_elsewhere(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service without a terminal writes only JSON; a command still writes its sentence for people."""
    logs.set_up()
    assert logs.tells_people()
    logs.set_up(is_service=True)
    assert not logs.tells_people()
    log.info("for programs")
    assert lines(written)[0]["message"] == "for programs"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    logs.set_up(is_service=True)
    assert logs.tells_people()
    log.warning("for people")
    assert "WARNING \x1b[0m for people\n" in written.getvalue()
    logs.set_up("json")
    assert not logs.tells_people()


def test_one_handler_however_often_it_is_set_up(written: Written) -> None:
    """A later set-up replaces the earlier one."""
    logs.set_up("text")
    logs.set_up("json", "info")
    log.info("once")
    assert len(lines(written)) == 1


def test_the_clients_lines_are_in_it(written: Written) -> None:
    """Librdkafka's logger is a child of the program's, and has its level."""
    logs.set_up("json")
    logging.getLogger("dupwatch.kafka").warning("FAIL [thrd:x]: broker\naway")
    logging.getLogger("dupwatch.kafka").info("too low")
    (line,) = lines(written)
    assert (line["logger"], line["message"]) == ("dupwatch.kafka", "FAIL [thrd:x]: broker\naway")


def test_a_thread_that_fails_is_a_line_too(written: Written) -> None:
    """An uncaught error of a thread is a log line, not a traceback among them."""
    logs.set_up("json", is_service=True)
    thread = threading.Thread(target=raised, args=(IndexError("why"),), name="t1")
    thread.start()
    thread.join()
    (line,) = lines(written)
    assert line["message"] == "Thread t1 failed"
    assert line["exception"]["type"] == "IndexError"


def test_a_standard_error_that_is_gone_ends_nothing(monkeypatch: pytest.MonkeyPatch, written: Written) -> None:
    """The run continues without a log."""
    logs.set_up("json", "info")
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    log.info("nobody hears")
    assert written.getvalue() == ""


def test_a_message_that_does_not_fit_its_arguments_is_told_as_it_is() -> None:
    """A mistake in a logging call does not print a traceback."""
    record = logging.LogRecord("dupwatch", logging.INFO, "", 0, "%d of them", ("no number",), None)
    assert json.loads(logs.JsonFormatter().format(record))["message"] == "%d of them"


def letter(reason: str, raw: bytes) -> Any:  # noqa: ANN401  # a dead letter
    """One that has a text."""
    return dead_letter(BadRecord(reason, "why"), LetterPosition(source="articles[0]", line=0, offset=7), raw)


def test_dead_letters_are_told_now_and_then(written: Written) -> None:
    """The first is logged at once, then their number every ten seconds, by reason and without their content."""
    logs.set_up("json", "info")
    now_s = [0.0]
    hooks = Hooks(BatchLog(lambda: now_s[0]))
    hooks.report(BatchCommitted([], []))
    hooks.report(BatchCommitted([], [letter("invalid_json", b"the text")]))
    for _ in range(9):
        hooks.report(BatchCommitted([], [letter("empty_id", b"the text"), letter("missing_id", b"the text")]))
    now_s[0] = SUMMARY_PAUSE_S
    hooks.report(BatchCommitted([], [letter("empty_id", b"the text")]))
    logged = lines(written)
    assert [line["dead_letters"] for line in logged] == [1, 19]
    assert logged[1]["message"].endswith("10 empty_id, 9 missing_id")
    assert logged[0]["last_source"] == "articles[0]"
    assert "the text" not in written.getvalue()


def test_flags_are_told_where_asked_for(written: Written) -> None:
    """At level debug each flag has a line with both ids; otherwise flags are not logged."""
    flag = Verdict(
        id="b", outcome="duplicate", duplicate_of="a", distance=1, similarity=0.9,
        arrived_at="2026-11-21T10:00:00.000Z", decided_at="2026-11-21T10:00:00.000Z",
    )  # fmt: skip
    logs.set_up("json", "info")
    Hooks(BatchLog()).report(BatchCommitted([flag], []))
    assert lines(written) == []
    logs.set_up("json", "debug")
    Hooks(BatchLog()).report(BatchCommitted([flag], []))
    (line,) = lines(written)
    assert (line["article_id"], line["duplicate_of"], line["distance"], line["similarity"]) == ("b", "a", 1, 0.9)
