"""These tests need the compiled engine, which ``make test`` builds where cargo is installed, and says so elsewhere."""

import os
from importlib.util import find_spec

REQUIRED_VARIABLE = "REQUIRE_CORE"

if find_spec("dupwatch_core") is None and os.environ.get(REQUIRED_VARIABLE) != "1":
    collect_ignore_glob = ["test_*.py"]
