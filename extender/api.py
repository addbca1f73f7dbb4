"""The raw API client: JSON in, JSON out, one connection pool.

Configuration (kubeconfig or in-cluster, exec plug-ins, tokens, client certificates) is read by
kubernetes-asyncio; the calls themselves are plain aiohttp and orjson, because the typed client builds
an object per field and costs several times as much on the hot path.

    connect(kubeconfig) ──► Api ──► get · create · patch · delete · watch
"""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import aiohttp
import orjson

Json = dict[str, Any]
Token = Callable[[], Awaitable[str | None]]

MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"

_CALL_TIMEOUT: Final = aiohttp.ClientTimeout(total=30, sock_connect=5)
# A healthy watch brings a bookmark a minute; one that is silent for longer is a dead connection.
_WATCH_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=100)
_WATCH_SECONDS: Final = 300  # the server ends each watch after this; the caller starts the next
_CONNECTIONS: Final = 64


class ApiError(Exception):
    """The API server answered with an error, or could not be reached (status 0)."""

    def __init__(self, method: str, path: str, status: int, reason: str, message: str) -> None:
        super().__init__(f"{method} {path}: {status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def final(self) -> bool:
        """Whether the same call will be refused again: it was understood, and the server was not too busy."""
        return 400 <= self.status < 500 and self.status != 429

    @property
    def conflict(self) -> bool:
        """Whether the object exists already, or is no longer as the call took it to be."""
        return self.status == 409


class KubeconfigError(Exception):
    """The kubeconfig can't be used; the text says which file and why."""


class Api:
    """One API server. Close it when done; safe for concurrent use in one event loop."""

    def __init__(self, url: str, context: ssl.SSLContext | None, token: Token) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._session = _session(context, _CONNECTIONS, _CALL_TIMEOUT)
        # Watches hold a connection for minutes each: not from the pool of the calls.
        self._watches = _session(context, 0, _WATCH_TIMEOUT)

    async def close(self) -> None:
        """Close all connections; watches in progress end with an error."""
        await self._session.close()
        await self._watches.close()

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json | None:
        """The object at path, or None where there is none (404). Raises ApiError."""
        try:
            return await self._call("GET", path, params=params)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def create(self, path: str, body: Json, params: Mapping[str, str] | None = None) -> Json:
        """POST body; raises ApiError (409 AlreadyExists or Conflict among them)."""
        return await self._call("POST", path, body, params=params)

    async def replace(self, path: str, body: Json) -> Json:
        """PUT body; raises ApiError."""
        return await self._call("PUT", path, body)

    async def patch(
        self, path: str, body: Any, kind: str = MERGE, params: Mapping[str, str] | None = None
    ) -> Json:
        """PATCH with a merge patch (default), JSON patch or server-side apply; raises ApiError."""
        return await self._call("PATCH", path, body, kind, params)

    async def delete(self, path: str, body: Json | None = None) -> Json:
        """DELETE with optional DeleteOptions; raises ApiError."""
        return await self._call("DELETE", path, body)

    async def watch(self, path: str, resource_version: str) -> AsyncIterator[tuple[str, Json]]:
        """Events after resource_version as (type, object), bookmarks included, until the server ends it.

        Raises ApiError with status 410 when the version is too old: list again.
        """
        params = {
            "watch": "1",
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        try:
            headers = await self._headers(None)
            async with self._watches.get(self.url + path, params=params, headers=headers) as answer:
                if answer.status != 200:
                    raise _error("WATCH", path, answer.status, await answer.read())
                async for line in _lines(answer.content):
                    yield _event(path, line)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiError("WATCH", path, 0, "Unreachable", _text(error)) from error

    async def _call(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = "application/json",
        params: Mapping[str, str] | None = None,
    ) -> Json:
        data = None if body is None else orjson.dumps(body)
        headers = await self._headers(kind if data is not None else None)
        try:
            async with self._session.request(
                method, self.url + path, data=data, headers=headers, params=params
            ) as answer:
                raw = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiError(method, path, 0, "Unreachable", _text(error)) from error
        if answer.status >= 400:
            raise _error(method, path, answer.status, raw)
        try:
            parsed: Json = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise _error(method, path, answer.status, raw) from error  # some proxy's page
        return parsed

    async def _headers(self, content: str | None) -> dict[str, str]:
        # Asked for each time: tokens of service accounts and exec plug-ins expire.
        token = await self._token()
        headers = {"Authorization": token} if token else {}
        return {**headers, "Content-Type": content} if content else headers


async def connect(kubeconfig: Path | None = None) -> Api:
    """Connect by kubeconfig file, or by the Pod's service account where none is given.

    Raises KubeconfigError. Nothing is sent yet: an unreachable server shows at the first call.
    """
    # Imported here because it takes more than a second, which commands that don't connect need not pay.
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config import ConfigException, load_incluster_config
    from kubernetes_asyncio.config.kube_config import load_kube_config
    from yaml import YAMLError

    configuration = Configuration()
    try:
        if kubeconfig is None:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            await load_kube_config(str(kubeconfig), client_configuration=configuration, persist_config=False)
    except (ConfigException, OSError, YAMLError, TypeError, AttributeError, ValueError) as error:
        # The reader of kubeconfig files raises whatever its YAML runs into.
        where = kubeconfig or "the Pod's service account"
        raise KubeconfigError(f"can't connect by {where}: {error}") from error
    return Api(
        configuration.host or "",
        _ssl_context(configuration),
        lambda: configuration.get_api_key_with_prefix("BearerToken"),
    )


def _session(
    context: ssl.SSLContext | None, connections: int, timeout: aiohttp.ClientTimeout
) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=connections, ssl=context if context else True)
    return aiohttp.ClientSession(connector=connector, headers={"Accept": "application/json"}, timeout=timeout)


def _ssl_context(configuration: Any) -> ssl.SSLContext | None:
    if not configuration.host.startswith("https"):
        return None
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    # StreamReader.readline refuses lines over 64 KiB, and a Node object can be longer.
    rest = b""
    async for chunk in stream.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line


def _event(path: str, line: bytes) -> tuple[str, Json]:
    try:
        event = orjson.loads(line)
        kind, obj = event["type"], event["object"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise _error("WATCH", path, 200, line) from error
    if kind == "ERROR":
        raise ApiError(
            "WATCH", path, int(obj.get("code", 500)), obj.get("reason", ""), obj.get("message", "")
        )
    return kind, obj


def _error(method: str, path: str, status: int, raw: bytes) -> ApiError:
    try:
        answer = orjson.loads(raw)
        return ApiError(method, path, status, str(answer.get("reason", "")), str(answer.get("message", "")))
    except (orjson.JSONDecodeError, AttributeError):
        return ApiError(method, path, status, "", raw[:200].decode(errors="replace"))


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
