"""What a kind of store can say about a configured store before it is used, and what its options need of the machine.

A kind that has something to check offers it in ``StoreKind.checks`` and ``StoreKind.needs``; ``dupwatch doctor`` runs
and reports it. Nothing here changes a store.
"""

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple


class StoreFinding(NamedTuple):
    """One sentence that says what was found and, unless it is ``ok``, one that says what to do.

    With a ``warning`` a run works. Otherwise it would end: because of a setting (``misconfigured``), as with a
    ``StoreRefused`` (``refused``), or as with any other ``StoreError`` (``broken``).
    """

    status: Literal["ok", "warning", "misconfigured", "refused", "broken"]
    found: str
    remedy: str = ""


class StoreCheck(NamedTuple):
    """A named check. ``run`` yields findings, at least one within ``deadline_s``, and may raise ``StoreError``."""

    name: str
    run: Callable[[], Iterable[StoreFinding]]
    deadline_s: float = 15.0


class StoreTls(NamedTuple):
    """The PEM files with which a store is reached, and the section of the settings that names them."""

    section: str
    authorities: str | None
    certificate: str | None
    key: str | None


class StoreNeeds(NamedTuple):
    """What the options of a kind need of this machine, and advice about the options themselves.

    ``connections`` is how many one process may have open. ``tls`` is None without TLS.
    """

    connections: int = 0
    tls: StoreTls | None = None
    advice: tuple[StoreFinding, ...] = ()
