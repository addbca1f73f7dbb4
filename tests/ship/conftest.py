"""The manifests on the tests' cluster. Their Pods are played by KWOK: what runs in them, the tests run."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from allaboard.local.binaries import find
from allaboard.local.cluster import Cluster

MANIFESTS = Path(__file__).parents[2] / "manifests"
NAMESPACE = "allaboard-system"

Kubectl = Callable[..., str]


@pytest.fixture(scope="session")
def kubectl(cluster: Cluster) -> Kubectl:
    """Runs kubectl on the tests' cluster; its standard output."""
    return lambda *arguments, **options: kubectl_of(cluster.kubeconfig, *arguments, **options)


@pytest.fixture
def cluster_kubeconfig(cluster: Cluster) -> Path:
    """The tests' cluster, for tools that are no kubectl."""
    return cluster.kubeconfig


def kubectl_of(kubeconfig: Path, *arguments: str, stdin: str | None = None) -> str:
    """Run kubectl; raises AssertionError with what it printed."""
    command = [str(find("kubectl")), f"--kubeconfig={kubeconfig}", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def applied(kubectl: Kubectl) -> Iterator[str]:
    """`kubectl apply -k` of the base, once; what it printed. Afterwards all of it is gone."""
    base = str(MANIFESTS / "base")
    try:
        yield kubectl("apply", "-k", base)
    finally:
        kubectl("delete", "-k", base, "--ignore-not-found", "--timeout=100s")
