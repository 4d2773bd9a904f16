"""Prints a line for each alert that Alertmanager sends: ``docker compose logs --follow alerts`` shows these lines.

It accepts webhooks at any path. It runs in the image of dupwatch, or wherever dupwatch is installed.
"""

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from typing_extensions import override

ADDRESS: Final = ("", 9095)
BODY_BYTES_MAX: Final = 4 << 20
"""Longer requests are refused. An alert has about a kilobyte."""
_LENGTH_DIGITS_MAX: Final = 9
ANSWER_S: Final = 10.0


def lines_of(notification: Any) -> Iterator[str]:  # noqa: ANN401  # whatever JSON holds
    """Yield a line for each alert: when it began or ended, what it is, and its runbook unless it has ended.

    Raises ``LookupError``, ``TypeError`` or ``AttributeError`` if this is not a notification of Alertmanager.
    """
    for alert in notification["alerts"]:
        labels, texts = alert["labels"], alert.get("annotations", {})
        at = alert["endsAt" if alert["status"] == "resolved" else "startsAt"]
        words = [at, alert["status"], labels.get("severity", ""), f"{labels['alertname']}:", texts.get("summary", "")]
        if alert["status"] != "resolved":
            words += [f"- {texts.get('description', '')}", f"Runbook: {texts.get('runbook_url', '')}"]
        yield _printable(" ".join(map(str, words)))


def _printable(text: str) -> str:
    """Return the text as one line without control characters, since labels may hold any text of a feed."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in " ".join(text.split()))


class AlertReceiver(BaseHTTPRequestHandler):
    """Prints the alerts in each POST request, and answers GET requests for health checks."""

    timeout = ANSWER_S

    def do_GET(self) -> None:
        """Answer a health check."""
        self._answer(200)

    def do_POST(self) -> None:
        """Print a notification; refuse any other body."""
        length = self.headers.get("Content-Length", "")
        is_number = length.isascii() and length.isdecimal() and len(length) <= _LENGTH_DIGITS_MAX
        if not is_number or int(length) > BODY_BYTES_MAX:
            self._answer(413)
            return
        try:
            lines = list(lines_of(json.loads(self.rfile.read(int(length)))))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            self._answer(400)
            return
        # In one piece: other threads print too.
        print("".join(f"{line}\n" for line in lines), end="", flush=True)  # noqa: T201  # its log is its purpose
        self._answer(200)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    @override
    def log_message(self, format: str, *args: object) -> None:  # the name is that of the base class
        """Print nothing, so that the log has only alerts."""


def alert_server(address: tuple[str, int]) -> ThreadingHTTPServer:
    """Return a server that listens at this address.

    It has a thread per request, so a stalled request delays no alert.
    """
    return ThreadingHTTPServer(address, AlertReceiver)


def main() -> int:
    """Serve until the process is stopped."""
    with alert_server(ADDRESS) as server:
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
