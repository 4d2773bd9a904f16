"""Write the alert rules as a manifest for the Prometheus operator: ``python -m deploy.kubernetes.rules``.

Run it after a change of the rules; a test fails if that was forgotten. Links to runbooks begin with ``--runbooks URL``,
by default with the external label "runbooks" of Prometheus and a path in this repository.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

try:
    import yaml
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    sys.exit(f"This needs {error.name} from the test environment; create that with: make .venv/test.stamp")

RULES: Final = Path(__file__).parents[1] / "prometheus" / "rules"
MANIFEST: Final = Path(__file__).parent / "components" / "monitoring" / "prometheus-rule.yaml"
_HEAD: Final = "# Generated from deploy/prometheus/rules by: python -m deploy.kubernetes.rules\n"
_WIDTH: Final = 120
_BY_LABEL: Final = "{{ $externalLabels.runbooks }}docs/operate/runbooks/"
"""The beginning of the address of every runbook in the rule files."""
_ANNOTATION: Final = "runbook_url"


def manifest(rules: Path, runbooks: str = _BY_LABEL) -> str:
    """Return the manifest for a folder of rule files. Without files it has no groups.

    The addresses of runbooks begin with ``runbooks``.
    """
    files = sorted(path for path in rules.glob("*") if path.suffix in {".yml", ".yaml"})
    groups: list[Any] = [group for path in files for group in yaml.safe_load(path.read_text())["groups"]]
    for texts in (rule.get("annotations", {}) for group in groups for rule in group["rules"]):
        if _ANNOTATION in texts:
            texts[_ANNOTATION] = runbooks + texts[_ANNOTATION].removeprefix(_BY_LABEL)
    document = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "dupwatch", "namespace": "dupwatch", "labels": {"app.kubernetes.io/name": "dupwatch"}},
        "spec": {"groups": groups},
    }
    return _HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=_WIDTH)


def main(arguments: Sequence[str]) -> int:
    """Write the manifest and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deploy.kubernetes.rules", description="Write the PrometheusRule.")
    parser.add_argument("--runbooks", default=_BY_LABEL, metavar="URL", help="beginning of links to runbooks")
    parser.add_argument("--to", type=Path, default=MANIFEST, metavar="FILE", help="file to write")
    chosen = parser.parse_args(arguments)
    chosen.to.write_text(manifest(RULES, chosen.runbooks), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
