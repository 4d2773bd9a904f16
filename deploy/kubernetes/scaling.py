"""Check that the scaler watches the topic and the group of the consumers, and has the right maximum."""

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
"""Fields of KEDA's trigger ``kafka``: its schema allows any name, and the scaler ignores unknown ones."""


def scaling_faults(documents: Sequence[Document], settings: Settings) -> Iterator[str]:
    """Yield the faults of the scalers of an overlay."""
    for scaler in of_kind(documents, "ScaledObject"):
        spec, where = scaler["spec"], name_of(scaler)
        target = spec["scaleTargetRef"]
        scaled = [found for found in of_kind(documents, target["kind"]) if found["metadata"]["name"] == target["name"]]
        if not scaled:
            yield f"{where} scales the {target['kind']} {target['name']}, which does not exist"
        if any("replicas" in workload["spec"] for workload in scaled):
            yield f"{where} and the {target['kind']} {target['name']} both set the number of replicas"
        consumers_max, partitions = spec["maxReplicaCount"], _partitions(documents)
        if consumers_max != partitions:
            yield f"{where} scales to {consumers_max} consumers, but the topic is created with {partitions} partitions"
        for trigger in spec["triggers"]:
            yield from (f"{where}: {fault}" for fault in _trigger(trigger, documents, settings))


def _trigger(trigger: Mapping[str, Any], documents: Sequence[Document], settings: Settings) -> Iterator[str]:
    given = trigger["metadata"]
    yield from (f"its trigger has no field {name}" for name in sorted(set(given) - TRIGGER_FIELDS))
    brokers, _, topic = settings.sections["source"]["url"].removeprefix("kafka://").partition("/")
    wanted = {
        "bootstrapServers": brokers,
        "topic": topic,
        "consumerGroup": settings.sections["kafka"]["group"],
        "offsetResetPolicy": settings.sections["kafka"]["start"],
    }
    for name, value in wanted.items():
        if given.get(name) != value:
            yield f"its {name} is {given.get(name)}, but the consumers have {value}"
    named = trigger.get("authenticationRef", {}).get("name")
    if named and not any(entry["metadata"]["name"] == named for entry in of_kind(documents, "TriggerAuthentication")):
        yield f"it names the TriggerAuthentication {named}, which does not exist"


def _partitions(documents: Sequence[Document]) -> int | None:
    for workload in workloads(documents):
        for container in workload.containers:
            arguments = container.get("args", ())
            if "--partitions" in arguments:
                return int(arguments[arguments.index("--partitions") + 1])
    return None
