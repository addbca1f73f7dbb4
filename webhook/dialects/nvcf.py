"""NVCF's legacy way: one annotation that numbers the NVLink partitions inside one function.

NVCA, NVCF's agent, turns it into a label and a Pod affinity term, where it runs. Ours are the same to the
byte, so that both may touch a Pod in either order; a label which is there already is taken over.

    annotated    all Pods of the namespace with that raw value are one gang, in one clique
    un-annotated, in a miniservice namespace    no Pod waits for another; close together if possible
"""

from dataclasses import replace
from hashlib import sha256
from typing import Final

from gangs import contract
from gangs.notes import Note
from webhook.ask import Ask, Colocation, Gang
from webhook.pod import Pod, Surroundings

_HEX_DIGITS: Final = 18  # of the partition key, between two x


def partition_key(namespace: str, index: str) -> str:
    """NVCA's label value for the annotation's raw value, "" where there is no annotation."""
    digest = sha256(f"{namespace}{index}".encode()).hexdigest()[:_HEX_DIGITS]
    return f"x{digest}x"


def recognise(pod: Pod, around: Surroundings) -> Ask | None:
    index = pod.annotations.get(contract.NVCF_INDEX, "")
    instance_type = around.namespace_labels.get(contract.NVCF_INSTANCE_TYPE)
    if not index and instance_type != contract.NVCF_MINISERVICE:
        return None
    own = max(1, (around.owner.size if around.owner else None) or 1)
    key = _key(pod, index)
    label = pod.labels.get(contract.LABEL_GANG) or key
    clique = (contract.NODE_CLIQUE,)
    if index:
        gang = Gang(label, own, own, contract.SIZE_FROM_PARTITION, required=clique)
    else:
        gang = Gang(label, 1, own, preferred=clique)
    return Ask(
        gang=gang,
        exists=clique,
        colocations=(_colocation(key, required=bool(index)),),
        labels={contract.NVCF_PARTITION: key},
    )


def alongside(ask: Ask, pod: Pod) -> Ask:
    """Add the label and the affinity of an annotated Pod to what another dialect asks for it."""
    index = pod.annotations.get(contract.NVCF_INDEX, "")
    if not index:
        return ask
    key = _key(pod, index)
    message = (
        f'{pod.title}: annotation {contract.NVCF_INDEX}: "{index}" stands beside KAI\'s annotations, '
        "which say who belongs to the gang; its label and affinity are added all the same"
    )
    # Stricter than a level that KAI's only prefer, or a wider one.
    required = tuple(dict.fromkeys((*ask.gang.required, contract.NODE_CLIQUE))) if ask.gang else ()
    return replace(
        ask,
        gang=replace(ask.gang, required=required) if ask.gang else None,
        exists=tuple(dict.fromkeys((*ask.exists, contract.NODE_CLIQUE))),
        colocations=(*ask.colocations, _colocation(key, required=True)),
        labels={**ask.labels, contract.NVCF_PARTITION: key},
        notes=(*ask.notes, Note(message)),
    )


def _key(pod: Pod, index: str) -> str:
    return pod.labels.get(contract.NVCF_PARTITION) or partition_key(pod.namespace, index)


def _colocation(key: str, *, required: bool) -> Colocation:
    label = contract.NVCF_PARTITION
    selector = {
        "matchExpressions": [
            {"key": label, "operator": "Exists"},
            {"key": label, "operator": "In", "values": [key]},
        ]
    }
    return Colocation(contract.NODE_CLIQUE, selector, required)
