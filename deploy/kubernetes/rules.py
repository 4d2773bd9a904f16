"""Write the alert rules as a manifest for the Prometheus operator, from the rule files of Prometheus.

Run ``python -m deploy.kubernetes.rules`` after a change of the rules; a test fails if that was forgotten.
"""

import sys
from pathlib import Path
from typing import Any, Final

try:
    import yaml
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    sys.exit(f"It needs {error.name}, which only the tests' environment has; make that with: make .venv/test.stamp")

RULES: Final = Path(__file__).parents[1] / "prometheus" / "rules"
MANIFEST: Final = Path(__file__).parent / "components" / "monitoring" / "prometheus-rule.yaml"
_HEAD: Final = "# Generated from deploy/prometheus/rules by: python -m deploy.kubernetes.rules\n"
_WIDTH: Final = 120


def manifest(rules: Path) -> str:
    """Return the manifest for a folder of rule files. Without files it has no groups."""
    files = sorted(path for path in rules.glob("*") if path.suffix in {".yml", ".yaml"})
    groups: list[Any] = [group for path in files for group in yaml.safe_load(path.read_text())["groups"]]
    document = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "dupwatch", "namespace": "dupwatch", "labels": {"app.kubernetes.io/name": "dupwatch"}},
        "spec": {"groups": groups},
    }
    return _HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=_WIDTH)


def main() -> int:
    """Write the manifest and return the exit code."""
    MANIFEST.write_text(manifest(RULES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
