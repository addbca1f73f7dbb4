"""The generated KubeSchedulerConfiguration, and what the real kube-scheduler says of it."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from allaboard.dev.scheduler import configuration
from allaboard.dev.settings import Settings, election, settle
from allaboard.local.binaries import find
from allaboard.local.cluster import Cluster

ACCEPTED = "Starting Kubernetes Scheduler"


def settings(folder: Path, kubeconfig: Path) -> Settings:
    return settle(kubeconfig, "allaboard,default-scheduler", "127.0.0.1", 0, 0, folder)


@pytest.fixture
def generated(tmp_path: Path) -> dict[str, Any]:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{clusters: [], contexts: [], users: []}")
    return configuration(settings(tmp_path, kubeconfig))


def test_each_name_that_is_served_is_a_profile(generated: dict[str, Any]) -> None:
    assert [p["schedulerName"] for p in generated["profiles"]] == ["allaboard", "default-scheduler"]


def test_the_guard_answers_in_2_s_a_bind_may_wait_9_min_and_neither_can_be_ignored(
    generated: dict[str, Any],
) -> None:
    guard, binder = generated["extenders"]
    assert (guard["httpTimeout"], binder["httpTimeout"]) == ("2s", "9m")
    assert "bindVerb" not in guard
    assert [key for key in binder if key.endswith("Verb")] == ["bindVerb"]
    for entry in (guard, binder):
        assert entry["ignorable"] is False
        assert entry["nodeCacheCapable"] is True
        assert "managedResources" not in entry


def test_nothing_is_scanned_for_members_beyond_the_schedulers_default(generated: dict[str, Any]) -> None:
    assert "percentageOfNodesToScore" not in generated


def test_beside_an_extender_that_follows_it_it_takes_part_in_the_election(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{clusters: [], contexts: [], users: []}")
    followed = replace(settings(tmp_path, kubeconfig), election=election("scheduler", "a/b", ""))
    assert configuration(followed)["leaderElection"] == {
        "leaderElect": True,
        "resourceNamespace": "a",
        "resourceName": "b",
    }
    assert configuration(settings(tmp_path, kubeconfig))["leaderElection"] == {"leaderElect": False}


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("changes", "said"),
    [({}, ACCEPTED), ({"percentageOfNodes": 5}, "strict decoding error: unknown field")],
    ids=["as generated", "with a field that there is not"],
)
def test_the_real_kube_scheduler_decodes_it_strictly(
    cluster: Cluster, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({**configuration(settings(tmp_path, cluster.kubeconfig)), **changes}))
    command = [str(find("kube-scheduler")), f"--config={file}", "--secure-port=0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as scheduler:
        assert scheduler.stderr is not None
        lines = []
        for line in scheduler.stderr:
            lines.append(line)
            if said in line or ACCEPTED in line:
                break
        scheduler.terminate()
    assert said in lines[-1], "".join(lines)
