"""What can't be understood is said (object, field, value, what is allowed), and the Pod is admitted."""

import pytest
from aiohttp.test_utils import TestClient, TestServer

from gangs import contract
from gangs.notes import Note, decode
from tests.webhook.world import (
    BATCH_MIN,
    CLIQUE,
    HOSTNAME,
    MNNVL,
    PREFERRED_LEVEL,
    REQUIRED_LEVEL,
    TOPOLOGY,
    World,
    admit,
    annotations,
    gates,
    labels,
    notes,
    parallel,
    pod,
    pod_terms,
    review,
    with_gang,
    workload,
)
from webhook.app import application
from webhook.lookup import Lookups
from webhook.metrics import Meters
from webhook.mutate import Mutator, UndecidedError

LLM = "statefulset default/llm"
OURS = contract.ANNOTATION_TOPOLOGY_REQUIRED
MIN = contract.ANNOTATION_MIN_MEMBER
NAMED = {TOPOLOGY: "nvcf-mnnvl-topology"}
LEVELS = "nvcf-mnnvl-topology (levels: nvidia.com/gpu.clique, kubernetes.io/hostname)"


async def remarks(written: dict[str, str], *objects: dict[str, object]) -> tuple[Note, ...]:
    llm = parallel("llm", written)
    stored = await admit(pod(llm), World(*(objects or (MNNVL,)), llm))
    assert gates(stored) == [contract.GATE]
    return decode(annotations(stored)[contract.ANNOTATION_NOTES])


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            {**NAMED, REQUIRED_LEVEL: "nvidia.com/clique"},
            Note(
                f'{LLM}: annotation {REQUIRED_LEVEL}: "nvidia.com/clique" is no level of Topology {LEVELS}',
                blocking=True,
                topology="nvcf-mnnvl-topology",
                level="nvidia.com/clique",
            ),
        ),
        (
            {TOPOLOGY: "rack", REQUIRED_LEVEL: CLIQUE},
            Note(
                f'{LLM}: annotation {TOPOLOGY}: no Topology "rack" exists (Topologies: nvcf-mnnvl-topology)',
                blocking=True,
                topology="rack",
                level=CLIQUE,
            ),
        ),
        (
            {REQUIRED_LEVEL: CLIQUE},
            Note(
                f'{LLM}: annotation {TOPOLOGY} is missing; level "{CLIQUE}" of '
                f"{REQUIRED_LEVEL} is taken from Topology {LEVELS}"
            ),
        ),
        (
            {REQUIRED_LEVEL: "example.com/rack"},
            Note(
                f"{LLM}: annotation {TOPOLOGY} is missing and no Topology has the level "
                f'"example.com/rack" of {REQUIRED_LEVEL} (Topology {LEVELS})',
                blocking=True,
                level="example.com/rack",
            ),
        ),
        (
            NAMED,
            Note(
                f"{LLM}: annotation {TOPOLOGY}: nvcf-mnnvl-topology is named but no level of "
                f"it; nothing is constrained (name one in {REQUIRED_LEVEL} or {PREFERRED_LEVEL})"
            ),
        ),
        (
            {**NAMED, REQUIRED_LEVEL: HOSTNAME, PREFERRED_LEVEL: CLIQUE},
            Note(
                f"{LLM}: annotation {PREFERRED_LEVEL}: {CLIQUE} is wider than "
                f"{REQUIRED_LEVEL}: {HOSTNAME} and adds nothing, so it is dropped "
                "(allowed: the required level or a narrower one)"
            ),
        ),
        (
            {contract.ANNOTATION_TOPOLOGY_REQUIRED: "not a key"},
            Note(
                f'{LLM}: annotation {OURS}: "not a key" is no '
                f"node label key (allowed: keys such as {CLIQUE}, a comma between two)",
                blocking=True,
            ),
        ),
        (
            {MIN: "many"},
            Note(
                f'{LLM}: annotation {MIN}: "many" is no number of members (allowed: a whole number from 1)',
                blocking=True,
            ),
        ),
        (
            {MIN: "9"},
            Note(
                f'{LLM}: annotation {MIN}: "9" is more than {LLM} ever has at one time (replicas: 4)',
                blocking=True,
            ),
        ),
    ],
)
async def test_the_pod_waits_or_goes_on_and_says_why(written: dict[str, str], expected: Note) -> None:
    assert await remarks(written) == (expected,)


@pytest.mark.parametrize("number", ["0", "-1", "4.0", "four", "", "99999999999", "１"])  # noqa: RUF001
async def test_a_min_member_that_is_no_number_from_one_holds_the_job(number: str) -> None:
    train = workload("Job", "train", {BATCH_MIN: number}, parallelism=4, completions=4)
    stored = await admit(pod(train), World(train))
    assert notes(stored) == [
        (
            f'job default/train: annotation {BATCH_MIN}: "{number}" is no number of members '
            "(allowed: a whole number from 1)",
            True,
        )
    ]
    assert gates(stored) == [contract.GATE]


async def test_a_min_member_beyond_parallelism_names_both() -> None:
    train = workload("Job", "train", {BATCH_MIN: "5"}, parallelism=4, completions=8)
    stored = await admit(pod(train), World(train))
    assert notes(stored) == [
        (
            f'job default/train: annotation {BATCH_MIN}: "5" is more than job default/train ever has at one '
            "time (parallelism: 4)",
            True,
        )
    ]


