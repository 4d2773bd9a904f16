"""dupwatch on a cluster: manifests for kustomize, and what says whether they hold.

::

    base/, gateway/, components/, overlays/   the manifests; docs/kubernetes.md
    tools.py       kustomize and the operators' schemas, into a cache outside of the tree
    manifests.py   what kustomize makes of an overlay, and where in it pods are
    schemas.py     is every field one that the cluster knows, and of the right type
    references.py  is there everything that is named: configuration, secrets, accounts, ports, labels
    hardening.py   what every container has to deny itself
    program.py     do the manifests fit the program: its configuration, its pages, how long it takes to end
    network.py     is a consumer let through to what its configuration names
    scaling.py     does the scaler look at the topic and the group that the consumers read
    check.py       all of that: python -m deploy.kubernetes.check OVERLAY
    rules.py       the alert rules of deploy/prometheus as a manifest
    sizing.py      how large a cluster is needed, by the formulas of docs/sizing.md
"""
