"""What can only be seen where Allaboard runs in Pods."""

import json
from typing import Any, Final

from e2e.kind.ground import NAMESPACE, Options, rolled_out
from e2e.kube import until
from e2e.scene import Play, Scene, spoken, statefulset

_UPGRADE: Final = "scene-upgrade"
_STRANGER: Final = "scene-stranger"
_PORTS: Final = {"verbs": 10260, "probes": 8081}


async def replaced_while_gangs_wait_and_board(play: Play) -> None:
    """All Pods of Allaboard are replaced while one gang waits and others come: nothing is lost or refused"""
    kube, (near, *full) = play.stage.kube, play.stage.nodes
    members = len(near)
    await kube.namespace(_UPGRADE)
    await play.stage.occupy("others", [near[0], *(node for rack in full for node in rack[1:])])
    await kube.apply(_UPGRADE, statefulset("waiting", members))
    await play.waiting(_UPGRADE, "GangWaiting", "waiting-0")
    for name in ("allaboard-webhook", "allaboard-scheduler"):
        await kube.run("-n", NAMESPACE, "rollout", "restart", f"deployment/{name}")
    await kube.apply(_UPGRADE, statefulset("late", 2))  # while webhooks and leader change
    await rolled_out(kube)
    assert await _ungated(play) == []
    await kube.run("-n", "others", "delete", "pods", f"busy-{near[0]}", "--grace-period=0", "--force")
    await kube.run("-n", _UPGRADE, "delete", "statefulset/late", "--cascade=foreground")
    await play.bound(_UPGRADE, members, seconds=60)
    play.tell(f"all Pods were replaced; then room was made; bound: {spoken(play.where(_UPGRADE))}")
    assert play.where(_UPGRADE) == {"c0000": members}
    play.clean(_UPGRADE)
    await kube.clear(_UPGRADE, "others")


async def _ungated(play: Play) -> list[str]:
    """Pods that the webhook has not seen, or that were let go too early."""
    pods = await play.stage.kube.items("pods", _UPGRADE)
    assert len(pods) == len(play.stage.nodes[0]) + 2
    return [p["metadata"]["name"] for p in pods if not p["spec"].get("schedulingGates")]


def verbs_reached_by_nobody(options: Options) -> Scene:
    """The scene needs an image with Python in it: our own."""

    async def verbs_are_out_of_reach(play: Play) -> None:
        """Another Pod reaches the extender's probes, and its verbs not"""
        kube = play.stage.kube
        await kube.namespace(_STRANGER)
        pods = await kube.items("pods", NAMESPACE, "app.kubernetes.io/name=allaboard-scheduler")
        await kube.apply(_STRANGER, _stranger(options.image, [p["status"]["podIP"] for p in pods]))

        async def done() -> bool:
            [pod] = await kube.items("pods", _STRANGER)
            return pod["status"].get("phase") in ("Succeeded", "Failed")

        await until(done, "the stranger has tried", 60)
        told = json.loads(await kube.run("-n", _STRANGER, "logs", "stranger"))
        play.tell(f"from another Pod: {told}")
        assert told == {"verbs": ["refused"] * len(pods), "probes": ["open"] * len(pods)}
        await kube.clear(_STRANGER)

    return verbs_are_out_of_reach


def _stranger(image: str, addresses: list[str]) -> dict[str, Any]:
    script = f"""
import json, socket
def reach(address, port):
    try:
        socket.create_connection((address, port), 5).close()
    except ConnectionRefusedError:
        return "refused"
    return "open"
print(json.dumps({{n: [reach(a, p) for a in {addresses!r}] for n, p in {_PORTS!r}.items()}}))
"""
    command = ["python3", "-c", script]
    container = {"name": "c", "image": image, "imagePullPolicy": "IfNotPresent", "command": command}
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger"}, "spec": spec}
