"""The alert rules as the Prometheus operator takes them, from the files that Prometheus takes.

``python -m deploy.kubernetes.rules`` writes the manifest anew; a test says when that was forgotten.
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
_HEAD: Final = "# Made from deploy/prometheus/rules by: python -m deploy.kubernetes.rules\n"
_WIDTH: Final = 120


def manifest(rules: Path) -> str:
    """The manifest for a folder of rule files; without any it has no groups."""
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
    """Write it; the exit code."""
    MANIFEST.write_text(manifest(RULES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
