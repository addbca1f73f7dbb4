"""Scene 5: an NVCF function as it is: two annotated partitions and helpers without the annotation."""

from collections import Counter
from pathlib import Path
from typing import Final

from e2e.scene import Play, spoken

_SEED: Final = Path(__file__).parents[2] / "examples" / "nvcf-legacy.yaml"
_NAMESPACE: Final = "scene-nvcf"
_SIZES: Final = {"part-0": 4, "part-1": 2, "helpers": 2}


async def nvcf_legacy_unmodified(play: Play) -> None:
    """examples/nvcf-legacy.yaml, unmodified: each partition whole in one clique, nobody else waits"""
    kube, (tight, other, *full) = play.stage.kube, play.stage.nodes
    await kube.namespace(_NAMESPACE, {"nvca.nvcf.nvidia.io/workload-instance-type": "miniservice"})
    await play.stage.occupy("others", [*tight[3:], *other[9:], *(node for rack in full for node in rack)])
    await kube.apply(_NAMESPACE, _SEED)
    await play.bound(_NAMESPACE, sum(_SIZES.values()))
    play.tell(f"bound: {spoken(play.where(_NAMESPACE))}")
    placed = await _cliques_by_app(play)
    for partition in ("part-0", "part-1"):
        counts = placed[partition]
        assert len(counts) == 1, f"{partition} is in {len(counts)} cliques"
        assert counts.total() == _SIZES[partition]
    play.clean(_NAMESPACE)
    await kube.clear(_NAMESPACE, "others")


async def _cliques_by_app(play: Play) -> dict[str, Counter[str]]:
    homes = {
        node: clique
        for clique, rack in zip(play.stage.cliques, play.stage.nodes, strict=True)
        for node in rack
    }
    placed: dict[str, Counter[str]] = {}
    for pod in await play.stage.kube.items("pods", _NAMESPACE):
        app = pod["metadata"]["labels"]["app"]
        placed.setdefault(app, Counter())[homes[pod["spec"]["nodeName"]]] += 1
    return placed
