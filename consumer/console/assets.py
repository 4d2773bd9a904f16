"""The style sheet and the script of all pages. They are part of each page, and its policy has their digests.

The style sheet begins as that of a consumer's flags page; what is in ``static`` follows in the order of the names.
"""

import hashlib
from base64 import b64encode
from pathlib import Path
from typing import Final

from consumer.web import style

_FOLDER: Final = Path(__file__).parent / "static"


def _joined(ending: str) -> str:
    """Return all files with this ending, in the order of their names."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(_FOLDER.glob(f"*.{ending}")))


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


CSS: Final = style.CSS + _joined("css")
SCRIPT: Final = _joined("js")

POLICY: Final = (
    f"default-src 'none'; style-src {_digest(CSS)}; script-src {_digest(SCRIPT)}; img-src 'none'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: this style sheet, this script, forms to this console, and nothing else from anywhere."""
