"""The raw API client against a small server that answers as the API server does, or worse."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from extender.api import JSON_PATCH, Api, ApiError, KubeconfigError, connect
from tests.builders import Json

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def no_token() -> str | None:
    return None


@asynccontextmanager
async def serving(
    handler: Handler, token: Callable[[], Awaitable[str | None]] = no_token
) -> AsyncIterator[Api]:
    """A client of a server whose every path is answered by the handler."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(app) as server:
        client = Api(str(server.make_url("/")), None, token)
        try:
            yield client
        finally:
            await client.close()


def answering(status: int, body: bytes) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body)

    return handler


def streaming(*chunks: bytes) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for chunk in chunks:
            await answer.write(chunk)
            await asyncio.sleep(0)
        return answer

    return handler


async def watched(*chunks: bytes) -> list[tuple[str, Json]]:
    async with serving(streaming(*chunks)) as api:
        return [event async for event in api.watch("/api/v1/pods", "7")]


def line(kind: str, obj: Json) -> bytes:
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


class TestCalls:
    """One request, one answer."""

    async def test_what_is_sent_arrives_with_method_body_and_type(self) -> None:
        seen = []

        async def handler(request: web.Request) -> web.Response:
            body = await request.json() if request.can_read_body else None
            seen.append((request.method, request.path_qs, request.content_type, body))
            return web.json_response({"ok": True})

        async with serving(handler) as api:
            assert await api.get("/a", {"limit": "5"}) == {"ok": True}
            await api.create("/b", {"x": 1})
            await api.replace("/c", {"x": 2})
            await api.patch("/d", {"x": 3})
            await api.patch("/e", [{"op": "test"}], JSON_PATCH)
            await api.delete("/f")
        assert seen == [
            ("GET", "/a?limit=5", "application/octet-stream", None),
            ("POST", "/b", "application/json", {"x": 1}),
            ("PUT", "/c", "application/json", {"x": 2}),
            ("PATCH", "/d", "application/merge-patch+json", {"x": 3}),
            ("PATCH", "/e", "application/json-patch+json", [{"op": "test"}]),
            ("DELETE", "/f", "application/octet-stream", None),
        ]

    async def test_the_token_is_asked_for_at_each_call(self) -> None:
        seen, tokens = [], iter(["Bearer one", "Bearer two"])

        async def handler(request: web.Request) -> web.Response:
            seen.append(request.headers.get("Authorization"))
            return web.json_response({})

        async def token() -> str | None:
            return next(tokens)

        async with serving(handler, token) as api:
            await api.get("/a")
            await api.get("/a")
        assert seen == ["Bearer one", "Bearer two"]

    async def test_what_does_not_exist_is_none_to_get_and_an_error_to_others(self) -> None:
        async with serving(answering(404, b'{"reason": "NotFound", "message": "gone"}')) as api:
            assert await api.get("/a") is None
            with pytest.raises(ApiError, match="DELETE /a: 404 NotFound: gone"):
                await api.delete("/a")

    async def test_an_error_carries_status_reason_and_message(self) -> None:
        async with serving(answering(409, b'{"reason": "Conflict", "message": "too late"}')) as api:
            with pytest.raises(ApiError) as refusal:
                await api.create("/a", {})
        assert (refusal.value.status, refusal.value.reason, refusal.value.message) == (
            409,
            "Conflict",
            "too late",
        )

    @pytest.mark.parametrize("body", [b"<html>bad gateway</html>", b"[1]", b"\xff\xfe", b""])
    async def test_an_error_that_is_no_status_object_is_told_as_it_came(self, body: bytes) -> None:
        async with serving(answering(502, body)) as api:
            with pytest.raises(ApiError) as refusal:
                await api.get("/a")
        assert refusal.value.status == 502
        assert refusal.value.message == body.decode(errors="replace")

    async def test_a_page_of_some_proxy_in_place_of_an_answer_is_an_error(self) -> None:
        async with serving(answering(200, b"<html>sign in</html>")) as api:
            with pytest.raises(ApiError, match="<html>sign in</html>"):
                await api.get("/a")

    async def test_a_server_that_is_not_there_is_an_error_of_status_0(self) -> None:
        api = Api("http://127.0.0.1:1", None, no_token)
        with pytest.raises(ApiError) as refusal:
            await api.get("/a")
        await api.close()
        assert (refusal.value.status, refusal.value.reason) == (0, "Unreachable")


