"""Detect texts that are nearly the same as earlier ones.

    >>> import dupwatch
    >>> a = ("The harbour council opened the new ferry terminal on Monday, said the mayor. Ships to all seven islands "
    ...      "leave every hour. Tickets cost four pounds; children and dogs travel free until the end of the month.")
    >>> b = a.replace("Monday", "Tuesday")
    >>> dupwatch.compare(a, b).near
    True
    >>> with dupwatch.open("memory:") as window:
    ...     first, second = window.judge([dupwatch.Article("a", a), {"id": "b", "body": b}])
    >>> first.outcome, second.outcome, second.duplicate_of
    ('unique', 'duplicate', 'a')

The names in ``dupwatch.__all__`` stay compatible from one version to the next. The packages ``consumer`` and
``storage`` are internal and may change in any version. ``dupwatch.__version__`` is the installed version.
"""

from consumer.model.program_version import program_version
from consumer.model.verdict import Match, Released, Verdict
from dupwatch.articles import Article
from dupwatch.errors import ConfigError, Error, InvalidArticle, StoreError
from dupwatch.texts import Comparison, Fingerprint, compare, fingerprint
from dupwatch.window import Check, Repeated, Window, open  # noqa: A004  # as in gzip.open

__all__ = [
    "Article",
    "Check",
    "Comparison",
    "ConfigError",
    "Error",
    "Fingerprint",
    "InvalidArticle",
    "Match",
    "Released",
    "Repeated",
    "StoreError",
    "Verdict",
    "Window",
    "__version__",
    "compare",
    "fingerprint",
    "open",
]

__version__ = program_version()
