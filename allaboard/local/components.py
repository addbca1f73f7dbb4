"""How each component is started and how one sees that it is ready. Pure: settings in, argument lists out.

    etcd ──► kube-apiserver ──► kube-controller-manager, kube-scheduler, kwok

Three choices differ from a production cluster because the nodes are fake: nobody renews node leases
(node-lifecycle and taint-eviction are off, and so is the admission plug-in that taints new nodes until
node-lifecycle says they are ready), etcd doesn't fsync, and the API server never sheds load.
"""

from dataclasses import dataclass
from typing import Final

import yaml

from allaboard.local.layout import Layout

ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"
CONTROLLERS: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
KWOK: Final = "kwok"
AUDIT: Final = "audit"

_HOST: Final = "127.0.0.1"
_ETCD_QUOTA_BYTES: Final = 8 << 30
_CLIENT_QPS: Final = 1000  # requests/s; the default of 50 would be what a test measures
_CLIENT_BURST: Final = 2000
# Node objects are ours, and nothing renews them: these would taint, evict, annotate or number them.
_CONTROLLERS_OFF: Final = ("node-lifecycle", "taint-eviction", "node-ipam", "ttl")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a cluster was started with.

    ports: by component; etcd's peer port is "etcd-peer".
    scheduler: whether the stock kube-scheduler runs as default-scheduler.
    """

    name: str
    ports: dict[str, int]
    scheduler: bool

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://{_HOST}:{self.ports[API_SERVER]}"

    @property
    def context(self) -> str:
        """The name of cluster, user and context in the kubeconfig."""
        return f"allaboard-local-{self.name}"

    @property
    def followers(self) -> tuple[str, ...]:
        """The components that only talk to the API server, and may start in any order."""
        return (CONTROLLERS, SCHEDULER, KWOK) if self.scheduler else (CONTROLLERS, KWOK)

    @property
    def components(self) -> tuple[str, ...]:
        """All components, in the order of their start."""
        return (ETCD, API_SERVER, *self.followers)


PORTS: Final = (ETCD, "etcd-peer", API_SERVER, CONTROLLERS, SCHEDULER, KWOK)

_HEALTH: Final = {
    ETCD: "http://{}/health",
    API_SERVER: "https://{}/readyz",
    CONTROLLERS: "https://{}/healthz",
    SCHEDULER: "https://{}/healthz",
    KWOK: "http://{}/healthz",
}


def health(component: str, settings: Settings) -> str:
    """The URL that answers 200 once the component is ready."""
    return _HEALTH[component].format(f"{_HOST}:{settings.ports[component]}")


def arguments(component: str, settings: Settings, layout: Layout) -> dict[str, str]:
    """The component's flags, without the leading dashes."""
    return _ARGUMENTS[component](settings, layout)


def scheduler_configuration(layout: Layout) -> str:
    """The stock scheduler's configuration file: the defaults, without client-side throttling."""
    client = {"kubeconfig": str(layout.kubeconfig), "qps": _CLIENT_QPS, "burst": _CLIENT_BURST}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": client,
        "leaderElection": {"leaderElect": False},
    }
    return yaml.safe_dump(document, sort_keys=False)


def audit_policy() -> str:
    """The API server writes down what Allaboard does by the rights of its manifests, and nothing else."""
    document = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "Metadata", "userGroups": ["system:serviceaccounts:allaboard-system"]},
            {"level": "None"},
        ],
    }
    return yaml.safe_dump(document, sort_keys=False)


def _etcd(settings: Settings, layout: Layout) -> dict[str, str]:
    client = f"http://{_HOST}:{settings.ports[ETCD]}"
    peer = f"http://{_HOST}:{settings.ports['etcd-peer']}"
    return {
        "data-dir": str(layout.data),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        "unsafe-no-fsync": "true",
        "quota-backend-bytes": str(_ETCD_QUOTA_BYTES),
    }


def _api_server(settings: Settings, layout: Layout) -> dict[str, str]:
    return {
        "etcd-servers": f"http://{_HOST}:{settings.ports[ETCD]}",
        "bind-address": _HOST,
        "advertise-address": _HOST,
        "secure-port": str(settings.ports[API_SERVER]),
        "endpoint-reconciler-type": "none",
        "authorization-mode": "RBAC",
        "client-ca-file": str(layout.pki / "ca.crt"),
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": str(layout.pki / "service-account.pub"),
        "service-account-signing-key-file": str(layout.pki / "service-account.key"),
        "service-cluster-ip-range": "10.96.0.0/16",
        "allow-privileged": "true",
        "audit-policy-file": str(layout.config(AUDIT)),
        "audit-log-path": str(layout.log(AUDIT)),
        "disable-admission-plugins": "TaintNodesByCondition",
        "enable-priority-and-fairness": "false",
        "max-requests-inflight": "0",
        "max-mutating-requests-inflight": "0",
        **_serving(layout),
    }


def _controllers(settings: Settings, layout: Layout) -> dict[str, str]:
    return {
        "kubeconfig": str(layout.kubeconfig),
        "service-account-private-key-file": str(layout.pki / "service-account.key"),
        "root-ca-file": str(layout.pki / "ca.crt"),
        "use-service-account-credentials": "false",
        "leader-elect": "false",
        "kube-api-qps": str(_CLIENT_QPS),
        "kube-api-burst": str(_CLIENT_BURST),
        "controllers": ",".join(("*", *(f"-{name}-controller" for name in _CONTROLLERS_OFF))),
        **_local_port(CONTROLLERS, settings),
        **_serving(layout),
    }


def _scheduler(settings: Settings, layout: Layout) -> dict[str, str]:
    return {
        "config": str(layout.config(SCHEDULER)),
        **_local_port(SCHEDULER, settings),
        **_serving(layout),
    }


def _kwok(settings: Settings, layout: Layout) -> dict[str, str]:
    return {
        "kubeconfig": str(layout.kubeconfig),
        "config": str(layout.config(KWOK)),
        "manage-all-nodes": "true",
        "server-address": f"{_HOST}:{settings.ports[KWOK]}",
    }


def _local_port(component: str, settings: Settings) -> dict[str, str]:
    return {
        "bind-address": _HOST,
        "secure-port": str(settings.ports[component]),
        "authorization-always-allow-paths": "/healthz,/livez,/readyz,/metrics",
    }


def _serving(layout: Layout) -> dict[str, str]:
    return {
        "tls-cert-file": str(layout.pki / "serving.crt"),
        "tls-private-key-file": str(layout.pki / "serving.key"),
    }


_ARGUMENTS: Final = {
    ETCD: _etcd,
    API_SERVER: _api_server,
    CONTROLLERS: _controllers,
    SCHEDULER: _scheduler,
    KWOK: _kwok,
}
