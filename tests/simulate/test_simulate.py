"""`allaboard simulate`: a plan from two files, and complaints that name line and field."""

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from typer.testing import CliRunner, Result

from allaboard.cli import app
from allaboard.errors import UserError
from allaboard.simulate.snapshot import trimmed
from tests.builders import node_object, pod_object

Json = dict[str, Any]


def kinded(kind: str, body: Json) -> Json:
    return {"kind": kind, **body}


def cluster(sizes: dict[str, int], taken: tuple[str, ...] = ()) -> Json:
    nodes = [kinded("Node", node_object(f"{c}{i}", c)) for c, n in sizes.items() for i in range(n)]
    holders = [
        kinded(
            "Pod", pod_object(f"job-{node}", gang="", spec={"nodeName": node}, status={"phase": "Running"})
        )
        for node in taken
    ]
    return {"kind": "List", "items": [*nodes, *holders]}


def stateful_set(replicas: int, **annotations: str) -> Json:
    limits = {"nvidia.com/gpu": "4"}
    return {
        "kind": "StatefulSet",
        "metadata": {"name": "llm"},
        "spec": {
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {
                    "schedulerName": "allaboard",
                    "containers": [{"name": "main", "resources": {"limits": limits}}],
                },
            },
        },
    }


WHOLE = {"allaboard.dev/min-member": "3", "allaboard.dev/topology-required": "nvidia.com/gpu.clique"}


def run(folder: Path, here: Any, gang: Any, *options: str) -> Result:
    files = []
    for name, body in (("cluster.yaml", here), ("gang.yaml", gang)):
        files.append(folder / name)
        files[-1].write_text(body if isinstance(body, str) else yaml.safe_dump(body))
    return CliRunner().invoke(app, ["simulate", str(files[0]), "--gang", str(files[1]), *options])


def test_the_gang_boards_the_clique_with_room_and_the_other_is_explained(tmp_path: Path) -> None:
    found = run(tmp_path, cluster({"a": 3, "b": 4}, taken=("a0",)), stateful_set(3, **WHOLE), "-o", "json")
    assert found.exit_code == 0
    [told] = orjson.loads(found.stdout)
    assert told["domain"] == ["b"]
    assert told["nodes"] == {"llm-0": "b0", "llm-1": "b1", "llm-2": "b2"}
    assert told["rejected"] == [
        {"domain": ["a"], "have": 2, "need": 3, "blockers": {"taken by job-a0": 1}},
    ]


def test_a_gang_without_room_is_told_in_words_with_exit_code_2(tmp_path: Path) -> None:
    found = run(tmp_path, cluster({"a": 3}, taken=("a0", "a1")), stateful_set(3, **WHOLE))
    assert found.exit_code == 2
    assert "finds no room" in found.stdout
    assert "not a: has 1 of 3" in found.stdout


def test_a_gang_that_can_not_be_whole_says_who_is_missing(tmp_path: Path) -> None:
    found = run(tmp_path, cluster({"a": 3}), kinded("Pod", _member("llm-0")), "-o", "json")
    assert found.exit_code == 2
    assert "1 of 3 members are here" in orjson.loads(found.stdout)[0]["held"]


def _member(name: str) -> Json:
    return pod_object(name, annotations={"allaboard.dev/min-member": "3"})


@pytest.mark.parametrize(
    ("here", "gang", "complaint"),
    [
        pytest.param("a: [\n", "", "cluster.yaml:2: no YAML", id="no YAML"),
        pytest.param("\n\nmetadata: {}\n", "", "cluster.yaml:3: kind: missing", id="no kind"),
        pytest.param("kind: Node\n", "", "cluster.yaml:1: node: metadata: missing", id="no name"),
        pytest.param("kind: List\n", "", "cluster.yaml:1: list: items: missing", id="no items"),
        pytest.param(
            "kind: Node\nmetadata: {name: n}\nstatus:\n  allocatable:\n    x/y.z: 1\n    cpu: lots\n",
            "kind: Pod\nmetadata: {name: p}\nspec: {}\n",
            "cluster.yaml:6: node default/n: status.allocatable.cpu: 'lots' is no quantity",
            id="no quantity",
        ),
        pytest.param("", "", "gang.yaml: no workload in it", id="no gang"),
        pytest.param(
            "",
            "---\n---\nkind: Service\nmetadata: {name: s}\n",
            "gang.yaml:3: service default/s: kind: Service",
            id="kind",
        ),
        pytest.param(
            "", "kind: Job\nmetadata: {name: j}\n", "gang.yaml:1: job default/j: spec: missing", id="no spec"
        ),
    ],
)
def test_a_bad_file_is_named_with_line_and_field(
    tmp_path: Path, here: str, gang: str, complaint: str
) -> None:
    found = run(tmp_path, here, gang)
    assert isinstance(found.exception, UserError)
    assert complaint in str(found.exception)


def test_a_snapshot_holds_no_environment_and_no_commands() -> None:
    pod = pod_object("p")
    pod["spec"]["containers"][0] |= {"env": [{"name": "TOKEN", "value": "s3cret"}], "args": ["--key=s3cret"]}
    told = trimmed(pod)
    assert "s3cret" not in str(told)
    assert told["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "4"}
