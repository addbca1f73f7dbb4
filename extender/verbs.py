"""kube-scheduler's extender protocol over HTTP (extender/v1, nodeCacheCapable): parse, ask, answer.

The wire types carry Go's field names. Always status 200: anything else is an error to kube-scheduler.
No rule lives here.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from extender import wire
from extender.barrier import Barrier
from extender.guard import Guard
from gangs.pods import Pod

_MAX_BODY: Final = 64 * 2**20  # ExtenderArgs of the largest Pod and 15,000 node names is under 2 MiB
_NOT_SYNCED: Final = "caches are not synced yet"
_STAND_BY: Final = "this extender is on stand-by: another one leads"
_KEEPALIVE_SECONDS: Final = 120  # longer than the 90 s for which Go's client keeps idle connections

GUARD: Final = web.AppKey("guard", Guard)
BARRIER: Final = web.AppKey("barrier", Barrier)
SYNCED: Final[web.AppKey[Callable[[], bool]]] = web.AppKey("synced")
LEADS: Final[web.AppKey[Callable[[], bool]]] = web.AppKey("leads")


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class MalformedPodError(ValueError):
    """The Pod in a call is none that an API server would give out."""


class MetaPod(_Wire):
    """MetaPod: a victim."""

    uid: str = Field(alias="UID")


class MetaVictims(_Wire):
    """MetaVictims: whom kube-scheduler would evict on one node; given back as it came."""

    model_config = ConfigDict(extra="allow", frozen=True)
    pods: list[MetaPod] | None = Field(None, alias="Pods")


class FilterArgs(_Wire):
    """ExtenderArgs, of filter and prioritize."""

    pod: dict[str, Any] = Field(alias="Pod")
    node_names: list[str] = Field(alias="NodeNames")


class BindArgs(_Wire):
    """ExtenderBindingArgs."""

    name: str = Field(alias="PodName")
    namespace: str = Field(alias="PodNamespace")
    uid: str = Field(alias="PodUID")
    node: str = Field(alias="Node")


class PreemptArgs(_Wire):
    """ExtenderPreemptionArgs."""

    pod: dict[str, Any] = Field(alias="Pod")
    victims: dict[str, MetaVictims] | None = Field(alias="NodeNameToMetaVictims")


async def filter_nodes(request: web.Request) -> web.Response:
    """filter: ExtenderArgs → ExtenderFilterResult."""
    args = FilterArgs.model_validate_json(await request.read())
    verdict = request.app[GUARD].filter(_pod(args.pod), args.node_names)
    return _json(
        {"NodeNames": list(verdict.passed), "FailedAndUnresolvableNodes": dict(verdict.refused), "Error": ""}
    )


async def prioritize_nodes(request: web.Request) -> web.Response:
    """prioritize: ExtenderArgs → HostPriorityList."""
    args = FilterArgs.model_validate_json(await request.read())
    scores = request.app[GUARD].prioritize(_pod(args.pod), args.node_names)
    return _json([{"Host": name, "Score": score} for name, score in scores.items()])


async def preempt(request: web.Request) -> web.Response:
    """preempt: ExtenderPreemptionArgs → ExtenderPreemptionResult; leaving a node out vetoes it."""
    args = PreemptArgs.model_validate_json(await request.read())
    offered = args.victims or {}
    uids = {node: [p.uid for p in row.pods or ()] for node, row in offered.items()}
    allowed = request.app[GUARD].preempt(_pod(args.pod), uids)
    return _json({"NodeNameToMetaVictims": {n: offered[n].model_dump(by_alias=True) for n in allowed}})


async def bind(request: web.Request) -> web.Response:
    """bind: ExtenderBindingArgs → ExtenderBindingResult; answers when the Pod is bound or won't be."""
    args = BindArgs.model_validate_json(await request.read())
    error = await request.app[BARRIER].bind(args.uid, args.namespace, args.name, args.node)
    return _json({"Error": error})


@web.middleware
async def readable_errors(request: web.Request, handler: Any) -> web.StreamResponse:
    """Malformed calls get one sentence instead of a trace."""
    try:
        answer: web.StreamResponse = await handler(request)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        return _json({"Error": f"{request.path}: {where}: {first['msg']}"}, status=400)
    except MalformedPodError as error:
        return _json({"Error": f"{request.path}: the Pod in the call is malformed: {error}"}, status=400)
    return answer


@web.middleware
async def only_when_able(request: web.Request, handler: Any) -> web.StreamResponse:
    """No verb is answered from half a cache or on stand-by; kube-scheduler tries again."""
    if request.method == "POST" and (why := _unable(request.app)):
        return _json({"Error": why}, status=503)
    answer: web.StreamResponse = await handler(request)
    return answer


async def healthz(_: web.Request) -> web.Response:
    """The process is alive."""
    return web.Response(text="ok")


async def readyz(request: web.Request) -> web.Response:
    """The caches are synced, on stand-bys too (rule 18 of the design)."""
    return _probe("" if request.app[SYNCED]() else _NOT_SYNCED)


async def leaderz(request: web.Request) -> web.Response:
    """This extender leads."""
    return _probe(_unable(request.app))


def application(
    guard: Guard, barrier: Barrier, synced: Callable[[], bool], leads: Callable[[], bool]
) -> web.Application:
    """The four verbs and three probes."""
    app = probes(synced, leads, [readable_errors, only_when_able])
    app[GUARD] = guard
    app[BARRIER] = barrier
    app.router.add_post("/filter", filter_nodes)
    app.router.add_post("/prioritize", prioritize_nodes)
    app.router.add_post("/preempt", preempt)
    app.router.add_post("/bind", bind)
    return app


def probes(
    synced: Callable[[], bool], leads: Callable[[], bool], middlewares: Sequence[Any] = ()
) -> web.Application:
    """The three probes alone."""
    app = web.Application(client_max_size=_MAX_BODY, middlewares=middlewares)
    app[SYNCED] = synced
    app[LEADS] = leads
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/leaderz", leaderz)
    return app


def runner(app: web.Application) -> web.AppRunner:
    """A runner that ends a bind call at once when kube-scheduler hangs up."""
    return web.AppRunner(
        app, access_log=None, keepalive_timeout=_KEEPALIVE_SECONDS, handler_cancellation=True
    )


def _probe(why: str) -> web.Response:
    return web.Response(text=why or "ok", status=503 if why else 200)


def _unable(app: web.Application) -> str:
    """Why no verb can be answered now, "" if they can."""
    if not app[SYNCED]():
        return _NOT_SYNCED
    return "" if app[LEADS]() else _STAND_BY


def _pod(obj: dict[str, Any]) -> Pod:
    """Read the Pod; raises MalformedPodError. What goes wrong later is our own fault and is not caught."""
    try:
        return wire.pod(obj)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise MalformedPodError(str(error)) from error


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), content_type="application/json", status=status)
