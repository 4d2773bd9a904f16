"""The classes of HBase's Thrift 1 interface, from the definition that happybase ships. They have no type stubs."""

from importlib import resources
from typing import Any, Final

import thriftpy2

_API: Final[Any] = thriftpy2.load(str(resources.files("happybase") / "Hbase.thrift"), module_name="Hbase_thrift")

Hbase: Final = _API.Hbase
Mutation: Final = _API.Mutation
BatchMutation: Final = _API.BatchMutation
TScan: Final = _API.TScan
TRowResult: Final = _API.TRowResult
TCell: Final = _API.TCell
DECLARED_ERRORS: Final[tuple[type[Exception], ...]] = (_API.IOError, _API.IllegalArgument, _API.AlreadyExists)
"""The exceptions that the interface declares. After any other one a connection is in an unknown state."""
