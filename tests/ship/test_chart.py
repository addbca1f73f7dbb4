"""The Helm chart and the kustomize manifests make the same objects, whatever is switched on."""

import json
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from allaboard.local.binaries import find
from allaboard.ship.files import stale, write
from extender.api import Api
from tests.ship.conftest import MANIFESTS, NAMESPACE, Kubectl
from tests.ship.rendered import by_name, kustomized

CHART: Final = MANIFESTS / "chart"
Objects = dict[tuple[str, str], dict[str, Any]]

# What a switch of the chart is called, and the component that it stands for.
SWITCHES: Final = {
    "kai-compat": "profiles={allaboard,kai-scheduler}",
    "preemption": "preemption.enabled=true",
    "networkpolicy": "networkPolicy.enabled=true",
    "prometheus": "prometheus.enabled=true",
    "cert-manager": "certManager.enabled=true",
}
ALL: Final = tuple(SWITCHES)


@pytest.fixture(scope="module")
def helm() -> Path:
    return find("helm")


def run(helm: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([helm, *arguments], capture_output=True, text=True, timeout=60, check=False)


def template(helm: Path, *settings: str, namespace: str = NAMESPACE, chart: Path = CHART) -> Objects:
    flags = [word for setting in settings for word in ("--set", setting)]
    where = ("--namespace", namespace, "--kube-version", "1.36.3", "--no-hooks")
    done = run(helm, "template", "allaboard", chart, *where, *flags)
    assert done.returncode == 0, done.stderr
    return by_name(yaml.safe_load_all(done.stdout))


@pytest.mark.parametrize("on", [(), *((one,) for one in ALL), ALL], ids=lambda on: "+".join(on) or "base")
def test_both_ways_render_the_same_objects(helm: Path, on: Sequence[str], tmp_path: Path) -> None:
    ours = kustomized(find("kubectl"), MANIFESTS, on, tmp_path)
    del ours["Namespace", NAMESPACE]  # Helm makes none
    theirs = template(helm, *(SWITCHES[name] for name in on))
    assert theirs.keys() == ours.keys()
    for key in ours:
        assert theirs[key] == ours[key], key


def test_a_difference_of_one_word_is_noticed(helm: Path, tmp_path: Path) -> None:
    copy = tmp_path / "chart"
    subprocess.run(["cp", "-r", CHART, copy], check=True)
    file = copy / "templates" / "webhook-deployment.yaml"
    file.write_text(file.read_text().replace("--webhook-port=9443", "--webhook-port=9444"))
    assert template(helm, chart=copy) != template(helm)


def test_templates_that_are_made_are_as_made(tmp_path: Path) -> None:
    assert list(stale(MANIFESTS)) == [], "run `make manifests`"
    subprocess.run(["cp", "-r", MANIFESTS, tmp_path], check=True)
    copy = tmp_path / "manifests"
    roles = copy / "base/webhook/roles.yaml"
    roles.write_text(roles.read_text().replace("verbs: [get]", "verbs: ['*']"))
    assert list(stale(copy)) == ["chart/templates/webhook-roles.yaml"]
    write(copy)
    assert list(stale(copy)) == []


def test_another_namespace_is_meant_everywhere(helm: Path) -> None:
    objects = template(helm, *SWITCHES.values(), namespace="elsewhere")
    assert NAMESPACE not in json.dumps(list(objects.values()))


def test_owner_kinds_that_are_switched_off_get_no_rights(helm: Path) -> None:
    kinds = ("jobset", "kubeflow", "leaderworkerset", "podgroups", "ray")
    off = template(helm, *(f"ownerKinds.{kind}=false" for kind in kinds))
    gone = template(helm).keys() - off.keys()
    assert {name for _, name in gone} == {f"allaboard-webhook-{kind}" for kind in kinds}
    assert {kind for kind, _ in gone} == {"ClusterRole", "ClusterRoleBinding"}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("profiles=null", "profiles"),
        ("profiles={A b}", "does not match pattern"),
        ("webhook.replicas=0", "minimum: got 0, want 1"),
        ("replicas=3", "additional properties 'replicas' not allowed"),
        ("image.pullPolicy=Sometimes", "value must be one of"),
    ],
)
def test_values_that_are_not_understood_are_refused_by_name(helm: Path, setting: str, said: str) -> None:
    done = run(helm, "template", CHART, "--kube-version", "1.36.3", "--set", setting)
    assert done.returncode != 0
    assert said in done.stderr


def test_every_value_is_documented_by_the_schema_and_the_versions_agree(helm: Path) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values.keys() == schema["properties"].keys() - {"global"}
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == version("allaboard")
    assert "0 chart(s) failed" in run(helm, "lint", CHART, "--kube-version", "1.36.3").stdout


@pytest.mark.cluster
async def test_helm_installs_it_on_an_empty_cluster_upgrades_and_removes_it(
    helm: Path, kubectl: Kubectl, api: Api, cluster_kubeconfig: Path
) -> None:
    common = ("--kubeconfig", cluster_kubeconfig, "--namespace", "by-helm")
    try:
        wait = ("--create-namespace", "--wait", "--timeout", "60s")
        done = run(helm, "install", "allaboard", CHART, *common, *wait)
        assert done.returncode == 0, done.stderr
        done = run(helm, "upgrade", "allaboard", CHART, *common, "--set", SWITCHES["kai-compat"])
        assert done.returncode == 0, done.stderr
        found = await api.get("/apis/apps/v1/namespaces/by-helm/deployments/allaboard-webhook")
        assert found is not None
        assert (
            "--profiles=allaboard,kai-scheduler" in found["spec"]["template"]["spec"]["containers"][0]["args"]
        )
    finally:
        run(helm, "uninstall", "allaboard", *common, "--wait", "--timeout", "60s")
        kubectl("delete", "namespace", "by-helm", "--ignore-not-found")
    registrations = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    assert await api.get(f"{registrations}/zz-allaboard") is None
