"""The file that holds the secret of a store: 64 hexadecimal digits on one line, readable by its owner alone."""

import os
from pathlib import Path
from typing import Final

from consumer.fingerprint import Secret
from consumer.text.redaction import remember
from storage.files import make_file, sync_folder

MODE: Final = 0o600
_BYTES_MAX: Final = 1_024


def read_secret(path: Path) -> Secret:
    """Return the secret in a file, which messages never show from now on.

    Raises ``OSError`` if the file cannot be read, and ``ValueError``, with the path and without the content, if it
    holds anything else.
    """
    with path.open("rb") as file:
        content = file.read(_BYTES_MAX)
    try:
        secret = Secret.from_hex(content.decode("ascii").strip())
    except ValueError as error:
        raise ValueError(f"{path} is not a secret file: it has to hold 64 hexadecimal digits") from error
    remember(secret.hex())
    return secret


def write_secret(path: Path, secret: Secret) -> None:
    """Write a new file with mode 0600, on disk when this returns. Raises ``FileExistsError`` if the name is taken."""
    descriptor = make_file(path, os.O_WRONLY, MODE)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{secret.hex()}\n")
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
