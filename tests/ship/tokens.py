"""Access to the cluster as one of its service accounts."""

import tempfile
from pathlib import Path

import yaml

from allaboard.local.cluster import Cluster
from extender.api import Api


async def as_service_account(cluster: Cluster, api: Api, namespace: str, account: str) -> Path:
    """A kubeconfig with a token of the account, and no other right."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    answer = await api.create(path, {"spec": {"expirationSeconds": 3600}})
    return _kubeconfig(cluster.kubeconfig, answer["status"]["token"])


def _kubeconfig(admin: Path, token: str) -> Path:
    config = yaml.safe_load(admin.read_text())
    config["users"][0]["user"] = {"token": token}
    file = Path(tempfile.mkdtemp(dir=admin.parent)) / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file
