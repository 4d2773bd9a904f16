"""Everything a store can raise.

::

    StoreError
    ├── StoreRefused       what lies there is not what was asked for: other settings, another layout, no store
    │   └── StoreDamaged   it is a store, and bytes of it are missing or are not those that were written
    ├── StoreFull          no room left on the disk, or the map limit is reached; nothing is damaged
    └── StoreUnavailable   out of reach for now; the same call may be made again later

A client library's own exceptions never leave an implementation.
"""


class StoreError(Exception):
    """A store could not do what its contract says; the message is a sentence for a person."""


class StoreRefused(StoreError):  # noqa: N818  # it is what the store did, not an error of its own
    """What lies at the place named is not what was asked for."""


class StoreDamaged(StoreRefused):
    """Bytes of the store are missing or are not those that were written. Nothing is written to it any more."""


class StoreFull(StoreError):  # noqa: N818  # as above
    """There is no room left. What was acknowledged is safe; the call that raised left nothing behind."""


class StoreUnavailable(StoreError):  # noqa: N818  # as above
    """The store is out of reach for now. The outcome of the call is unknown; making it again is safe."""
