"""A Helm chart that runs dupwatch, and the programs that keep it current.

::

    dupwatch/      the chart; docs/operate/kubernetes.md
    values/        for each overlay of deploy/kubernetes the values with which the chart makes the same objects
    schema.py      values.schema.json, from the comments of values.yaml and the settings of dupwatch
    comparison.py  the chart's objects and those of an overlay: what differs
    compared.json  digests of what was equal when the chart was last compared
"""
