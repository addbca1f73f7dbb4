"""Which Pods reach the webhook: the match conditions of registration.py once more, without an API server.

The API server judges in CEL; whoever has only files (`allaboard translate`) judges here, by the same
constants.
"""

from collections.abc import Mapping, Sequence

from gangs import contract
from webhook.pod import Pod, open_names, own_names
from webhook.registration import ALLABOARD_PREFIX, KEYS, LABEL_KEYS, TOPOLOGY_PREFIX


def arrives(pod: Pod, namespace_labels: Mapping[str, str], profiles: Sequence[str]) -> bool:
    """Whether the API server would show us this Pod (opt-outs aside, which mutate.py repeats)."""
    if pod.scheduler not in open_names(profiles):
        return False
    return _named(pod, profiles) or pod.accelerated or _asked_for_by(namespace_labels)


def _named(pod: Pod, profiles: Sequence[str]) -> bool:
    if pod.scheduler in own_names(profiles):
        return True
    if any(key.startswith((ALLABOARD_PREFIX, TOPOLOGY_PREFIX)) or key in KEYS for key in pod.annotations):
        return True
    return any(key.startswith(ALLABOARD_PREFIX) or key in LABEL_KEYS for key in pod.labels)


def _asked_for_by(namespace_labels: Mapping[str, str]) -> bool:
    enabled = namespace_labels.get(contract.LABEL_ENABLED) == "true"
    return enabled or namespace_labels.get(contract.NVCF_INSTANCE_TYPE) == contract.NVCF_MINISERVICE
