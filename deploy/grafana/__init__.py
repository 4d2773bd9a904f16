"""Grafana dashboards as code: ``python -m deploy.grafana.build`` writes the files in ``dashboards/``.

panels.py      panels, rows and dashboards
layout.py      the positions of panels, and their JSON
feed.py        verdicts, sources, banks, floods, similarity and drift
pipeline.py    throughput, latency, lag, stages and errors
store.py       calls, latency, the cost of judging and limits
service.py     requests to the HTTP service, access, and articles to store
console.py     the moderators' console
build.py       writes the dashboards
"""
