"""What is counted in a run, and its percentiles."""

import numpy as np
import pytest

from consumer.cli.runs.stress_view import missing_sentence
from consumer.stress.trial import LATE_S, Trial, WaitPercentiles, wait_percentiles


def trial_of(articles: int) -> Trial:
    """A trial whose articles are due every tenth of a second, and sent then."""
    trial = Trial("run-1", np.arange(articles) / 10)
    for number in range(articles):
        trial.note_sent(number, number / 10)
    return trial


def test_percentiles_are_waits_that_occurred() -> None:
    """Of a thousand waits from 1 to 1,000 ms."""
    found = wait_percentiles(np.random.default_rng(1).permutation(np.arange(1, 1_001)) / 1_000)
    assert found == WaitPercentiles(1_000, 0.5, 0.9, 0.99, 0.999, 1.0)
    assert wait_percentiles(np.array([0.25])) == WaitPercentiles(1, *[0.25] * 5)
    assert wait_percentiles(np.array([])).articles == 0


def test_a_wait_counts_from_when_the_article_was_due() -> None:
    """An article that is sent a second late has waited for that second, too, and is counted as late."""
    trial = Trial("run-1", np.array([0.0, 0.1]))
    trial.note_sent(0, LATE_S / 2)
    trial.note_sent(1, 1.1)
    trial.note_verdict("run-1-0", 0.02, is_flag=False)
    trial.note_verdict("run-1-1", 1.3, is_flag=False)
    report = trial.report()
    assert report.waits.longest == pytest.approx(1.2)
    assert report.late == 1
    assert report.late_by_s == pytest.approx(1.0)


def test_other_verdicts_are_counted_and_ignored() -> None:
    """Those of another run, of no run, of numbers that were not sent, and second ones."""
    trial = trial_of(3)
    assert trial.note_verdict("run-1-2", 1.0, is_flag=True)
    for other in ("run-2-2", "run-1-3", "run-1-x", "run-1-²", "2", "", "run-1-first-0"):
        assert not trial.note_verdict(other, 1.0, is_flag=True)
    assert not trial.note_verdict("run-1-2", 9.0, is_flag=False)
    report = trial.report()
    assert (report.foreign, report.repeated, report.waits.articles) == (7, 1, 1)
    assert report.waits.longest == pytest.approx(0.8)


def test_articles_without_a_verdict_are_named() -> None:
    """Lost, refused and failed ones; those that were not sent are not among them. The message names the first five."""
    trial = trial_of(8)
    trial.sent_s[7] = np.nan
    trial.note_verdict("run-1-0", 1.0, is_flag=False)
    trial.note_refused(429)
    trial.note_failed("Connection refused")
    assert trial.open == 5
    report = trial.report()
    assert report.missing == tuple(f"run-1-{number}" for number in range(1, 7))
    assert (report.planned, report.sent, report.refused, report.failed) == (8, 7, {429: 1}, {"Connection refused": 1})
    assert missing_sentence(report) == (
        "6 articles got no verdict: run-1-1, run-1-2, run-1-3, run-1-4, run-1-5 and 1 more"
    )


def test_flags_of_copies_are_told_from_others() -> None:
    """A flag on an article that is no copy is a wrong one, or the text was sent before."""
    trial = trial_of(4)
    trial.is_copy[1:3] = True
    for number in range(4):
        trial.note_verdict(f"run-1-{number}", 1.0, is_flag=number in {1, 3})
    report = trial.report()
    assert (report.copies, report.copies_flagged, report.originals_flagged) == (2, 1, 1)


def test_the_warm_up_is_left_out_of_percentiles_and_not_of_minutes() -> None:
    """The first article took ten seconds."""
    trial = Trial("run-1", np.array([0.0, 5.0, 61.0]))
    for number, at_s in enumerate([10.0, 5.5, 61.5]):
        trial.note_sent(number, trial.due_s[number])
        trial.note_verdict(f"run-1-{number}", at_s, is_flag=False)
    report = trial.report(warm_up_s=5.0)
    assert (report.waits.articles, report.waits.longest) == (2, 0.5)
    assert [(minute.articles, minute.longest) for minute in report.minutes] == [(2, 10.0), (1, 0.5)]
