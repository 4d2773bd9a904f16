"""Whether connections that do nothing, or little, hold up others: ``python -m benchmarks.service.connections``.

A service of its own with the defaults, over an empty LMDB store, is asked at held rates (``benchmarks.service.vegeta``)
for ``/healthz`` and for checks of texts of 500 characters, each sent once: first with nobody else connected, then
beside a crowd of idle and slow clients. Of the idle ones half have sent nothing, and half have had an answer; of the
slow ones half send a head, and half a body, a byte at a time. Whoever is closed comes back at once.
"""

import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec
import typer

from benchmarks.service.serving import serving
from benchmarks.service.vegeta import Answers, Request, VegetaOption, attack
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.stress.made_texts import make_feed

PART: Final = "service_connections"
CHARS: Final = 500
IDLE: Final = 1_000
SLOW: Final = 200
_TURN_S: Final = 0.25
"""A slow client sends a byte in each turn."""
_CONNECT_S: Final = 30.0
_ASKED: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
_HEAD: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
_BODY: Final = (
    b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
)


class _Slow:
    """A client that connects, says something, and goes on byte by byte, or not at all."""

    def __init__(self, address: tuple[str, int], opening: bytes, byte: bytes) -> None:
        self._address = address
        self._opening = opening
        self._byte = byte
        self._connection = self._connected()

    def go_on(self) -> int:
        """Send the next byte; return 1 where the connection was closed and made anew, otherwise 0."""
        if self._is_open():
            return 0
        self.close()
        self._connection = self._connected()
        return 1

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()

    def _connected(self) -> socket.socket:
        connection = socket.create_connection(self._address, _CONNECT_S)
        connection.sendall(self._opening)
        connection.settimeout(0)
        return connection

    def _is_open(self) -> bool:
        """Send the next byte, once it is known that nobody has closed the connection."""
        try:
            while self._connection.recv(4_096):
                # An answer, or a problem before the end.
                continue
        except BlockingIOError:
            return self._sends()
        except OSError:
            pass
        return False

    def _sends(self) -> bool:
        try:
            self._connection.send(self._byte)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


class Crowd:
    """Clients that do nothing or little, in a thread of their own; ``returned`` counts who was closed and came back."""

    def __init__(self, url: str, idle: int, slow: int) -> None:
        place = urlsplit(url)
        address = (place.hostname or "", place.port or 0)
        kinds = [((b"", b""), (_ASKED, b""))] * (idle // 2) + [((_HEAD, b"x"), (_BODY, b" "))] * (slow // 2)
        self._clients = [_Slow(address, *kind) for pair in kinds for kind in pair]
        self.returned = 0
        self._ended = threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="crowd", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Disconnect all. Raises ``RuntimeError`` where one could not come back."""
        self._ended.set()
        self._thread.join()
        for client in self._clients:
            client.close()
        if self._error is not None:
            raise RuntimeError("a client of the crowd cannot connect any more") from self._error

    def _run(self) -> None:
        try:
            while not self._ended.wait(_TURN_S):
                self.returned += sum(client.go_on() for client in self._clients)
        except OSError as error:
            self._error = error


@contextmanager
def crowded(url: str, idle: int = IDLE, slow: int = SLOW) -> Iterator[Crowd]:
    """Have a crowd connected while this is entered."""
    crowd = Crowd(url, idle, slow)
    try:
        yield crowd
    finally:
        crowd.close()


def measured(program: str, url: str, rates: Sequence[int], seconds: int) -> dict[str, Answers]:
    """Ask for both routes at the same time, and return the answers of each."""
    probes, checks = (rate * seconds for rate in rates)
    texts = make_feed(checks, CHARS, copies_share=0.0, seed=time.time_ns() % (1 << 31))
    asked = {
        "/healthz": [Request(f"{url}/healthz", method="GET", headers={})] * probes,
        "/v1/check": [
            Request(f"{url}/v1/check", msgspec.json.encode({"articles": [{"body": text.body}]})) for text in texts
        ],
    }
    with ThreadPoolExecutor(len(asked)) as pool:
        running = {
            route: pool.submit(attack, program, requests, rate=rate)
            for (route, requests), rate in zip(asked.items(), rates, strict=True)
        }
        return {route: answers.result() for route, answers in running.items()}


def rows_of(beside: str, found: dict[str, Answers]) -> list[Row]:
    """What was found beside a crowd, or nobody."""
    return [
        {
            "beside": beside,
            "route": route,
            "sent": len(answers.statuses),
            "not a 200": answers.failed,
            **{f"p{percent}, ms": answers.percentile(percent) for percent in (50, 99)},
            "longest, ms": float(answers.latencies_ms.max()),
        }
        for route, answers in found.items()
    ]


def main(  # noqa: PLR0913  # options of a command
    program: VegetaOption = "vegeta",
    checks: Annotated[int, typer.Option(min=1, help="Checks a second.")] = 50,
    probes: Annotated[int, typer.Option(min=1, help="Probes a second.")] = 20,
    seconds: Annotated[int, typer.Option(min=1)] = 60,
    idle: Annotated[int, typer.Option(min=0)] = IDLE,
    slow: Annotated[int, typer.Option(min=0)] = SLOW,
    *,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure latencies beside idle and slow clients."""
    with (
        tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as folder,
        serving(f"lmdb:{folder}/store", "nowhere:") as service,
    ):
        measured(program, service.url, (probes, checks), 5)
        rows = rows_of("nobody", measured(program, service.url, (probes, checks), seconds))
        with crowded(service.url, idle, slow) as crowd:
            rows += rows_of(f"{idle} idle, {slow} slow", measured(program, service.url, (probes, checks), seconds))
            tell(f"{crowd.returned} connections of the crowd were closed and made anew")
    publish(PART, f"{checks} checks and {probes} probes a second, LMDB", rows, out=out, idle=idle, slow=slow)


if __name__ == "__main__":
    typer.run(main)
