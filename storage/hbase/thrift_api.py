"""The classes of HBase's first Thrift interface, as happybase ships its definition. They carry no types."""

from importlib import resources
from typing import Any, Final

import thriftpy2

_API: Final[Any] = thriftpy2.load(str(resources.files("happybase") / "Hbase.thrift"), module_name="Hbase_thrift")

Hbase: Final = _API.Hbase
Mutation: Final = _API.Mutation
BatchMutation: Final = _API.BatchMutation
TScan: Final = _API.TScan
DECLARED_ERRORS: Final[tuple[type[Exception], ...]] = (_API.IOError, _API.IllegalArgument, _API.AlreadyExists)
"""What the interface says a call may raise. After any other exception a connection is in an unknown state."""
