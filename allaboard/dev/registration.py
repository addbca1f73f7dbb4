"""Puts the webhook into the API server's configuration, takes it out, and proves that it works."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from allaboard.dev.settings import Settings
from extender.api import APPLY, Api, ApiError, Json
from gangs.contract import GATE, LABEL_GANG
from webhook.registration import NAME, Url, build

CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_PROBE_SECONDS: Final = 0.2
_COMPLAIN_SECONDS: Final = (3.0, 30.0)  # first after, then every

log = structlog.get_logger(__name__)


async def register(api: Api, settings: Settings, ca_bundle: bytes) -> None:
    """Register by URL; what a killed run left behind is replaced."""
    body = build(Url(settings.webhook_url), ca_bundle, settings.profiles, ignore_failures=True)
    await api.patch(f"{CONFIGURATIONS}/{NAME}", body, APPLY, {"fieldManager": "allaboard", "force": "true"})


async def unregister(api: Api) -> bool:
    """Remove the registration; whether there was one."""
    try:
        await api.delete(f"{CONFIGURATIONS}/{NAME}")
    except ApiError as error:
        if error.status != 404:
            raise
        return False
    return True


async def mutates(api: Api, settings: Settings, say: Callable[[str], None]) -> None:
    """Return once a dry-run Pod comes back with our gate; complain while it does not."""
    started = asyncio.get_running_loop().time()
    first, every = _COMPLAIN_SECONDS
    complain_at = started + first
    while True:
        failure = await _probe(api, settings)
        if not failure:
            return
        now = asyncio.get_running_loop().time()
        if now >= complain_at:
            say(f"not ready after {now - started:.0f} s: {failure}")
            complain_at = now + every
        await asyncio.sleep(_PROBE_SECONDS)


async def _probe(api: Api, settings: Settings) -> str:
    """ "" or what is wrong."""
    try:
        pod = await api.create("/api/v1/namespaces/default/pods", _pod(settings), {"dryRun": "All"})
    except ApiError as error:
        return f"a dry-run Pod in namespace default was not accepted: {error.message}"
    if any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates") or ()):
        return ""
    return (
        f"the API server does not reach the webhook at {settings.webhook_url}; if it runs on another "
        f"machine, give an address of this one that it can reach: --webhook-host ADDRESS"
    )


def _pod(settings: Settings) -> Json:
    return {
        "metadata": {"generateName": "allaboard-probe-", "labels": {LABEL_GANG: "allaboard-probe"}},
        "spec": {
            "schedulerName": settings.profiles[0],
            "containers": [{"name": "probe", "image": "registry.invalid/probe:0"}],
        },
    }
