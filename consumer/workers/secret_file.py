"""The file with the secret of a store: 64 hexadecimal digits on one line, readable only by its owner."""

import os
from pathlib import Path
from typing import Final

from consumer.fingerprint import Secret
from consumer.text.redaction import remember
from storage.files import make_file, sync_folder

MODE: Final = 0o600
_BYTES_MAX: Final = 1_024


def read_secret(path: Path) -> Secret:
    """Return the secret in a file, and redact it in all messages from now on.

    Raises ``OSError`` if the file cannot be read, and ``ValueError``, with the path but not the content, if the
    content is not a secret.
    """
    with path.open("rb") as file:
        content = file.read(_BYTES_MAX)
    try:
        secret = Secret.from_hex(content.decode("ascii").strip())
    except ValueError as error:
        raise ValueError(f"{path} is not a secret file; it must contain 64 hexadecimal digits") from error
    remember(secret.hex())
    return secret


def write_secret(path: Path, secret: Secret) -> None:
    """Write a new file with mode 0600, and sync it to disk. Raises ``FileExistsError`` if it exists."""
    descriptor = make_file(path, os.O_WRONLY, MODE)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{secret.hex()}\n")
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
