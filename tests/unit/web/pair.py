"""A certificate that signs itself, and its key."""

import shutil
import ssl
import subprocess
from pathlib import Path


class Pair:
    """Certificate and key as files, as a tool that renews them leaves them."""

    def __init__(self, folder: Path, days: int = 2) -> None:
        folder.mkdir(parents=True)
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        options = [
            "-subj",
            "/CN=localhost",
            "-days",
            str(days),
            "-out",
            str(self.certificate),
            "-keyout",
            str(self.key),
        ]
        subprocess.run([*command, *options], check=True, capture_output=True)

    @property
    def der(self) -> bytes:
        """The certificate as a client gets it."""
        return ssl.PEM_cert_to_DER_cert(self.certificate.read_text())

    def take(self, other: "Pair") -> None:
        """Become another pair."""
        shutil.copyfile(other.certificate, self.certificate)
        shutil.copyfile(other.key, self.key)
