"""A gang that stands at the barrier for as long as one likes.

One member waits for its volume: kube-scheduler has chosen its node and waits, in PreBind, for a
provisioner, and that is whoever calls provide(). All other members have passed every check meanwhile.
"""

from typing import Any, Final

from e2e.kube import Kube, until
from e2e.pods import member

Json = dict[str, Any]

_CLAIM: Final = "weights"
_CLASS: Final = "slow"
_SELECTED: Final = "volume.kubernetes.io/selected-node"


def gang(members: int) -> list[Json]:
    """Bare Pods of one gang (floor: all of them), a whole node each, and the claim of the first."""
    return [_storage_class(), _claim(), *(_member(i, members) for i in range(members))]


async def at_the_barrier(kube: Kube, namespace: str) -> None:
    """Wait until the slow member's node is chosen and nobody is gated: all others are at the barrier."""

    async def waits() -> bool:
        claims = await kube.items("pvc", namespace)
        chosen = any(_SELECTED in (c["metadata"].get("annotations") or {}) for c in claims)
        pods = await kube.items("pods", namespace)
        return chosen and not any(pod["spec"].get("schedulingGates") for pod in pods)

    await until(waits, "the slow member's node is chosen, all others are at the barrier")


async def provide(kube: Kube, namespace: str) -> None:
    """Make the volume: the slow member goes on."""
    await kube.apply(namespace, _volume(namespace))


async def clear(kube: Kube, namespace: str) -> None:
    """Remove claim and volume."""
    await kube.run(
        "-n", namespace, "delete", f"pvc/{_CLAIM}", f"pv/{_CLAIM}", "--wait=false", "--ignore-not-found"
    )


def _member(index: int, members: int) -> Json:
    volumes = [{"name": _CLAIM, "persistentVolumeClaim": {"claimName": _CLAIM}}] if index == 0 else []
    return member(f"rank-{index}", "ranks", members, volumes=volumes)


def _storage_class() -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": _CLASS},
        "provisioner": "example.com/by-hand",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _claim() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": _CLAIM},
        "spec": {
            "storageClassName": _CLASS,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def _volume(namespace: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": _CLAIM},
        "spec": {
            "storageClassName": _CLASS,
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": namespace, "name": _CLAIM},
            "hostPath": {"path": "/var/empty"},
        },
    }
