"""Manifests that run dupwatch on Kubernetes, for kustomize, and the checks of these manifests.

::

    base/, gateway/, components/, overlays/   the manifests; docs/operate/kubernetes.md
    tools.py       kustomize, Helm and the operators' schemas, in a cache outside of the tree
    manifests.py   build an overlay with kustomize, and find the pods in it
    schemas.py     is every field known to the cluster, with the right type
    references.py  does everything named exist: configuration, secrets, accounts, ports, labels
    hardening.py   does every container give up the privileges it does not need
    program.py     do the manifests fit the program: configuration, pages, shutdown time
    network.py     can pods reach the servers in the configuration, and can only dupwatch reach the gateway
    scaling.py     does the scaler watch the topic and the group of the consumers
    check.py       all these checks: python -m deploy.kubernetes.check OVERLAY
    rules.py       the alert rules of deploy/prometheus as a manifest, and as a file of the chart in deploy/helm
    sizing.py      the table of docs/operate/sizing.md, from the figures of dupwatch size
"""
