"""How the API server learns which Pods to show us: the MutatingWebhookConfiguration.

Match conditions see only the Pod, so they let through what *may* ask for something (design rule 1), and
each Pod through one entry only. Their order matters, because our own change makes a Pod match `named`,
and an entry that was passed over is not asked again.

    named        names our schedulers or carries a dialect's key    Fail: it must not slip by
    owned        wants accelerators; perhaps its owner asks         Ignore: perhaps it is not ours at all
    enabled      neither, in a namespace where everything counts    Ignore
    miniservice  neither, in a namespace of an NVCF function        Ignore
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from gangs import contract
from webhook.pod import open_names, own_names

Json = dict[str, Any]

# After "nvca", whose changes to a Pod we want to see.
NAME: Final = "zz-allaboard"
_DOMAIN: Final = "webhook.allaboard.dev"
_FAIL_SECONDS: Final = 3
_IGNORE_SECONDS: Final = 2


@dataclass(frozen=True, slots=True)
class Service:
    """A webhook inside the cluster."""

    namespace: str
    name: str
    port: int = 443


@dataclass(frozen=True, slots=True)
class Url:
    """A webhook that runs elsewhere, e.g. https://127.0.0.1:9443/mutate."""

    url: str


def build(where: Service | Url, ca_bundle: bytes, profiles: Sequence[str], *, ignore_failures: bool) -> Json:
    """The MutatingWebhookConfiguration. profiles: scheduler names served.

    ignore_failures: let Pods pass unseen while the webhook is away (development).
    """
    named, owned = _named(profiles), _OWNED
    unclaimed = ("unclaimed", _unclaimed(profiles))
    neither = (unclaimed, ("not-named", f"!({named})"), ("not-owned", f"!({owned})"))
    enabled = _in(contract.LABEL_ENABLED, "true")
    miniservice = _in(contract.NVCF_INSTANCE_TYPE, contract.NVCF_MINISERVICE)
    client = {**_client(where), "caBundle": b64encode(ca_bundle).decode()}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/managed-by": "allaboard"}},
        "webhooks": [
            _entry("named", client, [unclaimed, ("named", named)], must_answer=not ignore_failures),
            _entry("owned", client, [unclaimed, ("not-named", f"!({named})"), ("owned", owned)]),
            _entry("enabled", client, neither, [enabled]),
            _entry("miniservice", client, neither, [miniservice, _not_in(contract.LABEL_ENABLED, "true")]),
        ],
    }


def _entry(
    name: str,
    client: Json,
    conditions: Sequence[tuple[str, str]],
    namespaces: Sequence[Json] = (),
    *,
    must_answer: bool = False,
) -> Json:
    not_ignored = _not_in(contract.LABEL_WEBHOOK, contract.WEBHOOK_IGNORE)
    not_system = _not_in("kubernetes.io/metadata.name", contract.SYSTEM_NAMESPACE)
    return {
        "name": f"{name}.{_DOMAIN}",
        "clientConfig": client,
        "rules": [
            {
                "operations": ["CREATE"],
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["pods"],
                "scope": "Namespaced",
            }
        ],
        "namespaceSelector": {"matchExpressions": [not_system, not_ignored, *namespaces]},
        "objectSelector": {"matchExpressions": [not_ignored]},
        "matchConditions": [{"name": n, "expression": e} for n, e in (*_NEVER, *conditions)],
        "failurePolicy": "Fail" if must_answer else "Ignore",
        "timeoutSeconds": _FAIL_SECONDS if must_answer else _IGNORE_SECONDS,
        "matchPolicy": "Equivalent",
        "reinvocationPolicy": "IfNeeded",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


def _client(where: Service | Url) -> Json:
    if isinstance(where, Url):
        return {"url": where.url}
    service = {"namespace": where.namespace, "name": where.name, "path": "/mutate", "port": where.port}
    return {"service": service}


def _in(key: str, value: str) -> Json:
    return {"key": key, "operator": "In", "values": [value]}


def _not_in(key: str, value: str) -> Json:
    return {"key": key, "operator": "NotIn", "values": [value]}


# CEL from here on. Each reads a few maps of the Pod, and no field without asking whether it is there.

_NEVER: Final = (
    ("not-bound", "!has(object.spec.nodeName) || object.spec.nodeName == ''"),
    (
        "no-daemon",
        "!has(object.metadata.ownerReferences)"
        " || !object.metadata.ownerReferences.exists(o, o.kind == 'DaemonSet')",
    ),
    (
        "no-mirror",
        "!has(object.metadata.annotations)"
        " || !('kubernetes.io/config.mirror' in object.metadata.annotations)",
    ),
)

ALLABOARD_PREFIX: Final = "allaboard.dev/"
KEYS: Final = (
    contract.NVCF_INDEX,
    contract.KAI_BATCH_MIN_MEMBER,
    contract.VOLCANO_GROUP,
    contract.KOORDINATOR_GROUP,
    contract.YUNIKORN_GROUP,
)
LABEL_KEYS: Final = (contract.COSCHEDULING_GROUP, contract.LIGHTWEIGHT_GROUP, contract.GROVE_PODGANG)
# Their common beginning; KAI's other keys (a queue, a priority) ask for no gang.
TOPOLOGY_PREFIX: Final = contract.KAI_TOPOLOGY


def _named(profiles: Sequence[str]) -> str:
    annotation = (
        f"k.startsWith('{ALLABOARD_PREFIX}') || k.startsWith('{TOPOLOGY_PREFIX}') || k in {_strings(KEYS)}"
    )
    label = f"k.startsWith('{ALLABOARD_PREFIX}') || k in {_strings(LABEL_KEYS)}"
    return (
        f"(has(object.spec.schedulerName) && object.spec.schedulerName in {_strings(own_names(profiles))})"
        f" || (has(object.metadata.annotations) && object.metadata.annotations.exists(k, {annotation}))"
        " || (has(object.metadata.labels)"
        f" && object.metadata.labels.exists(k, {label}))"
    )


def _unclaimed(profiles: Sequence[str]) -> str:
    """Pods that name somebody else's scheduler are his."""
    names = _strings(open_names(profiles))
    return f"!has(object.spec.schedulerName) || object.spec.schedulerName in {names}"


def _strings(values: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"


def _wants_devices(containers: str) -> str:
    def lists(kind: str) -> str:
        names = f"c.resources.{kind}.exists(k, k.startsWith('{contract.NVIDIA_PREFIX}'))"
        return f"(has(c.resources.{kind}) && {names})"

    per_container = f"has(c.resources) && ({lists('limits')} || {lists('requests')})"
    return f"(has(object.spec.{containers}) && object.spec.{containers}.exists(c, {per_container}))"


_OWNED: Final = (
    "(has(object.spec.resourceClaims) && size(object.spec.resourceClaims) > 0)"
    f" || {_wants_devices('containers')} || {_wants_devices('initContainers')}"
)
