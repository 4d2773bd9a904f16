"""The messages of the console, as they stand in its code and its templates, and as they are translated."""

from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

import consumer.console
from consumer.console.i18n import DOMAIN, FOLDER

CONSOLE: Final = Path(consumer.console.__file__).parent
_KEYWORDS: Final = {"_": None, "N_": None, "gettext": None, "ngettext": (1, 2)}


def extracted() -> Catalog:
    """Return all messages that code and templates have."""
    found = Catalog(domain=DOMAIN)
    for path, line, message, _comments, context in extract_from_dir(
        str(CONSOLE),
        method_map=[("**.py", "python"), ("templates/**.html", "jinja2")],
        options_map={"templates/**.html": {"trimmed": "true", "silent": "false", "newstyle_gettext": "true"}},
        keywords=_KEYWORDS,
    ):
        found.add(message, locations=[(path, line)], context=context)
    return found


def translated(code: str) -> Catalog:
    """Return the messages of a language."""
    with (FOLDER / code / "LC_MESSAGES" / f"{DOMAIN}.po").open("rb") as file:
        return read_po(file, locale=code, domain=DOMAIN, abort_invalid=True)
