"""Announcements become Kubernetes events, at a bounded rate, and are never in anybody's way."""

import asyncio
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender import events
from extender.events import EventWriter, event
from extender.news import Announcement
from gangs.pods import Owner
from gangs.reasons import Reason
from tests.builders import make_pod
from tests.extender.world import Clock, FakeApi

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def an(reason: Reason = Reason.WAITING, message: str = "no room", **rest: object) -> Announcement:
    return Announcement(make_pod(), reason, message, **rest)  # type: ignore[arg-type]


async def run(writer: EventWriter, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await writer.run()


def test_an_event_on_a_pod_has_what_describe_looks_for() -> None:
    body = event(an(), NOW)
    assert body["metadata"]["namespace"] == "default"
    assert body["metadata"]["name"].startswith("llm-0.")
    assert body["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "llm-0",
        "uid": "u-llm-0",
    }
    assert (body["reason"], body["message"], body["type"]) == ("GangWaiting", "no room", "Normal")
    assert body["firstTimestamp"] == body["lastTimestamp"] == "2026-01-01T00:00:00Z"
    assert body["source"] == {"component": "allaboard"}
    assert body["count"] == 1


def test_what_somebody_must_see_to_is_a_warning() -> None:
    assert {reason for reason in Reason if event(an(reason), NOW)["type"] == "Warning"} == {
        Reason.HELD,
        Reason.TORN,
        Reason.STALE,
        Reason.SLIPPED,
    }


def test_reasons_are_camel_case_as_the_api_wants_them() -> None:
    assert all(re.fullmatch(r"Gang([A-Z][a-z]+)+", reason) for reason in Reason)


def test_an_event_on_an_owner_names_the_owner_of_whatever_kind() -> None:
    owner = Owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "llm", "u-1")
    assert event(an(owner=owner), NOW)["involvedObject"] == {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "namespace": "default",
        "name": "llm",
        "uid": "u-1",
    }


def test_two_events_never_have_the_same_name() -> None:
    assert event(an(), NOW)["metadata"]["name"] != event(an(), NOW)["metadata"]["name"]


def test_a_message_is_cut_to_what_an_event_takes() -> None:
    assert len(event(an(message="x" * 5000), NOW)["message"]) == 1024


@given(st.integers(1, 253))
def test_the_name_of_an_event_is_valid_however_long_the_name_of_the_pod(length: int) -> None:
    name = ("a-." * 85)[: length - 1] + "a"
    found = event(Announcement(make_pod(name), Reason.WAITING, "m"), NOW)["metadata"]["name"]
    assert len(found) <= 253
    assert "-." not in found[-18:]
    assert ".." not in found[-18:]


@pytest.mark.looptime
class TestWriter:
    """The queue and its task."""

    async def test_events_are_written_in_order_at_a_bounded_rate(self) -> None:
        api = FakeApi()
        writer = EventWriter(api, lambda: NOW)
        writer.put(an(message=str(number)) for number in range(100))
        await run(writer, 2.01)
        assert len(api.calls) == 2 * events.PER_SECOND + 1
        assert [call.body["message"] for call in api.calls[:3]] == ["0", "1", "2"]
        assert api.calls[0].path == "/api/v1/namespaces/default/events"

    async def test_a_controller_is_told_the_same_thing_once_a_minute(self) -> None:
        api, clock = FakeApi(), Clock(NOW)
        writer = EventWriter(api, clock)
        owner = Owner("apps/v1", "ReplicaSet", "web", "u-web")
        for _ in range(3):
            writer.put([an(owner=owner), an(owner=owner), an(Reason.BOARDED, owner=owner), an()])
            clock.advance(events.OWNER_SECONDS / 2)
        await run(writer, 1)
        kinds = [call.body["involvedObject"]["kind"] for call in api.calls]
        assert (kinds.count("ReplicaSet"), kinds.count("Pod")) == (4, 3)

    async def test_one_that_can_not_be_written_is_dropped_and_the_next_goes_on(self) -> None:
        api = FakeApi()
        api.fail("events", 403, 0)
        writer = EventWriter(api, lambda: NOW)
        writer.put(an(message=text) for text in "abc")
        await run(writer, 1)
        assert [call.body["message"] for call in api.calls] == ["a", "b", "c"]

    async def test_what_exceeds_the_queue_is_dropped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(events, "_MAX_QUEUE", 3)
        api = FakeApi()
        writer = EventWriter(api, lambda: NOW)
        writer.put(an() for _ in range(10))
        await run(writer, 2)
        assert len(api.calls) == 3
