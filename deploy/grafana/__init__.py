"""Grafana dashboards as code: ``python -m deploy.grafana.build`` writes the files in ``dashboards/``.

panels.py      panels, rows and dashboards
layout.py      the positions of panels, and their JSON
feed.py        verdicts, sources, floods, similarity and drift
pipeline.py    throughput, latency, lag, stages and errors
store.py       calls, latency, the cost of judging and limits
"""
