"""Options that several commands share, each documented once."""

from pathlib import Path
from typing import Annotated

import typer

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        help="Cluster to work on. Default: $KUBECONFIG, in a Pod its service account, else ~/.kube/config."
    ),
]
Profiles = Annotated[
    str,
    typer.Option(
        help="Scheduler names that are served. default-scheduler may be among them; Pods that name any other "
        "scheduler are left as they are. kai-scheduler is refused while a real KAI runs."
    ),
]
WebhookHost = Annotated[
    str, typer.Option(help="Address of this machine under which the API server reaches the webhook.")
]
WebhookPort = Annotated[
    int, typer.Option(min=0, max=65535, help="0: the one in the state folder, else any free one.")
]
ExtenderPort = Annotated[
    int,
    typer.Option(min=0, max=65535, help="On 127.0.0.1. 0: the one in the state folder, else any free one."),
]
ProbePort = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=65535,
        help="Serve /healthz, /readyz, /leaderz and /metrics on every address, too; "
        "the verbs stay on 127.0.0.1.",
    ),
]
Service = Annotated[
    str,
    typer.Option(
        help="NAMESPACE/NAME of the Service in front of us: run in a Pod, where manifests have registered "
        "the webhook. Only caBundle is written there."
    ),
]
SecretOption = Annotated[
    str,
    typer.Option(
        "--secret",
        help="With --service: NAMESPACE/NAME of the Secret where replicas share authority and certificate. "
        "Default: the Service's name with -certificates.",
    ),
]
CertDir = Annotated[
    Path | None,
    typer.Option(
        help="With --service: serve by tls.crt and tls.key of this folder, made and renewed by others "
        "(cert-manager), and write no caBundle."
    ),
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        help="Folder for certificates, ports, logs and the generated configuration. "
        "Default: one per kubeconfig in $XDG_STATE_HOME/allaboard/dev."
    ),
]
Unprotected = Annotated[
    str, typer.Option(hidden=True, help="Protections switched off, to prove that a check notices.")
]

LeaderElection = Annotated[
    str,
    typer.Option(
        metavar="[none|own|scheduler]",
        help="Which of several extenders plans. none: this one is the only one. own: the holder of --lease. "
        "scheduler: the one beside the kube-scheduler that holds --lease.",
    ),
]
LeaseOption = Annotated[
    str, typer.Option("--lease", help="NAMESPACE/NAME. Default: allaboard-system/allaboard-scheduler.")
]
Identity = Annotated[
    str, typer.Option(help="Our name in the election, or kube-scheduler's beside us. Default: the host name.")
]
ScaleUpAfter = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="Drop the gates of a gang that would fit no domain even if nobody else were there, after so "
        "long: a cluster autoscaler doesn't see gated Pods. Default: never.",
    ),
]

Evict = Annotated[
    str,
    typer.Option(
        metavar="[preempt,reclaim]",
        help="For whom whole gangs are evicted. preempt: one of higher priority in the same queue. "
        "reclaim: one whose queue stays within its quota, from queues over theirs. Default: nobody is.",
    ),
]
MinRuntime = Annotated[
    float,
    typer.Option(min=0, help="Seconds for which a gang is safe from that, unless its queue says so itself."),
]

PROFILES = "allaboard,kai-scheduler"
HOST = "127.0.0.1"
