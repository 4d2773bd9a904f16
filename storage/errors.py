"""All errors that a store can raise.

::

    StoreError
    ├── StoreRefused       wrong place, wrong store or forbidden call: another layout, not a store, read-only
    │   └── StoreDamaged   it is a store, but bytes of it are missing or changed
    ├── StoreFull          the disk is full, or the map limit is reached; nothing is damaged
    └── StoreUnavailable   unreachable for now; the same call may be repeated later

A client library's own exceptions never leave an implementation. ``StartAgain`` is not an error, and never leaves
``Store.together``.
"""

from collections.abc import Sequence


class StoreError(Exception):
    """A store could not do what its contract promises. The message is a sentence for a person."""


class StoreRefused(StoreError):  # noqa: N818  # it is what the store did, not an error of its own
    """The store cannot be used like this: it does not fit the program, is not a store, or forbids the call."""


class StoreDamaged(StoreRefused):
    """Bytes of the store are missing or changed. Repeating the call does not help."""


class StoreFull(StoreError):  # noqa: N818  # as above
    """No space is left. Acknowledged writes are safe; the call or batch that raised the error wrote nothing."""


class StoreUnavailable(StoreError):  # noqa: N818  # as above
    """The store is unreachable for now. The outcome of the call is unknown; repeating it is safe."""


class StartAgain(BaseException):
    """Ends an attempt of ``Store.together``, which then makes another one.

    The work of an attempt must not catch this.
    """


def read_only(store: object) -> StoreRefused:
    """Return the error for a write to a store that was opened for reading only."""
    return StoreRefused(f"The store {store} was opened for reading only.")


def other_layout(store: object, found: bytes, known: Sequence[bytes]) -> StoreRefused:
    """Return the error for a store whose layout this program does not know."""
    *others, last = [layout.decode() for layout in known]
    return StoreRefused(
        f"The store {store} has layout {found.decode(errors='replace')}; this program supports only layouts "
        f"{', '.join(others)} and {last}."
    )
