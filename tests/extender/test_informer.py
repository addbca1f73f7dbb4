"""List and watch against an API server that plays tricks."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, cast

from extender.api import Api, ApiError
from extender.informer import Informer
from tests.builders import Json

Page = Json | ApiError | None
Event = tuple[str, Json] | ApiError


def thing(uid: str, version: int = 1) -> Json:
    return {"metadata": {"uid": uid, "resourceVersion": str(version)}}


def page(*uids: str, version: int = 1, more: str = "") -> Json:
    return {
        "metadata": {"resourceVersion": str(version), "continue": more},
        "items": [thing(u) for u in uids],
    }


def error(status: int) -> ApiError:
    return ApiError("GET", "/things", status, "", "")


class Script:
    """An API server that answers lists and watches from a script, then has the informer stopped."""

    def __init__(self, pages: list[Page], watches: list[list[Event]]) -> None:
        self.pages = pages
        self.watches = watches
        self.asked: list[tuple[str, str]] = []

    async def get(self, path: str, params: Mapping[str, str]) -> Json | None:
        self.asked.append(("list", params.get("continue", "")))
        if not self.pages:
            raise asyncio.CancelledError
        answer = self.pages.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def watch(self, path: str, version: str) -> AsyncIterator[tuple[str, Json]]:
        self.asked.append(("watch", version))
        if not self.watches:
            raise asyncio.CancelledError
        for event in self.watches.pop(0):
            if isinstance(event, ApiError):
                raise event
            yield event


class Heard:
    """A handler that remembers."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def put(self, obj: Json) -> None:
        self.told.append(f"+{obj['metadata']['uid']}")

    def drop(self, uid: str) -> None:
        self.told.append(f"-{uid}")


async def follow(pages: list[Page], *watches: list[Event]) -> tuple[Script, list[str], list[float], Informer]:
    """Run the script to its end: what was asked, what was told, and how long was paused."""
    script, heard, pauses = Script(pages, list(watches)), Heard(), list[float]()

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    informer = Informer(cast("Api", cast("Any", script)), "/things", heard, pause)
    with suppress(asyncio.CancelledError):
        await informer.run()
    return script, heard.told, pauses, informer


async def test_it_lists_then_watches_from_the_version_of_the_list() -> None:
    script, told, _, informer = await follow([page("a", "b", version=7)], [("ADDED", thing("c", 8))])
    assert told == ["+a", "+b", "+c"]
    assert script.asked[:3] == [("list", ""), ("watch", "7"), ("watch", "8")]
    assert informer.synced.is_set()


async def test_long_lists_come_page_by_page_and_count_as_synced_after_the_last() -> None:
    script, told, _, _ = await follow([page("a", more="x"), page("b", version=9)])
    assert told == ["+a", "+b"]
    assert script.asked == [("list", ""), ("list", "x"), ("watch", "9")]


async def test_changes_and_ends_are_told() -> None:
    _, told, _, _ = await follow([page("a")], [("MODIFIED", thing("a", 2)), ("DELETED", thing("a", 3))])
    assert told == ["+a", "+a", "-a"]


async def test_a_bookmark_moves_the_version_and_tells_nobody() -> None:
    mark = {"metadata": {"resourceVersion": "50"}}
    script, told, _, _ = await follow([page("a")], [("BOOKMARK", mark)])
    assert told == ["+a"]
    assert script.asked[-1] == ("watch", "50")


async def test_a_watch_that_ends_is_taken_up_where_it_ended_without_a_pause() -> None:
    script, _, pauses, _ = await follow([page("a")], [("ADDED", thing("b", 4))])
    assert script.asked[1:] == [("watch", "1"), ("watch", "4")]
    assert pauses == []


async def test_an_api_server_that_ends_every_watch_at_once_is_not_asked_without_a_pause() -> None:
    _, _, pauses, _ = await follow([page("a")], *[list[Event]() for _ in range(7)])
    assert pauses == sorted(pauses)
    assert 0 < pauses[0] < pauses[6] <= 5


async def test_an_api_server_that_finds_every_version_too_old_is_not_asked_without_a_pause() -> None:
    _, _, pauses, _ = await follow([page("a")] * 8, *[list[Event]([error(410)]) for _ in range(7)])
    assert pauses == sorted(pauses)
    assert 0 < pauses[0] < pauses[6] <= 5


async def test_a_version_that_is_too_old_means_a_new_list_which_tells_what_vanished() -> None:
    script, told, _, _ = await follow(
        [page("a", "b"), page("b", "d", version=9)], [("ADDED", thing("c", 2)), error(410)]
    )
    assert told[:5] == ["+a", "+b", "+c", "+b", "+d"]
    assert sorted(told[5:]) == ["-a", "-c"]
    assert script.asked[-1] == ("watch", "9")


async def test_a_watch_that_breaks_goes_on_from_the_last_version_after_a_pause() -> None:
    script, _, pauses, _ = await follow([page("a")], [("ADDED", thing("b", 4)), error(0)])
    assert script.asked[-1] == ("watch", "4")
    assert len(pauses) == 1


async def test_pauses_grow_while_it_fails_and_start_anew_after_success() -> None:
    fails: list[list[Event]] = [[error(500)] for _ in range(7)]
    _, _, pauses, _ = await follow([page("a")], *fails, [("ADDED", thing("b", 2)), error(0)])
    assert pauses[:7] == sorted(pauses[:7])
    assert pauses[0] < pauses[6] <= 5
    assert pauses[7] == pauses[0]


async def test_a_list_that_fails_is_tried_again_and_nothing_is_synced_meanwhile() -> None:
    script, told, pauses, informer = await follow([error(0), error(403)])
    assert told == []
    assert len(pauses) == 2
    assert not informer.synced.is_set()
    assert {kind for kind, _ in script.asked} == {"list"}


async def test_queues_do_not_vanish_while_a_restarted_api_server_does_not_serve_their_kind_yet() -> None:
    _, told, pauses, _ = await follow([page("a"), None, None, page("a", version=5)], [error(410)])
    assert told == ["+a", "+a"]
    assert len(pauses) == 3


async def test_a_kind_of_which_nothing_is_served_for_some_time_has_no_objects() -> None:
    _, told, pauses, informer = await follow([None] * 6)
    assert informer.synced.is_set()
    assert told == []
    assert 3 < sum(pauses) < 10


async def test_what_vanished_while_a_list_broke_off_is_told_by_the_next() -> None:
    _, told, _, _ = await follow([page("a", more="x"), error(0), page("b")])
    assert told == ["+a", "+b", "-a"]


async def test_a_page_that_has_expired_means_the_list_from_its_beginning() -> None:
    script, _, _, _ = await follow([page("a", more="x"), error(410), page("a", "b", version=5)])
    assert script.asked == [("list", ""), ("list", "x"), ("list", ""), ("watch", "5")]
