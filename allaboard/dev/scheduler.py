"""kube-scheduler's configuration: one profile a name, and the extender in two entries.

Two entries because httpTimeout is one per entry: the guard must answer in 2 s, a bind may wait at the
barrier for minutes (rule 11 of the design). percentageOfNodesToScore stays at its default: members are
nominated, so nothing is scanned for them.
"""

from typing import Any

import yaml

from allaboard.dev.settings import Settings


def configuration(settings: Settings) -> dict[str, Any]:
    """A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), which is decoded strictly."""
    entry = {"urlPrefix": settings.extender_url, "nodeCacheCapable": True, "ignorable": False}
    guard = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt", "weight": 15}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": _leader_election(settings),
        "clientConnection": {**_kubeconfig(settings), "qps": 5000, "burst": 5000},
        "profiles": [{"schedulerName": name} for name in settings.profiles],
        "extenders": [
            {**entry, **guard, "httpTimeout": "2s"},
            {**entry, "bindVerb": "bind", "httpTimeout": "9m"},
        ],
    }


def _kubeconfig(settings: Settings) -> dict[str, str]:
    """None in a Pod: kube-scheduler then uses its service account."""
    return {"kubeconfig": str(settings.kubeconfig)} if settings.kubeconfig else {}


def _leader_election(settings: Settings) -> dict[str, Any]:
    """By the Lease that the extender beside it looks at, where it does; else there is no other instance."""
    if settings.election.mode != "scheduler":
        return {"leaderElect": False}
    lease = settings.election.lease
    return {"leaderElect": True, "resourceNamespace": lease.namespace, "resourceName": lease.name}


def rendered(settings: Settings) -> str:
    """The configuration as YAML."""
    text: str = yaml.safe_dump(configuration(settings), sort_keys=False)
    return text
