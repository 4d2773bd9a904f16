"""What stores report while they work, and a wrapper that reports how each call ended."""

import time
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, TypeGuard, get_args

from typing_extensions import override

from storage.errors import StartAgain, StoreFull, StoreRefused, StoreUnavailable
from storage.interface import Store
from storage.wrapped import Operation, Result, StoreCall, WrappedStore

TimedOperation = Literal[Operation, "commit"]
"""``commit`` is all that a batch waits for besides its calls: its turn to write, and the commit with its flush."""
Ending = Literal["ok", "unavailable", "full", "refused", "error"]
ConnectionChange = Literal["opened", "refused", "lost"]

_ENDINGS: Final[tuple[tuple[type[Exception], Ending], ...]] = (
    (StoreUnavailable, "unavailable"),
    (StoreFull, "full"),
    (StoreRefused, "refused"),
)
_OPERATIONS: Final = frozenset(get_args(Operation))


class StoreCalled(NamedTuple):
    """A call of a run ended, or a batch was committed."""

    operation: TimedOperation
    ending: Ending
    seconds: float


class StoreConnected(NamedTuple):
    """A connection was opened, could not be opened, or was lost. Stores without connections never report this."""

    change: ConnectionChange


class StoreRepeated(NamedTuple):
    """A call repeats a question, after an error or because no answer came. Embedded stores never report this."""

    operation: Operation


StoreReport = Callable[[StoreCalled | StoreConnected | StoreRepeated], None]
"""Takes what happens in a store; called from the threads that use it, and from its own."""


class WatchedStore(WrappedStore):
    """Times the calls that a run makes and reports them.

    Calls about nothing are not reported, since they ask nothing of a store, nor are those that will be made again.
    """

    def __init__(self, store: Store, report: StoreReport) -> None:
        super().__init__(store)
        self._report = report

    @override
    def _around(self, name: StoreCall, items: int, call: Callable[[], Result]) -> Result:
        if not _is_operation(name) or not items:
            return call()
        began_s = time.perf_counter()
        try:
            result = call()
        except StartAgain:
            raise
        except BaseException as error:
            self._report(StoreCalled(name, ending_of(error), time.perf_counter() - began_s))
            raise
        self._report(StoreCalled(name, "ok", time.perf_counter() - began_s))
        return result


def _is_operation(name: StoreCall) -> TypeGuard[Operation]:
    """Return whether a run makes this call; commands make the others."""
    return name in _OPERATIONS


def ending_of(error: BaseException) -> Ending:
    """Return the ending of a call that raised this."""
    return next((ending for kind, ending in _ENDINGS if isinstance(error, kind)), "error")
