"""A store whose calls can be prevented between any two of them."""

from collections.abc import Callable

from typing_extensions import override

from storage.interface import Store
from storage.wrapped import Result, StoreCall, WrappedStore


class InterruptibleStore(WrappedStore):
    """Calls ``proceed`` before each call of the store; what that raises is raised instead of making the call.

    A batch may need many calls. Between any two of them its thread reports progress, and may stop: what was written
    so far is found again when the batch is judged again (docs/protocol.md).
    """

    def __init__(self, store: Store, proceed: Callable[[], None]) -> None:
        super().__init__(store)
        self._proceed = proceed

    @override
    def _around(self, name: StoreCall, items: int, call: Callable[[], Result]) -> Result:
        self._proceed()
        return call()
