"""Finding the development feed."""

from pathlib import Path

import pytest

from tests.dev_feed import FOLDER_VARIABLE, REQUIRED_VARIABLE, dev_data_dir


def test_missing_feed_skips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the feed is missing, a test that needs it is skipped and says which variable names the folder."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.delenv(REQUIRED_VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match=FOLDER_VARIABLE):
        dev_data_dir()


def test_missing_feed_fails_where_required(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the feed is required, its absence is a failure, so that no run passes by skipping."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setenv(REQUIRED_VARIABLE, "1")
    with pytest.raises(pytest.fail.Exception, match=FOLDER_VARIABLE):
        dev_data_dir()
