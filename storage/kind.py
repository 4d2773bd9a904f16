"""The description of a kind of store: how its URLs are written, where it is, and how it is opened.

Each kind describes itself next to its implementation; ``storage.kinds`` lists them. Nothing else in the program
parses a store's URL.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from storage.files import FILE_MODE
from storage.interface import Store
from storage.records import CapacityPlan
from storage.watched import StoreReport

_Options = TypeVar("_Options")


class StoreFinding(NamedTuple):
    """A sentence that says what was found and, unless the status is ``ok``, one that says what to do.

    A run works despite a ``warning``. Any other fault would end it: a setting (``misconfigured``), a
    ``StoreRefused`` (``refused``), or any other ``StoreError`` (``broken``).
    """

    status: Literal["ok", "warning", "misconfigured", "refused", "broken"]
    found: str
    remedy: str = ""


class StoreCheck(NamedTuple):
    """A named check, which changes nothing in the store.

    ``run`` yields at least one finding and may raise ``StoreError``. It is abandoned after ``deadline_s``.
    """

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
    """The needs of a kind's options on this machine, and advice about the options themselves.

    ``connections`` is how many one process may have open. ``tls`` is None without TLS.
    """

    connections: int = 0
    tls: StoreTls | None = None
    advice: tuple[StoreFinding, ...] = ()


class DiskLocation(NamedTuple):
    """The directory of a store on this machine, and the files in it that belong to the store."""

    directory: Path
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class StoreArguments:
    """The arguments for opening a store of any kind, which uses those that apply to it.

    ``lifetime_s`` is how long the store must keep a version, ``seen_s`` how long it remembers a text after it was seen
    (0: not beyond the window), ``parts`` whether records have anchors, ``banks`` whether they may have bank
    matches, and ``plan`` the name of the block plan. ``row_postings_max`` is the number of postings up to which a row
    is read whole, or None for the kind's default. ``durability`` says what acknowledged writes survive: a loss of
    power, or only the end of the process. ``answer_s`` replaces the kind's own deadlines, unless it is None. ``report``
    receives connections, retries and commits. ``tell_wait`` is called with a text when an answer takes more than two
    seconds, and with None once there is an answer. ``own`` has the options that only one kind understands.
    """

    lifetime_s: int
    plan: str
    seen_s: int = 0
    parts: bool = False
    banks: bool = False
    row_postings_max: int | None = None
    keep_bodies: bool = True
    durability: Literal["power", "process"] = "power"
    file_mode: int = FILE_MODE
    readonly: bool = False
    answer_s: float | None = None
    report: StoreReport | None = None
    tell_wait: Callable[[str | None], None] | None = None
    own: tuple[object, ...] = ()

    def own_options(self, options: type[_Options]) -> _Options:
        """Return the options of this type, or its defaults."""
        return next((given for given in self.own if isinstance(given, options)), options())


def no_checks(_url: str, _opening: StoreArguments) -> tuple[StoreCheck, ...]:
    """Return no checks, for a kind of store that needs none."""
    return ()


def no_needs(_opening: StoreArguments) -> StoreNeeds:
    """Return no needs, for a kind of store without options of its own."""
    return StoreNeeds()


def one_judge(_opening: StoreArguments) -> int:
    """Return 1, for a kind of store that writes one batch at a time."""
    return 1


def no_warm_up(_opening: StoreArguments) -> float:
    """Return 0, for a kind of store without servers to warm up."""
    return 0


@dataclass(frozen=True, slots=True)
class StoreKind:
    """One kind of store. Only ``open``, ``plan_for`` and running checks may connect or read.

    ``form`` is the full form of its URLs, ``example`` the shortest one, ``note`` what the form does not show, and
    ``pattern`` the regular expression of a whole URL. A ``remote`` store can be out of reach. Only a store that
    ``outlives_run`` can be inspected after the run.

    ``open`` raises ``StoreError``. ``on_disk`` returns None if the store has no files on this machine. ``identity`` is
    the same text however the URL is written; checkpoints keep it. ``same`` tells whether two URLs of this kind name
    one store, as far as the URLs show. ``checks`` returns the checks to run before a store is used; the check whether a
    remote store answers comes last. ``needs`` returns what the options need, whichever kind of store is used.
    ``judges_max`` is how many threads may judge at a time, ``warm_up_s`` how long a run may warm the store up.

    ``plan_for`` records the capacity plan of a store, creates the store if there is none, and returns the recorded
    plan. It never replaces an existing plan. It is None for a kind that cannot create a store from a plan.
    """

    name: str
    form: str
    example: str
    pattern: str
    open: Callable[[str, StoreArguments], Store]
    on_disk: Callable[[str], DiskLocation | None]
    identity: Callable[[str], str]
    same: Callable[[str, str], bool]
    note: str = ""
    remote: bool = False
    outlives_run: bool = True
    checks: Callable[[str, StoreArguments], tuple[StoreCheck, ...]] = no_checks
    needs: Callable[[StoreArguments], StoreNeeds] = no_needs
    judges_max: Callable[[StoreArguments], int] = one_judge
    warm_up_s: Callable[[StoreArguments], float] = no_warm_up
    plan_for: Callable[[str, StoreArguments, CapacityPlan], CapacityPlan] | None = None

    def matches(self, url: str) -> bool:
        """Return whether this is a URL of this kind."""
        return re.fullmatch(self.pattern, url, re.DOTALL) is not None


def no_files(_url: str) -> None:
    """Return None, for a kind of store without files on this machine."""
