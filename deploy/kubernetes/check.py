"""Whether an overlay holds: ``python -m deploy.kubernetes.check OVERLAY...``, with all that the tests need installed.

Beside the overlay may lie ``secrets.example.yaml``: which secrets somebody else makes, and their keys.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

try:
    from deploy.kubernetes import tools
    from deploy.kubernetes.hardening import hardening_faults
    from deploy.kubernetes.manifests import Document, NotBuilt, build, read
    from deploy.kubernetes.network import network_faults
    from deploy.kubernetes.program import WrongConfiguration, program_faults, settings_of
    from deploy.kubernetes.references import reference_faults
    from deploy.kubernetes.scaling import scaling_faults
    from deploy.kubernetes.schemas import Schemas, read_schemas, schema_faults
    from deploy.local.packages import MissingTools
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    sys.exit(
        f"The check needs {error.name}, which only the tests' environment has; make that with: make .venv/test.stamp"
    )

SECRETS: Final = "secrets.example.yaml"


def secrets_of(overlay: Path) -> list[Document]:
    """The secrets that somebody else makes."""
    path = overlay / SECRETS
    return read(path.read_text()) if path.exists() else []


def faults(documents: Sequence[Document], secrets: Sequence[Document], schemas: Schemas) -> list[str]:
    """All that is wrong, as sentences. What does not fit its schema is told first and alone: the rest reads fields."""
    found = list(schema_faults([*documents, *secrets], schemas))
    if found:
        return found
    found = [*reference_faults(documents, secrets), *hardening_faults(documents)]
    try:
        settings = settings_of(documents)
    except WrongConfiguration as error:
        return [*found, str(error)]
    return [
        *found,
        *program_faults(documents, secrets, settings),
        *network_faults(documents, settings),
        *scaling_faults(documents, settings),
    ]


def main() -> int:
    """Check overlays; the exit code."""
    parser = argparse.ArgumentParser(description="Say what is wrong with overlays.")
    parser.add_argument("overlay", type=Path, nargs="+")
    try:
        kustomize, schemas = tools.kustomize(), read_schemas(tools.schemas())
    except (MissingTools, tools.WrongModule) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    wrong = 0
    for overlay in parser.parse_args().overlay:
        try:
            found = faults(build(kustomize, overlay), secrets_of(overlay), schemas)
        except NotBuilt as error:
            found = [str(error)]
        sys.stdout.write("".join(f"{overlay}: {fault}\n" for fault in found or ["is right"]))
        wrong += len(found)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
