"""Priority within a queue: PriorityClasses that KAI's labels name are put on the Pods."""

from typing import Any

import pytest

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


def a_class(name: str) -> Json:
    return {"kind": "PriorityClass", "metadata": {"name": name}, "value": 50}


def labelled(name: str, key: str = contract.KAI_PRIORITY) -> dict[str, str]:
    return {key: name} if name else {}


@pytest.mark.parametrize(
    ("of_owner", "of_pod", "of_spec", "expected"),
    [
        ("train", "build", "own", "train"),
        ("", "build", "own", "build"),
        ("gone", "build", "own", "build"),
        ("gone", "", "own", "own"),
        ("", "", "own", "own"),
        ("", "", "", None),
        ("train", "", "train", "train"),
    ],
)
async def test_the_queues_priority_is_the_owners_label_else_the_pods_else_the_specs(
    of_owner: str, of_pod: str, of_spec: str, expected: str | None
) -> None:
    llm = parallel("llm", IN_A_CLIQUE, labels=labelled(of_owner))
    world = World(MNNVL, llm, a_class("train"), a_class("build"))
    spec: dict[str, Any] = {**FILLED, **({"priorityClassName": of_spec} if of_spec else {})}
    stored = (await admit(pod(llm, labels=labelled(of_pod), **spec), world))["spec"]
    assert stored.get("priorityClassName") == expected
    changed = expected != (of_spec or None)
    assert [stored.get(key) for key in FILLED] == ([None, None] if changed else list(FILLED.values()))


async def test_rays_label_goes_before_kais() -> None:
    both = {**labelled("train"), **labelled("build", contract.RAY_PRIORITY)}
    llm = parallel("llm", IN_A_CLIQUE, labels=both)
    stored = await admit(pod(llm), World(MNNVL, llm, a_class("train"), a_class("build")))
    assert stored["spec"]["priorityClassName"] == "build"


async def test_a_class_that_does_not_exist_is_noted_and_ignored() -> None:
    llm = parallel("llm", IN_A_CLIQUE, labels=labelled("gone"))
    stored = await admit(pod(llm), World(MNNVL, llm))
    assert "priorityClassName" not in stored["spec"]
    message = 'statefulset default/llm: label priorityClassName: "gone" is no PriorityClass and is ignored'
    assert notes(stored) == [(message, False)]


async def test_a_class_that_can_not_be_read_changes_nothing_and_is_noted() -> None:
    llm = parallel("llm", IN_A_CLIQUE, labels=labelled("train"))
    world = World(MNNVL, llm, a_class("train"))
    world.broken = ("priorityclasses",)
    stored = await admit(pod(llm), world)
    assert "priorityClassName" not in stored["spec"]
    assert any("PriorityClass train could not be read" in message for message, _ in notes(stored))


async def test_seen_again_after_the_api_server_filled_it_in_nothing_is_changed() -> None:
    llm = parallel("llm", IN_A_CLIQUE, labels=labelled("train"))
    world = World(MNNVL, llm, a_class("train"))
    first: dict[str, Any] = await admit(pod(llm, **FILLED), world)
    first["spec"] |= {"priority": 50, "preemptionPolicy": "PreemptLowerPriority"}
    assert await operations(first, world) == []
    assert patched(first, []) == first


async def test_an_owner_that_is_not_to_be_preempted_says_so_for_its_pods() -> None:
    llm = parallel("llm", IN_A_CLIQUE, labels={contract.KAI_PREEMPTIBILITY: "non-preemptible"})
    stored = await admit(pod(llm), World(MNNVL, llm))
    assert stored["metadata"]["labels"][contract.KAI_PREEMPTIBILITY] == "non-preemptible"
