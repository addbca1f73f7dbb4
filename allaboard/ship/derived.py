"""Manifests that follow from code: kube-scheduler's configuration and the webhook's registration.

    KubeSchedulerConfiguration ◄── allaboard/dev/scheduler.py     once for each set of scheduler names
    MutatingWebhookConfiguration ◄── webhook/registration.py

They are files, so that kustomize and people can read them; `make manifests` writes them anew.
"""

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


def derived() -> dict[str, str]:
    """Content by file, relative to the manifests' folder."""
    base, kai = "base", "components/kai-compat"
    scheduler, webhook = _HEAD.format("allaboard/dev/scheduler.py"), _HEAD.format("webhook/registration.py")
    conditions = _conditions(registration(WITH_KAI))
    return {
        f"{base}/scheduler/kube-scheduler.yaml": scheduler + rendered_scheduler(OURS),
        f"{kai}/kube-scheduler.yaml": scheduler + rendered_scheduler(WITH_KAI),
        f"{base}/webhook/registration.yaml": webhook + rendered_registration(registration(OURS)),
        f"{kai}/registration.yaml": webhook + rendered_registration(conditions),
    }


def registration(profiles: tuple[str, ...]) -> Json:
    """As it is applied: without caBundle, which the webhook fills in."""
    body = build(SERVICE, b"", profiles, ignore_failures=False)
    for entry in body["webhooks"]:
        entry["clientConfig"].pop("caBundle", None)  # entries share it
    return body


def _conditions(body: Json) -> Json:
    """A patch with nothing but what depends on the scheduler names."""
    entries = [{key: entry[key] for key in ("name", "matchConditions")} for entry in body["webhooks"]]
    return {**body, "metadata": {"name": body["metadata"]["name"]}, "webhooks": entries}


def rendered_scheduler(profiles: tuple[str, ...]) -> str:
    """kube-scheduler's configuration beside an extender in a Pod."""
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
    return _yaml(configuration(settings))


def rendered_registration(body: Json) -> str:
    """A registration as YAML."""
    return _yaml(body)


class _Plain(yaml.SafeDumper):
    """Repeats what is repeated, instead of pointing at it; CEL in double quotes, as it has single ones."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if "'" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Plain.add_representer(str, _text)


def _yaml(body: Json) -> str:
    text: str = yaml.dump(body, Dumper=_Plain, sort_keys=False, width=10**6)
    return text
