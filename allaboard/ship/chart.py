"""The Helm chart's templates that are the kustomize manifests, with the chart's namespace and conditions.

    manifests/base, manifests/components ──► manifests/chart/templates    `make manifests`

Deployments are written by hand, since values reach deep into them; `make manifests-check` compares what both
ways render.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from allaboard.ship.derived import registration, rendered_registration, rendered_scheduler

_NAMESPACE: Final = "allaboard-system"
# Stands for the scheduler names while code makes what depends on them; no name can look like this.
_NAMES: Final = "@NAMES@"
_HEAD: Final = "{{{{- /* Made by `make manifests` from {} */}}}}\n"
_KAI: Final = 'has "kai-scheduler" .Values.profiles'

# Template: where it comes from, and on what it depends.
_COPIES: Final[Mapping[str, tuple[str, str]]] = {
    "priority-class": ("base/priority-class.yaml", ""),
    "plan-policy": ("base/plan-policy.yaml", ""),
    "scheduler-service-account": ("base/scheduler/service-account.yaml", ""),
    "scheduler-roles": ("base/scheduler/roles.yaml", ""),
    "scheduler-service": ("base/scheduler/service.yaml", ""),
    "scheduler-disruption": ("base/scheduler/disruption.yaml", ""),
    "webhook-service-account": ("base/webhook/service-account.yaml", ""),
    "webhook-roles": ("base/webhook/roles.yaml", ""),
    "webhook-certificates": ("base/webhook/certificates.yaml", "not .Values.certManager.enabled"),
    "webhook-service": ("base/webhook/service.yaml", ""),
    "webhook-disruption": ("base/webhook/disruption.yaml", ""),
    "owner-kind-argo": ("base/owner-kinds/argo.yaml", ".Values.ownerKinds.argo"),
    "owner-kind-dynamo": ("base/owner-kinds/dynamo.yaml", ".Values.ownerKinds.dynamo"),
    "owner-kind-grove": ("base/owner-kinds/grove.yaml", ".Values.ownerKinds.grove"),
    "owner-kind-trainjob": ("base/owner-kinds/trainjob.yaml", ".Values.ownerKinds.trainjob"),
    "preemption-role": ("components/preemption/role.yaml", ".Values.preemption.enabled"),
    "owner-kind-jobset": ("base/owner-kinds/jobset.yaml", ".Values.ownerKinds.jobset"),
    "owner-kind-kubeflow": ("base/owner-kinds/kubeflow.yaml", ".Values.ownerKinds.kubeflow"),
    "owner-kind-leaderworkerset": (
        "base/owner-kinds/leaderworkerset.yaml",
        ".Values.ownerKinds.leaderworkerset",
    ),
    "owner-kind-podgroups": ("base/owner-kinds/podgroups.yaml", ".Values.ownerKinds.podgroups"),
    "owner-kind-ray": ("base/owner-kinds/ray.yaml", ".Values.ownerKinds.ray"),
    "install-role": ("components/kai-compat/install-role.yaml", _KAI),
    "network-policies": ("components/networkpolicy/policies.yaml", ".Values.networkPolicy.enabled"),
    "prometheus": ("components/prometheus/monitor.yaml", ".Values.prometheus.enabled"),
    "cert-manager": ("components/cert-manager/certificate.yaml", ".Values.certManager.enabled"),
}

_CONFIGURATION: Final = """apiVersion: v1
kind: ConfigMap
metadata:
  name: allaboard-kube-scheduler
  namespace: {{ .Release.Namespace }}
data:
  kube-scheduler.yaml: |
"""
_EACH_NAME: Final = """    {{- range .Values.profiles }}
    - schedulerName: {{ . }}
    {{- end }}
"""
_INJECT: Final = """  {{- if .Values.certManager.enabled }}
  annotations:
    cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/allaboard-webhook
  {{- end }}
"""


def templates(manifests: Path) -> dict[str, str]:
    """Content by file, relative to the manifests' folder."""
    made = {name: _copy(manifests, source, when) for name, (source, when) in _COPIES.items()}
    made["kube-scheduler-configuration"] = _scheduler()
    made["webhook-registration"] = _registration()
    return {f"chart/templates/{name}.yaml": text for name, text in made.items()}


def _copy(manifests: Path, source: str, when: str) -> str:
    body = (manifests / source).read_text().replace(_NAMESPACE, "{{ .Release.Namespace }}")
    head = _HEAD.format(f"manifests/{source}")
    return f"{head}{{{{- if {when} }}}}\n{body}{{{{- end }}}}\n" if when else head + body


def _scheduler() -> str:
    lines = rendered_scheduler((_NAMES,)).replace(_NAMESPACE, "{{ .Release.Namespace }}")
    head = _HEAD.format("allaboard/dev/scheduler.py")
    return head + _CONFIGURATION + "".join(_scheduler_lines(lines))


def _scheduler_lines(text: str) -> Iterator[str]:
    for line in text.splitlines(keepends=True):
        yield _EACH_NAME if _NAMES in line else f"    {line}"


def _registration() -> str:
    text = rendered_registration(registration((_NAMES,))).replace(_NAMESPACE, "{{ .Release.Namespace }}")
    names = text.replace(f"'{_NAMES}'", '{{ include "allaboard.celNames" . }}')
    return _HEAD.format("webhook/registration.py") + names.replace("  labels:\n", f"{_INJECT}  labels:\n", 1)
