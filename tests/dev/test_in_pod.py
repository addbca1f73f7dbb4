"""What the parts do differently in a Pod: whose rights they use, and what can be reached from outside."""

import sys
from contextlib import suppress
from ipaddress import IPv4Address
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from allaboard.dev import settings as chosen
from allaboard.dev.scheduler import configuration
from allaboard.dev.settings import find_kubeconfig, settle
from allaboard.errors import UserError
from allaboard.local.cluster import Cluster
from allaboard.local.ports import free_ports
from tests.dev.running import once, running


@pytest.fixture
def in_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As the kubelet sets it up; the home folder is empty."""
    token = tmp_path / "token"
    token.write_text("t")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(chosen, "SERVICE_ACCOUNT", token)
    return tmp_path


def test_in_a_pod_the_service_account_is_used_unless_a_kubeconfig_is_named(
    in_pod: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_kubeconfig(None) is None
    named = in_pod / "named"
    named.write_text("{clusters: [], contexts: [], users: []}")
    assert find_kubeconfig(named) == named
    monkeypatch.setenv("KUBECONFIG", str(named))
    assert find_kubeconfig(None) == named


def test_a_pod_without_a_service_account_is_told_what_to_give(in_pod: Path) -> None:
    (in_pod / "token").unlink()
    with pytest.raises(UserError, match="no --kubeconfig, no KUBECONFIG: no file "):
        find_kubeconfig(None)


def test_in_a_pod_kube_scheduler_is_given_no_kubeconfig_either(in_pod: Path) -> None:
    settings = settle(None, "allaboard", "127.0.0.1", 0, 0, in_pod / "state")
    assert configuration(settings)["clientConnection"] == {"qps": 5000, "burst": 5000}


@pytest.mark.parametrize("named", ["webhook", "a/", "/b", "a/B"])
def test_a_service_is_named_with_its_namespace(named: str, cluster_file: Path) -> None:
    ended = once("webhook", f"--kubeconfig={cluster_file}", f"--service={named}")
    assert (ended.returncode, ended.stderr) == (
        1,
        f'error: --service: "{named}" names no Service (allowed: NAMESPACE/NAME)\n',
    )


def test_a_folder_without_a_certificate_is_refused(cluster_file: Path, tmp_path: Path) -> None:
    ended = once(
        "webhook",
        f"--kubeconfig={cluster_file}",
        "--service=a/b",
        f"--cert-dir={tmp_path}",
        HOME=str(tmp_path),
    )
    said = f"error: --cert-dir {tmp_path}: no file tls.crt (allowed: tls.crt and tls.key in it)\n"
    assert (ended.returncode, ended.stderr) == (1, said)


@pytest.fixture
def cluster_file(tmp_path: Path) -> Path:
    """A kubeconfig of a cluster that isn't there."""
    file = tmp_path / "kubeconfig"
    file.write_text(
        '{clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: u, user: {}}], '
        "contexts: [{name: c, context: {cluster: c, user: u}}], current-context: c}"
    )
    return file


@pytest.mark.cluster
def test_the_port_for_probes_tells_how_the_extender_is_and_offers_nothing_else(
    cluster: Cluster, tmp_path: Path
) -> None:
    port = free_ports(["probes"])["probes"]
    flags = (f"--kubeconfig={cluster.kubeconfig}", f"--state-dir={tmp_path}", f"--probe-port={port}")
    with running("extender", *flags) as extender:
        extender.until_ready()
        assert _listens_on(extender.process.pid) == {"127.0.0.1", "0.0.0.0"}
        assert _listens_on(extender.process.pid, besides=port) == {"127.0.0.1"}
        for path in ("healthz", "readyz", "leaderz", "metrics"):
            assert _status(port, path) == 200, path
        for path in ("debug/gangs", "filter", "bind"):
            assert _status(port, path) == 404, path
            assert _status(port, path, b"{}") == 404, path


def _listens_on(pid: int, besides: int = 0) -> set[str]:
    """Addresses on which the process itself accepts connections, ports beside the given one."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            inodes.add(str(link.readlink()).removeprefix("socket:[").removesuffix("]"))
    found = set()
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *rest = line.split()
        address, port = local.split(":")
        if state == "0A" and rest[5] in inodes and int(port, 16) != besides:
            found.add(str(IPv4Address(int.from_bytes(bytes.fromhex(address), sys.byteorder))))
    return found


def _status(port: int, path: str, body: bytes | None = None) -> int:
    try:
        with urlopen(Request(f"http://127.0.0.1:{port}/{path}", data=body), timeout=5) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code