class TestWatch:
    """One line an event, however the bytes arrive."""

    EXPECTED = (("ADDED", {"n": 1}), ("MODIFIED", {"n": 2, "text": "a\nb"}), ("BOOKMARK", {"n": 3}))
    EVENTS = b"".join(line(kind, obj) for kind, obj in EXPECTED)

    @pytest.mark.parametrize("size", [1, 2, 7, 30, 1000])
    async def test_events_are_the_same_wherever_the_stream_is_cut(self, size: int) -> None:
        chunks = [self.EVENTS[i : i + size] for i in range(0, len(self.EVENTS), size)]
        assert tuple(await watched(*chunks)) == self.EXPECTED

    async def test_an_event_may_be_longer_than_any_buffer(self) -> None:
        big = {"text": "x" * 300_000}
        assert await watched(line("ADDED", big)) == [("ADDED", big)]

    async def test_empty_lines_and_a_line_that_breaks_off_are_no_events(self) -> None:
        assert await watched(b"\n\n" + line("ADDED", {"n": 1}) + b'{"type": "ADD') == [("ADDED", {"n": 1})]

    async def test_it_asks_for_bookmarks_from_the_version_on(self) -> None:
        seen = []

        async def handler(request: web.Request) -> web.Response:
            seen.append(dict(request.query))
            return web.Response()

        async with serving(handler) as api:
            assert [event async for event in api.watch("/api/v1/pods", "7")] == []
        assert seen[0]["resourceVersion"] == "7"
        assert seen[0]["watch"] == "1"
        assert seen[0]["allowWatchBookmarks"] == "true"

    async def test_an_error_event_is_raised_after_what_came_before_it(self) -> None:
        told: list[tuple[str, Json]] = []

        async def follow(api: Api) -> None:
            async for event in api.watch("/api/v1/pods", "7"):
                told.append(event)  # noqa: PERF401 - what came before the error counts

        gone = {"code": 410, "reason": "Expired", "message": "too old"}
        async with serving(streaming(line("ADDED", {"n": 1}), line("ERROR", gone))) as api:
            with pytest.raises(ApiError, match="too old") as refusal:
                await follow(api)
        assert refusal.value.status == 410
        assert told == [("ADDED", {"n": 1})]

    async def test_a_watch_that_is_refused_is_an_error(self) -> None:
        async with serving(answering(410, b'{"reason": "Expired", "message": "too old"}')) as api:
            with pytest.raises(ApiError) as refusal:
                await anext(aiter(api.watch("/api/v1/pods", "7")))
        assert refusal.value.status == 410

    @pytest.mark.parametrize("text", [b"<html>", b"{}", b"[1]", b'{"type": "ADDED"}'])
    async def test_a_line_that_is_no_event_is_an_error_that_quotes_it(self, text: bytes) -> None:
        with pytest.raises(ApiError) as refusal:
            await watched(text + b"\n")
        assert refusal.value.status == 200

    async def test_a_server_that_is_not_there_is_an_error_of_status_0(self) -> None:
        api = Api("http://127.0.0.1:1", None, no_token)
        with pytest.raises(ApiError) as refusal:
            await anext(aiter(api.watch("/api/v1/pods", "7")))
        await api.close()
        assert refusal.value.status == 0


class TestConnect:
    """Which kubeconfig can't be used, and why."""

    @pytest.mark.parametrize(
        "content", [None, "", "kind: Config\n", "{", "- a", "clusters: 7", "current-context: x"]
    )
    async def test_the_error_names_the_file(self, tmp_path: Path, content: str | None) -> None:
        path = tmp_path / "kubeconfig"
        if content is not None:
            path.write_text(content)
        with pytest.raises(KubeconfigError, match=f"can't connect by {path}: "):
            await connect(path)

    async def test_without_a_file_it_wants_to_be_in_a_pod(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        with pytest.raises(KubeconfigError, match="the Pod's service account"):
            await connect(None)

    async def test_a_kubeconfig_gives_the_server_and_its_token(self, tmp_path: Path) -> None:
        seen = []

        async def handler(request: web.Request) -> web.Response:
            seen.append(request.headers.get("Authorization"))
            return web.json_response({})

        app = web.Application()
        app.router.add_get("/a", handler)
        async with TestServer(app) as server:
            path = tmp_path / "kubeconfig"
            path.write_text(
                f"""
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: k, cluster: {{server: "{server.make_url("")}"}}}}]
users: [{{name: u, user: {{token: secret}}}}]
contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
"""
            )
            api = await connect(path)
            await api.get("/a")
            await api.close()
        assert seen == ["Bearer secret"]
