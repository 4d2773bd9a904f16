"""Writes the dashboards: ``python -m deploy.grafana.build [--runbooks URL]``."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.grafana.console import CONSOLE
from deploy.grafana.feed import FEED
from deploy.grafana.layout import RUNBOOKS, dashboard_json
from deploy.grafana.panels import Dashboard
from deploy.grafana.pipeline import PIPELINE
from deploy.grafana.service import SERVICE
from deploy.grafana.store import STORE

DASHBOARDS: Final = (CONSOLE, FEED, PIPELINE, SERVICE, STORE)
FOLDER: Final = Path(__file__).with_name("dashboards")


def text_of(dashboard: Dashboard, runbooks: str = RUNBOOKS) -> str:
    """Return the file of a dashboard."""
    return json.dumps(dashboard_json(dashboard, runbooks), indent=1, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write all dashboards; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deploy.grafana.build", description="Write Grafana's dashboards.")
    parser.add_argument("--runbooks", default=RUNBOOKS, metavar="URL", help="beginning of links to runbooks")
    parser.add_argument("--to", type=Path, default=FOLDER, metavar="FOLDER", help="folder to write to")
    chosen = parser.parse_args(arguments)
    chosen.to.mkdir(parents=True, exist_ok=True)
    for dashboard in DASHBOARDS:
        (chosen.to / f"{dashboard.name}.json").write_text(text_of(dashboard, chosen.runbooks), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
