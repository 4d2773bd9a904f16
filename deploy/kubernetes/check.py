"""Check overlays: ``python -m deploy.kubernetes.check OVERLAY...``, in the test environment.

An overlay may have a ``secrets.example.yaml``: the secrets that are created separately, with their keys.
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
    sys.exit(f"The check needs {error.name} from the test environment; create that with: make .venv/test.stamp")

SECRETS: Final = "secrets.example.yaml"


def secrets_of(overlay: Path) -> list[Document]:
    """Return the secrets that are created separately from the overlay; [] if it has no file that lists them."""
    path = overlay / SECRETS
    return read(path.read_text()) if path.exists() else []


def faults(documents: Sequence[Document], secrets: Sequence[Document], schemas: Schemas) -> list[str]:
    """Return the faults of an overlay.

    Faults of the schema are returned alone, since the other checks need valid fields. If dupwatch rejects the
    configuration, the checks that need it are left out.
    """
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
    """Check overlays and return the exit code."""
    parser = argparse.ArgumentParser(description="Check overlays for errors.")
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
        sys.stdout.write("".join(f"{overlay}: {fault}\n" for fault in found or ["ok"]))
        wrong += len(found)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
