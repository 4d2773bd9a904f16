"""The time per article, as measured for the documentation. Used unless the user's own machine was measured."""

from typing import Final, NamedTuple

from consumer.store_tools.text_sizes import Language

MEASURED_ON: Final = "two cores of a virtual machine, 2026-11-21 to 28"
_START_US: Final = 20.0
_CHAR_US: Final[dict[Language, float]] = {"zh": 0.09, "mixed": 0.06, "en": 0.035}
"""Time of a fingerprint with the compiled engine: a fixed part, and a part for each character."""
_LMDB_JUDGE_US: Final = 475.0


class Speed(NamedTuple):
    """The time per article in µs: fingerprint and judging in a consumer, processor time of gateway and region server.

    ``waiting_us`` is the part of judging in which the consumer waits without using a processor. ``articles_a_s`` is the
    throughput of a whole run, or None if it was not measured.
    """

    fingerprint_us: float
    judge_us: float
    gateway_us: float = 0.0
    server_us: float = 0.0
    waiting_us: float = 0.0
    articles_a_s: float | None = None

    @property
    def busy_us(self) -> float:
        """Processor time in all components."""
        return self.fingerprint_us + self.judge_us - self.waiting_us + self.gateway_us + self.server_us

    @property
    def consumer_a_s(self) -> float:
        """Articles a second of one consumer."""
        return self.articles_a_s or 1e6 / (self.fingerprint_us + self.judge_us)


_HBASE: Final = {
    "4x16": Speed(0, judge_us=1_592, gateway_us=430, server_us=1_240, waiting_us=914),
    "16x28": Speed(0, judge_us=1_247, gateway_us=293, server_us=928, waiting_us=658),
}
"""The speeds on HBase by plan, with 10⁶ articles in the window (docs/contributing/benchmarks.md)."""


def documented_speed(chars: float, language: Language, plan: str, *, remote: bool) -> Speed:
    """Return the speed measured for docs/contributing/benchmarks.md, for texts of this length."""
    fingerprint_us = _START_US + chars * _CHAR_US[language]
    if not remote:
        return Speed(fingerprint_us, _LMDB_JUDGE_US)
    return _HBASE.get(plan, _HBASE["16x28"])._replace(fingerprint_us=fingerprint_us)
