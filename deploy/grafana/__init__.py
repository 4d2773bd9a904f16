"""Grafana's dashboards as code: ``python -m deploy.grafana.build`` writes what is in ``dashboards/``.

panels.py      a panel, a row, a dashboard: frozen, with what Grafana wants to be told of each
layout.py      where panels stand, and the JSON of it all
feed.py        what comes in and what is said of it
pipeline.py    how well articles come through
store.py       what the store does, and what judging costs
"""
