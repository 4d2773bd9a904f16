"""Whether the scaler looks at the topic and the group that the consumers read, and knows where to stop."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from deploy.kubernetes.manifests import Document, name_of, of_kind, workloads
from deploy.kubernetes.program import Settings

TRIGGER_FIELDS: Final = frozenset(
    {
        "activationLagThreshold",
        "allowIdleConsumers",
        "bootstrapServers",
        "consumerGroup",
        "excludePersistentLag",
        "lagThreshold",
        "limitToPartitionsWithLag",
        "offsetResetPolicy",
        "partitionLimitation",
        "sasl",
        "scaleToZeroOnInvalidOffset",
        "tls",
        "topic",
        "unsafeSsl",
        "version",
    }
)
"""Of KEDA's trigger ``kafka``: its schema takes any name here, and the scaler passes over those it does not know."""


def scaling_faults(documents: Sequence[Document], settings: Settings) -> Iterator[str]:
    """What is wrong with the scalers of an overlay; nothing where there is none."""
    for scaler in of_kind(documents, "ScaledObject"):
        spec, where = scaler["spec"], name_of(scaler)
        target = spec["scaleTargetRef"]
        scaled = [one for one in of_kind(documents, target["kind"]) if one["metadata"]["name"] == target["name"]]
        if not scaled:
            yield f"{where} scales the {target['kind']} {target['name']}, which is not there"
        if any("replicas" in one["spec"] for one in scaled):
            yield f"{where} and the {target['kind']} {target['name']} both say how many there are"
        most, partitions = spec["maxReplicaCount"], _partitions(documents)
        if most != partitions:
            yield f"{where} goes up to {most} consumers; the topic is made with {partitions} partitions"
        for trigger in spec["triggers"]:
            yield from (f"{where}: {fault}" for fault in _trigger(trigger, documents, settings))


def _trigger(trigger: Mapping[str, Any], documents: Sequence[Document], settings: Settings) -> Iterator[str]:
    given = trigger["metadata"]
    yield from (f"its trigger knows no {name}" for name in sorted(set(given) - TRIGGER_FIELDS))
    brokers, _, topic = settings.sections["source"]["url"].removeprefix("kafka://").partition("/")
    wanted = {
        "bootstrapServers": brokers,
        "topic": topic,
        "consumerGroup": settings.sections["kafka"]["group"],
        "offsetResetPolicy": settings.sections["kafka"]["start"],
    }
    for name, value in wanted.items():
        if given.get(name) != value:
            yield f"its {name} is {given.get(name)}, and the consumers' is {value}"
    named = trigger.get("authenticationRef", {}).get("name")
    if named and not any(one["metadata"]["name"] == named for one in of_kind(documents, "TriggerAuthentication")):
        yield f"it names the TriggerAuthentication {named}, which is not there"


def _partitions(documents: Sequence[Document]) -> int | None:
    for workload in workloads(documents):
        for container in workload.containers:
            arguments = container.get("args", ())
            if "--partitions" in arguments:
                return int(arguments[arguments.index("--partitions") + 1])
    return None
