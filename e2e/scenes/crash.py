"""Scene 6: the extender is killed while members stand at the barrier.

To hold them there, one member waits for its volume: kube-scheduler has chosen its node and waits, before
bind, for a provisioner, and that is us. So the others are at the barrier for as long as we like.
"""

import os
import signal
from typing import Any, Final

from e2e.kube import until
from e2e.scene import Play, spoken
from e2e.stage import GPUS

_NAMESPACE: Final = "scene-crash"
_MEMBERS: Final = 8
_CLAIM: Final = "weights"
_CLASS: Final = "slow"


async def extender_killed_at_the_barrier(play: Play) -> None:
    """The extender is killed (-9) while 7 of 8 stand at the barrier: never a partial gang, all board"""
    kube = play.stage.kube
    await kube.namespace(_NAMESPACE)
    await kube.apply(_NAMESPACE, [_storage_class(), _claim(), *(_member(i) for i in range(_MEMBERS))])
    await until(lambda: _chosen(play), "the slow member's node is chosen, all others are at the barrier")
    pid = play.stage.extender_pid()
    os.kill(pid, signal.SIGKILL)
    play.tell(f"all gates are off, 7 members wait at the barrier; extender (pid {pid}) killed")
    assert play.where(_NAMESPACE) == {}
    await until(lambda: _restarted(play, pid), "the extender runs again")
    await kube.apply(_NAMESPACE, _volume())
    await play.bound(_NAMESPACE, _MEMBERS, seconds=45)
    play.tell(f"the extender is back, the volume is there; bound: {spoken(play.where(_NAMESPACE))}")
    assert list(play.where(_NAMESPACE).values()) == [_MEMBERS]
    play.clean(_NAMESPACE)
    await kube.clear(_NAMESPACE)
    await kube.run("-n", _NAMESPACE, "delete", f"pvc/{_CLAIM}", "pv/weights", "--wait=false")


async def _chosen(play: Play) -> bool:
    claims = await play.stage.kube.items("pvc", _NAMESPACE)
    chosen = any(
        "volume.kubernetes.io/selected-node" in (c["metadata"].get("annotations") or {}) for c in claims
    )
    pods = await play.stage.kube.items("pods", _NAMESPACE)
    return chosen and not any(pod["spec"].get("schedulingGates") for pod in pods)


async def _restarted(play: Play, before: int) -> bool:
    try:
        return play.stage.extender_pid() != before
    except (OSError, RuntimeError):
        return False


def _member(index: int) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "schedulerName": "allaboard",
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "worker",
                "image": "registry.invalid/worker:1",
                "resources": {"limits": {"nvidia.com/gpu": str(GPUS)}},
            }
        ],
    }
    if index == 0:
        spec["volumes"] = [{"name": _CLAIM, "persistentVolumeClaim": {"claimName": _CLAIM}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"rank-{index}",
            "labels": {"allaboard.dev/gang": "ranks"},
            "annotations": {
                "allaboard.dev/min-member": str(_MEMBERS),
                "allaboard.dev/topology-required": "nvidia.com/gpu.clique",
            },
        },
        "spec": spec,
    }


def _storage_class() -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": _CLASS},
        "provisioner": "example.com/by-hand",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _claim() -> dict[str, Any]:
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


def _volume() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": _CLAIM},
        "spec": {
            "storageClassName": _CLASS,
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": _NAMESPACE, "name": _CLAIM},
            "hostPath": {"path": "/var/empty"},
        },
    }
