"""Manifests that follow from code: kube-scheduler's configuration and the webhook's registration.

    KubeSchedulerConfiguration ◄── allaboard/dev/scheduler.py     once for each set of scheduler names
    MutatingWebhookConfiguration ◄── webhook/registration.py

They are files, so that kustomize and people can read them; `make manifests` writes them anew.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from allaboard.dev.scheduler import configuration
from allaboard.dev.settings import Settings
from extender.leases import OUR_LEASE, Election
from gangs.contract import KAI_SCHEDULER_NAME, SCHEDULER_NAME
from webhook.registration import Service, build

Json = dict[str, Any]

SERVICE: Final = Service("allaboard-system", "allaboard-webhook")
EXTENDER_PORT: Final = 10260
OURS: Final = (SCHEDULER_NAME,)
WITH_KAI: Final = (SCHEDULER_NAME, KAI_SCHEDULER_NAME)
_HEAD: Final = "# Made by `make manifests`; change the code that it comes from instead: {}\n"


def derived() -> Mapping[str, str]:
    """Content by file, relative to the manifests' folder."""
    base, kai = "base", "components/kai-compat"
    return {
        f"{base}/scheduler/kube-scheduler.yaml": _scheduler(OURS),
        f"{kai}/kube-scheduler.yaml": _scheduler(WITH_KAI),
        f"{base}/webhook/registration.yaml": _registration(registration(OURS)),
        f"{kai}/registration.yaml": _registration(_conditions(registration(WITH_KAI))),
    }


def registration(profiles: tuple[str, ...]) -> Json:
    """As it is applied: without caBundle, which the webhook fills in."""
    body = build(SERVICE, b"", profiles, ignore_failures=False)
    for entry in body["webhooks"]:
        entry["clientConfig"].pop("caBundle", None)  # entries share it
    return body


def stale(folder: Path) -> Iterator[str]:
    """Files in the folder that are not what the code says."""
    for name, text in derived().items():
        path = folder / name
        if not path.is_file() or path.read_text() != text:
            yield name


def write(folder: Path) -> None:
    """Write them all."""
    for name, text in derived().items():
        (folder / name).write_text(text)


def _conditions(body: Json) -> Json:
    """A patch with nothing but what depends on the scheduler names."""
    entries = [{key: entry[key] for key in ("name", "matchConditions")} for entry in body["webhooks"]]
    return {**body, "metadata": {"name": body["metadata"]["name"]}, "webhooks": entries}


def _scheduler(profiles: tuple[str, ...]) -> str:
    settings = Settings(
        kubeconfig=None,
        profiles=profiles,
        webhook_host="",
        webhook_port=0,
        extender_port=EXTENDER_PORT,
        scheduler_port=0,
        state_dir=Path(),
        election=Election("scheduler", OUR_LEASE),
    )
    return _HEAD.format("allaboard/dev/scheduler.py") + _yaml(configuration(settings))


def _registration(body: Json) -> str:
    return _HEAD.format("webhook/registration.py") + _yaml(body)


class _Plain(yaml.SafeDumper):
    """Repeats what is repeated, instead of pointing at it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(body: Json) -> str:
    text: str = yaml.dump(body, Dumper=_Plain, sort_keys=False, width=110)
    return text
