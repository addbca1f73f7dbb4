"""Priority within a queue: PriorityClasses that KAI's labels name are put on the Pods."""

from typing import Any

from gangs import contract
from tests.webhook.world import (
    CLIQUE,
    MNNVL,
    REQUIRED_LEVEL,
    TOPOLOGY,
    Json,
    World,
    admit,
    notes,
    operations,
    parallel,
    patched,
    pod,
)

IN_A_CLIQUE = {TOPOLOGY: "nvcf-mnnvl-topology", REQUIRED_LEVEL: CLIQUE}
FILLED: dict[str, Any] = {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}


def with_classes(world: World, *names: str) -> World:
    for name in names:
        body: Json = {"metadata": {"name": name}, "value": 50}
        world.objects[f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}"] = body
    return world


def labelled(name: str, key: str = contract.KAI_PRIORITY) -> dict[str, str]:
    return {key: name} if name else {}


async def test_rays_label_goes_before_kais() -> None:
    both = {**labelled("train"), **labelled("build", contract.KAI_RAY_PRIORITY)}
    llm = parallel("llm", IN_A_CLIQUE, labels=both)
    stored = await admit(pod(llm), with_classes(World(MNNVL, llm), "train", "build"))
    assert stored["spec"]["priorityClassName"] == "build"


async def test_a_class_that_does_not_exist_is_noted_and_ignored() -> None:
    llm = parallel("llm", IN_A_CLIQUE, labels=labelled("gone"))
    stored = await admit(pod(llm), World(MNNVL, llm))
    assert "priorityClassName" not in stored["spec"]
    message = 'statefulset default/llm: label priorityClassName: "gone" is no PriorityClass and is ignored'
    assert notes(stored) == [(message, False)]


async def test_seen_again_after_the_api_server_filled_it_in_nothing_is_changed() -> None:
    llm = parallel("llm", IN_A_CLIQUE, labels=labelled("train"))
    world = with_classes(World(MNNVL, llm), "train")
    first: dict[str, Any] = await admit(pod(llm, **FILLED), world)
    first["spec"] |= {"priority": 50, "preemptionPolicy": "PreemptLowerPriority"}
    assert await operations(first, world) == []
    assert patched(first, []) == first


async def test_an_owner_that_is_not_to_be_preempted_says_so_for_its_pods() -> None:
    llm = parallel("llm", IN_A_CLIQUE, labels={contract.KAI_PREEMPTIBILITY: "non-preemptible"})
    stored = await admit(pod(llm), World(MNNVL, llm))
    assert stored["metadata"]["labels"][contract.KAI_PREEMPTIBILITY] == "non-preemptible"
