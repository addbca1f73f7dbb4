"""A Pod that should be a member and is none is told of, once, on its owner and on itself."""

from typing import Any

import pytest

from extender.owners import Owners, wanted
from extender.slipped import SETTLED_SECONDS, Slipped
from gangs import contract
from gangs.pods import Pod
from gangs.reasons import Reason
from tests.builders import make_owner, make_pod, make_shape
from tests.extender.world import Clock, FakeApi

ASKS = {contract.KAI_TOPOLOGY_REQUIRED: "nvidia.com/gpu.clique"}
NAMESPACE = "/api/v1/namespaces/default"


class Watch:
    """What is told of Pods of a StatefulSet llm with these annotations."""

    def __init__(self, annotations: dict[str, str] | None = None) -> None:
        self.clock, self.api, owners = Clock(), FakeApi(), Owners()
        self.api.objects[NAMESPACE] = {"metadata": {"labels": {}}}
        meta = {
            "uid": make_owner("llm").uid,
            "name": "llm",
            "namespace": "default",
            "annotations": ASKS if annotations is None else annotations,
        }
        owners.put(wanted("StatefulSet", {"metadata": meta, "spec": {"template": {}}}))
        self.slipped = Slipped(self.api, owners, (contract.SCHEDULER_NAME,), self.clock)

    async def told(self, *pods: Pod) -> list[tuple[str, str, str]]:
        """Reason, kind and name of what the events are about, once everything has settled."""
        for pod in pods:
            self.slipped.consider(pod)
        self.clock.advance(SETTLED_SECONDS)
        said = await self.slipped.tell()
        return [
            (a.reason, a.owner.kind if a.owner else "Pod", a.owner.name if a.owner else a.pod.name)
            for a in said
        ]


def unseen(name: str = "llm-0", **rest: Any) -> Pod:
    facts = {"gang": "", "gated": False, "owner": make_owner("llm"), "created": Clock().now}
    return make_pod(name, **{"scheduler": contract.DEFAULT_SCHEDULER_NAME, **facts, **rest})


async def test_owner_and_pod_are_told_and_only_once_an_owner() -> None:
    watch = Watch()
    assert await watch.told(unseen(), unseen("llm-1")) == [
        (Reason.SLIPPED, "StatefulSet", "llm"),
        (Reason.SLIPPED, "Pod", "llm-0"),
    ]
    assert await watch.told(unseen("llm-2")) == []


async def test_nothing_is_said_before_its_owner_can_have_been_seen() -> None:
    watch = Watch()
    watch.slipped.consider(unseen())
    assert await watch.slipped.tell() == []


async def test_the_sentence_says_what_to_do() -> None:
    watch = Watch()
    watch.slipped.consider(unseen())
    watch.clock.advance(SETTLED_SECONDS)
    said = await watch.slipped.tell()
    assert "Pod default/llm-0 was created while Allaboard's webhook could not be reached" in said[0].message
    assert "Delete it" in said[0].message


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param({"gang": "llm"}, id="a member"),
        pytest.param({"opted_out": True}, id="opted out"),
        pytest.param({"scheduler": "volcano"}, id="somebody else's"),
        pytest.param({"owner": None}, id="bare"),
        pytest.param({"terminal": True}, id="finished"),
        pytest.param({"namespace": "kube-system"}, id="system"),
        pytest.param({"shape": make_shape(0)}, id="without accelerators, as the webhook never sees it"),
    ],
)
async def test_pods_that_are_as_they_should_be_are_passed_over(rest: dict[str, Any]) -> None:
    assert await Watch().told(unseen(**rest)) == []


async def test_an_owner_that_asks_for_nothing_makes_no_gang() -> None:
    assert await Watch(annotations={}).told(unseen()) == []


async def test_a_pod_that_names_us_is_seen_whatever_it_requests() -> None:
    assert len(await Watch().told(unseen(scheduler=contract.SCHEDULER_NAME, shape=make_shape(0)))) == 2


async def test_a_pod_of_an_nvcf_partition_asks_by_itself() -> None:
    assert len(await Watch(annotations={}).told(unseen(partition_index="0"))) == 2


async def test_a_namespace_that_has_opted_out_is_left_alone() -> None:
    watch = Watch()
    watch.api.objects[NAMESPACE] = {"metadata": {"labels": {contract.LABEL_WEBHOOK: "ignore"}}}
    assert await watch.told(unseen()) == []


async def test_nothing_is_claimed_while_the_api_server_is_away() -> None:
    watch = Watch()
    watch.api.fail(NAMESPACE, 0)
    assert await watch.told(unseen()) == []
