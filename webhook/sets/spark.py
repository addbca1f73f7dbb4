"""Spark's driver and executors, told by labels that Spark itself writes: one gang, of which nobody waits.

The driver makes the executors once it runs, so waiting for them would be waiting for ever; what is asked for
the application (a domain, say) is asked for all of them together. There is no object to be read.
"""

from dataclasses import replace
from typing import Final

from gangs import contract
from webhook.pod import Owner, Pod
from webhook.sets.common import Json, Part, owner

NAME: Final = contract.SPARK_APP
KIND: Final = "SparkApplication"
PATHS: Final[dict[str, tuple[str, ...]]] = {}


def where(_: Pod) -> str:
    return ""


def group(pod: Pod, _: Json) -> Owner | None:
    if not pod.labels.get(contract.SPARK_NAME):
        return None
    made = owner(KIND, pod, {}, Part(pod.labels[NAME], size=1, floor=1, late=True))
    return replace(made, size=None, most=None)
