"""Remakes the pictures of the documentation from ``dupwatch demo``: ``python -m tests.browser.pictures``."""

import base64
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlencode

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.browser.driving import chromium, wait_for
from tests.cli.command import ONE_SECRET, ROOT, TIMEOUT_S, start_anew

FOLDER: Final = ROOT / "docs" / "images"
WIDTH: Final = 1280
FLAG_HEIGHT: Final = 780
"""Not the whole page: with all of the texts the picture would have too many bytes."""
BYTES_MAX: Final = 200_000
ARTICLE: Final = "en-football-cup.combined"
"""Words are replaced, sentences moved and lines added, so that every kind of difference is to be seen."""
COPIES: Final = 3
FLAG: Final = 'a[href^="/flags/"]'
STORY: Final = 'a[href^="/stories/"]'
RATE: Final = 10
"""Articles a second: few enough that the copies of a story arrive in different seconds, as its chart shows."""
_MARGIN: Final = 24


def main() -> None:
    """Write ``docs/images/flag.png`` and ``docs/images/story.png``."""
    with TemporaryDirectory() as folder, _demo() as url, chromium(Path(folder)) as browser:

        def all_of(selector: str) -> list[WebElement]:
            return browser.find_elements(By.CSS_SELECTOR, selector)

        browser.get(f"{url}look-up?{urlencode({'id': ARTICLE})}")
        _reload_until(browser, lambda: all_of(STORY))
        flag, story = (all_of(link)[0].get_attribute("href") or "" for link in (FLAG, STORY))
        browser.get(flag)
        wait_for(browser, lambda: all_of(".side ins"))
        _write(browser, FOLDER / "flag.png", FLAG_HEIGHT)
        browser.get(story)
        _reload_until(browser, lambda: len(all_of("ol.queue > li")) == COPIES)
        end = all_of("ol.queue")[0].rect
        _write(browser, FOLDER / "story.png", round(end["y"] + end["height"]) + _MARGIN)


@contextmanager
def _demo() -> Iterator[str]:
    """Yield the address of a demo's console once the whole sample feed is judged; without the packages it has none."""
    process = start_anew("demo", "--forever", "--rate", str(RATE), *ONE_SECRET, stderr=PIPE)
    try:
        assert process.stderr is not None
        lines = (line.decode() for line in process.stderr)
        any(line.startswith("The feed has ended") for line in lines)
        yield next(line for line in lines if "no sign-in needed" in line).split()[-1]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)


def _reload_until(browser: Chrome, holds: Callable[[], Any]) -> None:
    """Reload the page until it shows this: the console follows the feed within a second."""

    def held() -> bool:
        if holds():
            return True
        browser.refresh()
        return False

    wait_for(browser, held)


def _write(browser: Chrome, path: Path, height: int) -> None:
    """Write the page as a picture, as it is in a window of this height."""
    # On a mobile device there is no scroll bar.
    metrics = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    data = base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])
    if len(data) > BYTES_MAX:
        sys.exit(f"{path} would have {len(data)} bytes; the limit is {BYTES_MAX}")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    sys.stdout.write(f"{path.relative_to(ROOT)}: {len(data)} bytes\n")


if __name__ == "__main__":
    main()