async def test_the_affinity_to_an_unknown_level_is_written_for_the_day_when_it_exists() -> None:
    llm = parallel("llm", {TOPOLOGY: "rack", REQUIRED_LEVEL: "example.com/rack"})
    stored = await admit(pod(llm), World(llm))
    assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_REQUIRED] == "example.com/rack"
    assert pod_terms(stored) == [with_gang(labels(stored)[contract.LABEL_GANG], "example.com/rack")]


async def test_a_level_that_can_be_no_label_key_never_gets_into_the_affinity() -> None:
    llm = parallel("llm", {**NAMED, REQUIRED_LEVEL: "no key"})
    stored = await admit(pod(llm), World(MNNVL, llm))
    assert "affinity" not in stored["spec"]
    assert notes(stored)[0][1]


async def test_a_preferred_level_equal_to_the_required_one_is_fine() -> None:
    llm = parallel("llm", {**NAMED, REQUIRED_LEVEL: CLIQUE, PREFERRED_LEVEL: CLIQUE})
    assert notes(await admit(pod(llm), World(MNNVL, llm))) == []


async def test_a_deployment_of_an_unknown_level_is_held_pod_by_pod() -> None:
    web = workload("Deployment", "web", {**NAMED, REQUIRED_LEVEL: "nvidia.com/clique"}, replicas=3)
    web_1 = workload("ReplicaSet", "web-1", above=web, replicas=3)
    stored = await admit(pod(web_1), World(MNNVL, web, web_1))
    assert gates(stored) == [contract.GATE]
    assert annotations(stored)[MIN] == "1"
    assert pod_terms(stored) == []


async def test_a_min_member_on_a_bare_pod_without_gang_label_is_held_and_says_what_it_lacks() -> None:
    stored = await admit(pod(None, {MIN: "4"}))
    [(message, blocking)] = notes(stored)
    assert "pod default/solo" in message
    assert contract.LABEL_GANG in message
    assert blocking


async def test_a_batch_min_member_where_it_is_not_read_is_said() -> None:
    llm = parallel("llm", {**NAMED, REQUIRED_LEVEL: CLIQUE, BATCH_MIN: "2"})
    [(message, blocking)] = notes(await admit(pod(llm), World(MNNVL, llm)))
    assert f"{BATCH_MIN} is read on Jobs only" in message
    assert not blocking


async def test_where_the_topologies_cannot_be_read_the_level_is_taken_as_written() -> None:
    llm = parallel("llm", {**NAMED, REQUIRED_LEVEL: CLIQUE})
    world = World(MNNVL, llm)
    world.broken = ("topologies",)
    stored = await admit(pod(llm), world)
    assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_REQUIRED] == CLIQUE
    assert not any(blocking for _, blocking in notes(stored))
    assert any("connection refused" in message for message, _ in notes(stored))


async def test_an_owner_that_we_may_not_read_leaves_the_pod_with_what_it_says_itself() -> None:
    train = workload("Job", "train", parallelism=4)
    world = World(MNNVL, train)
    world.forbidden = ("jobs",)
    stored = await admit(pod(train, {contract.ANNOTATION_TOPOLOGY_REQUIRED: CLIQUE}), world)
    assert annotations(stored)[contract.ANNOTATION_SIZE_FROM] == "owner"
    assert gates(stored) == [contract.GATE]
    assert "job default/train could not be read (forbidden)" in notes(stored)[0][0]


async def test_a_statefulset_that_we_may_not_read_is_never_waited_for() -> None:
    llm = parallel("llm", replicas=4)
    world = World(MNNVL, llm)
    world.forbidden = ("statefulsets",)
    stored = await admit(pod(llm, {**NAMED, REQUIRED_LEVEL: CLIQUE}), world)
    assert annotations(stored)[MIN] == "1"
    assert contract.ANNOTATION_SIZE_FROM not in annotations(stored)


async def test_a_pod_that_names_us_is_admitted_when_nothing_may_be_read_and_says_so() -> None:
    llm = parallel("llm", {**NAMED, REQUIRED_LEVEL: CLIQUE})
    world = World(MNNVL, llm)
    world.forbidden = ("/",)
    stored = await admit(pod(llm, schedulerName="allaboard"), world)
    assert gates(stored) == []
    assert len(notes(stored)) == 2


@pytest.mark.parametrize("annotated", [{}, {**NAMED, REQUIRED_LEVEL: CLIQUE}])
async def test_an_owner_that_can_not_be_read_just_now_is_not_guessed(annotated: dict[str, str]) -> None:
    llm = parallel("llm", {**NAMED, REQUIRED_LEVEL: CLIQUE})
    world = World(MNNVL, llm)
    world.broken = ("statefulsets",)
    with pytest.raises(UndecidedError, match="statefulset default/llm could not be read"):
        await admit(pod(llm, annotated), world)


async def test_the_api_server_is_told_that_there_is_no_answer() -> None:
    world = World(MNNVL, parallel("llm"))
    world.broken = ("statefulsets",)
    app = application(Mutator(Lookups(world, lambda: 0.0), ("allaboard",)), Meters(None))
    async with TestClient(TestServer(app)) as client:
        answer = await client.post("/mutate", json=review(pod(parallel("llm"))))
        assert answer.status == 503
        assert "statefulset default/llm could not be read" in (await answer.json())["message"]
