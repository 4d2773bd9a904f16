"""Write the alert rules as a manifest for the Prometheus operator: ``python -m deploy.kubernetes.rules``.

Unless ``--to`` names another file, it also writes them as a file of the Helm chart. Run it after a change of the rules;
a test fails if that was forgotten. ``--runbooks URL`` sets the beginning of links to runbooks in the manifest. By
default they begin with Prometheus's external label "runbooks" and a path in this repository.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
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
CHART_FILE: Final = Path(__file__).parents[1] / "helm" / "dupwatch" / "files" / "rules.yaml"
_HEAD: Final = "# Generated from deploy/prometheus/rules by: python -m deploy.kubernetes.rules\n"
_WIDTH: Final = 120
_BY_LABEL: Final = "{{ $externalLabels.runbooks }}docs/operate/runbooks/"
"""The beginning of the address of every runbook in the rule files."""
_ANNOTATION: Final = "runbook_url"


def manifest(rules: Path, runbooks: str = _BY_LABEL) -> str:
    """Return the manifest for a folder of rule files. Without files it has no groups.

    The addresses of runbooks begin with ``runbooks``.
    """
    document = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "dupwatch", "namespace": "dupwatch", "labels": {"app.kubernetes.io/name": "dupwatch"}},
        "spec": {"groups": _groups(rules, runbooks)},
    }
    return _text(document)


def chart_file(rules: Path) -> str:
    """Return the same groups as a file of the Helm chart. The chart replaces the addresses of runbooks itself."""
    return _text({"groups": _groups(rules, _BY_LABEL)})


def _groups(rules: Path, runbooks: str) -> list[Any]:
    files = sorted(path for path in rules.glob("*") if path.suffix in {".yml", ".yaml"})
    groups: list[Any] = [group for path in files for group in yaml.safe_load(path.read_text())["groups"]]
    for texts in (rule.get("annotations", {}) for group in groups for rule in group["rules"]):
        if _ANNOTATION in texts:
            texts[_ANNOTATION] = runbooks + texts[_ANNOTATION].removeprefix(_BY_LABEL)
    return groups


def _text(document: Mapping[str, Any]) -> str:
    return _HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=_WIDTH)


def main(arguments: Sequence[str]) -> int:
    """Write the manifest and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deploy.kubernetes.rules", description="Write the PrometheusRule.")
    parser.add_argument("--runbooks", default=_BY_LABEL, metavar="URL", help="beginning of links to runbooks")
    parser.add_argument("--to", type=Path, default=MANIFEST, metavar="FILE", help="file to write")
    chosen = parser.parse_args(arguments)
    chosen.to.write_text(manifest(RULES, chosen.runbooks), encoding="utf-8")
    if chosen.to == MANIFEST:
        CHART_FILE.write_text(chart_file(RULES), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
