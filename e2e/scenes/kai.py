"""Scene 1: a StatefulSet with KAI's annotations, as it is, where one clique would have trapped it."""

from pathlib import Path
from typing import Final

from e2e.scene import Play, spoken

_SEED: Final = Path(__file__).parents[2] / "examples" / "kai-statefulset.yaml"
_NAMESPACE: Final = "scene-kai"


async def kai_statefulset_unmodified(play: Play) -> None:
    """examples/kai-statefulset.yaml, unmodified: whole in one clique"""
    kube, (trap, roomy, *full) = play.stage.kube, play.stage.nodes
    await kube.namespace(_NAMESPACE)
    free = max(2, len(roomy) // 3)
    await play.stage.occupy("others", [*trap[1:], *roomy[free:], *(node for rack in full for node in rack)])
    play.tell(
        "c0000 has 1 free node, where a first Pod would be trapped; "
        f"c0001 has {free}; it needs 2 in one clique"
    )
    await kube.apply(_NAMESPACE, _SEED)
    await play.bound(_NAMESPACE, 2)
    play.tell(f"bound: {spoken(play.where(_NAMESPACE))}")
    assert play.where(_NAMESPACE) == {"c0001": 2}
    play.clean(_NAMESPACE)
    await kube.clear(_NAMESPACE, "others")
