"""Writes docs/client_settings.md: ``python -m consumer.kafka.client_settings_page >docs/client_settings.md``."""

import sys
from collections.abc import Iterator
from typing import Final

from consumer.kafka.client_properties import ALIASES, PROPERTIES, Between, Free, Matching, OneOf, Property, Refused

_HEAD: Final = """# Settings of the Kafka client

<!-- Made by python -m consumer.kafka.client_settings_page; edit consumer/kafka/client_properties.py instead. -->

dupwatch reads and writes topics through librdkafka. Its settings go to `[kafka.client]` (consumer and producer),
`[kafka.consumer]` or `[kafka.producer]`; those with a secret value to `[kafka.secret_files]`. Not all may be set: some
would break what dupwatch [promises](streaming.md#what-is-promised). `dupwatch config check`, `dupwatch doctor` and
every command that makes a client refuse them with exit code 2 and a sentence. A setting that is not on this page is
refused as well, because it is misspelt or newer than the page.

A setting in `[kafka.client]` goes to the clients that have it. Give each setting under one of its names.

Some limits also have to fit into one another:

- `kafka.revoke_s` + 10 s is less than `max.poll.interval.ms`
- `kafka.drain_s` + 20 s is at most `kafka.grace_s`, the time that whoever stops a consumer gives it
- three `heartbeat.interval.ms` fit into `session.timeout.ms`
- `message.max.bytes` fits into `queue.buffering.max.kbytes`
"""
_SIDES: Final = {"consumer": "C", "producer": "P", "both": "C, P"}


def page() -> str:
    """The page."""
    return "\n".join(
        (
            _HEAD,
            "## Bounded\n",
            "| setting | client | allowed | why |\n|---|---|---|---|",
            *(f"| {_names(one)} | {_SIDES[one.side]} | {_allowed(one)} | {one.rule.why} |" for one in _bounded()),
            "\n## Refused\n",
            "| setting | client | why |\n|---|---|---|",
            *_rows(Refused),
            "\n## Free\n",
            "| setting | client | why it may be set |\n|---|---|---|",
            *_rows(Free),
            "",
        )
    )


def _bounded() -> Iterator[Property]:
    return (one for one in PROPERTIES.values() if isinstance(one.rule, (Between, OneOf, Matching)))


def _rows(kind: type[Refused | Free]) -> Iterator[str]:
    """Settings of one kind; those with the same reason share a row."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for one in PROPERTIES.values():
        if isinstance(one.rule, kind):
            grouped.setdefault((_SIDES[one.side], one.rule.why), []).append(_names(one))
    return (f"| {', '.join(names)} | {side} | {why} |" for (side, why), names in grouped.items())


def _names(one: Property) -> str:
    others = [f"`{alias}`" for alias, name in ALIASES.items() if name == one.name]
    return f"`{one.name}`" + (f" (also {', '.join(others)})" if others else "")


def _allowed(one: Property) -> str:
    match one.rule:
        case Between(low, high):
            return f"{low:,} to {high:,}"
        case OneOf(values):
            return ", ".join(f"`{value}`" for value in values)
        case Matching():
            return r"letters, digits and `_.@/-`"
        case _:
            return ""


if __name__ == "__main__":
    sys.stdout.write(page())
