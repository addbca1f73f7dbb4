"""PodCliqueSets and Dynamo's graphs from files: the same PodGangs that the real operator made."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from allaboard.manifests import Manifest, ManifestError
from allaboard.translate.dynamo import podcliqueset_of
from allaboard.translate.grove import made_of
from gangs import contract
from tests import grove
from tests.translate.test_translate import EXAMPLES, translated, written

Json = dict[str, Any]

BINDING = Manifest("binding.yaml", grove.captured("grove-clustertopologybinding")[0])
GRAPH = """
kind: DynamoGraphDeployment
metadata: {name: dgd}
spec:
  topologyConstraint: {clusterTopologyName: mnnvl, packDomain: clique}
  services:
    Frontend: {extraPodSpec: {mainContainer: {image: i}}}
    Decode:
      replicas: 2
      multinode: {nodeCount: 3}
      topologyConstraint: {packDomain: host}
      resources: {limits: {gpu: "4"}}
      extraPodSpec: {schedulerName: kai-scheduler, mainContainer: {image: i}}
"""


def captured_set(capture: str) -> Manifest:
    return Manifest(
        "pcs.yaml", next(o for o in grove.captured(f"{capture}-pcs") if o["kind"] == "PodCliqueSet")
    )


def made(manifest: Manifest, kind: str) -> dict[str, Json]:
    objects = made_of(manifest, [BINDING])
    return {m.name: m.body for m in objects if m.kind == kind}


@pytest.mark.parametrize("capture", ["default", "kai", "pcsg"])
def test_podgangs_are_those_that_the_real_operator_made(capture: str) -> None:
    ours = made(captured_set(capture), "PodGang")
    theirs = {gang["metadata"]["name"]: gang for gang in grove.podgangs(capture)}
    assert ours.keys() <= theirs.keys()
    assert len(ours) == min(2, len(theirs))  # one scaled gang stands for all
    for name, gang in ours.items():
        assert gang["spec"] == theirs[name]["spec"]


@pytest.mark.parametrize("capture", ["default", "kai", "pcsg"])
def test_pods_carry_the_labels_by_which_the_real_ones_are_told_apart(capture: str) -> None:
    keys = (contract.GROVE_PODGANG, contract.GROVE_CLIQUE, contract.GROVE_BASE)

    def told(pods: list[Json]) -> set[tuple[str | None, ...]]:
        return {tuple(pod["metadata"]["labels"].get(key) for key in keys) for pod in pods}

    ours = told(list(made(captured_set(capture), "Pod").values()))
    theirs = told(grove.pods(capture))
    assert ours <= theirs
    assert ours == {row for row in theirs if row[0] in made(captured_set(capture), "PodGang")}


def test_the_example_of_a_podcliqueset_is_one_gang_in_one_clique() -> None:
    code, [entry], errors = translated(EXAMPLES / "grove-podcliqueset.yaml", EXAMPLES / "grove-binding.yaml")
    assert (code, errors) == (0, "")
    assert entry["gang"]["minMember"] == 2
    assert entry["gang"]["required"] == contract.NODE_CLIQUE
    assert entry["gang"]["subgroups"] == [{"name": "distributed-inference-0-worker", "minMember": 2}]


@pytest.mark.parametrize("name", ["dynamo-graph", "dynamo-disaggregated"])
def test_the_examples_of_dynamo_are_one_gang_each(name: str) -> None:
    code, entries, errors = translated(EXAMPLES / f"{name}.yaml", EXAMPLES / "grove-binding.yaml")
    assert (code, errors) == (0, "")
    assert len({entry["gang"]["label"] for entry in entries}) == 1
    assert {entry["gang"]["minMember"] for entry in entries} == {len(entries)}


def test_a_service_on_several_nodes_is_a_gang_of_its_own_beyond_the_first_replica(tmp_path: Path) -> None:
    binding = written(tmp_path, yaml.safe_dump(BINDING.body), "binding.yaml")
    code, entries, errors = translated(written(tmp_path, GRAPH), binding)
    assert (code, errors) == (0, "")
    gangs = {entry["object"]: entry["gang"] for entry in entries}
    base, scaled = (
        gangs["pod default/dgd-0-decode-0-decode-wkr-0"],
        gangs["pod default/dgd-0-decode-1-decode-ldr-0"],
    )
    assert (base["minMember"], base["required"], base["minSubGroup"]) == (4, contract.NODE_CLIQUE, 2)
    assert base["subgroups"] == [
        {"name": "dgd-0-decode-0", "minSubGroup": 2, "required": contract.NODE_HOSTNAME},
        {"name": "dgd-0-decode-0-decode-wkr", "minMember": 2},
    ]
    assert (scaled["minMember"], scaled["required"]) == (3, contract.NODE_HOSTNAME)
    assert scaled["after"] == base["label"]


def test_components_of_the_newer_version_mean_the_same() -> None:
    services: Json = yaml.safe_load(GRAPH)["spec"]["services"]
    newer = yaml.safe_load(GRAPH)
    rows = [{"name": name, **row} for name, row in services.items()]
    for row in rows:
        row["podTemplate"] = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    newer["spec"] = {"components": rows, "topologyConstraint": newer["spec"]["topologyConstraint"]}
    older = made(podcliqueset_of(Manifest("g.yaml", yaml.safe_load(GRAPH))), "PodGang")
    assert made(podcliqueset_of(Manifest("g.yaml", newer)), "PodGang") == older


def broken(**template: Any) -> Manifest:
    body = copy.deepcopy(captured_set("pcsg").body)
    body["spec"]["template"].update(template)
    return Manifest("pcs.yaml", body)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ({"cliques": None}, "spec.template.cliques: missing (allowed: a list of maps with a name each)"),
        (
            {"topologyConstraint": {"pack": {"required": "rack"}}},
            'topologyName: no ClusterTopologyBinding ""',
        ),
        (
            {"topologyConstraint": {"topologyName": "mnnvl", "pack": {"required": "rack"}}},
            'pack.required: "rack" is no domain of ClusterTopologyBinding mnnvl (domains: clique, host)',
        ),
        (
            {"podCliqueScalingGroups": [{"name": "g", "cliqueNames": ["other"]}]},
            "spec.template.podCliqueScalingGroups.0.cliqueNames: ['other'] are not all cliques",
        ),
        (
            {"podCliqueScalingGroups": [{"name": "g", "cliqueNames": ["leader"], "minAvailable": "1"}]},
            "spec.template.podCliqueScalingGroups.0.minAvailable: '1' is no number",
        ),
        ({"cliques": [{"name": "a"}], "podCliqueScalingGroups": []}, "spec.template.cliques.0.spec: missing"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cant_be_understood_is_named_with_its_field(template: Json, said: str) -> None:
    with pytest.raises(ManifestError) as complaint:
        made_of(broken(**template), [BINDING])
    assert "pcs.yaml: podcliqueset grove-demo/pcsg-kai: " in str(complaint.value)
    assert said in str(complaint.value)


def test_a_graph_is_named_in_complaints_about_what_dynamo_makes_of_it(tmp_path: Path) -> None:
    code, _, errors = translated(written(tmp_path, GRAPH))
    assert code == 1
    assert "dynamographdeployment default/dgd: as podcliqueset default/dgd: " in errors
    assert "(ClusterTopologyBindings: none in these files)" in errors


def test_a_graph_that_keeps_away_from_grove_is_told_what_to_translate_instead(tmp_path: Path) -> None:
    apart = GRAPH.replace("name: dgd", 'name: dgd, annotations: {nvidia.com/enable-grove: "false"}')
    code, _, errors = translated(written(tmp_path, apart))
    assert code == 1
    assert "nvidia.com/enable-grove" in errors
    assert "Deployments and LeaderWorkerSets" in errors
