"""People are told of a boarding that lasts, and once that a gang is aboard."""

from extender.boardings import LASTING_SECONDS, Boardings
from extender.news import SETTLED_SECONDS, Announcement
from gangs.pods import Pod
from gangs.reasons import Reason
from tests.builders import make_loose, make_owner
from tests.extender.world import World, gang


class Told:
    """A world, and what is said in it second by second."""

    def __init__(self, cliques: dict[str, int] | None = None) -> None:
        self.world = World(cliques)
        self.boardings = Boardings(self.world.registry, self.world.store)

    def after(self, seconds: float = 0.0) -> list[Announcement]:
        self.world.round(seconds)
        now = self.world.clock()
        return self.boardings.heard(self.world.news.due(now)) + list(self.boardings.due(now))

    def said(self, seconds: float = 0.0) -> list[tuple[str, str]]:
        return sorted(
            (row.reason.value, row.owner.name if row.owner else row.pod.name) for row in self.after(seconds)
        )


def owned(number: int = 2) -> list[Pod]:
    return gang(number, owner=make_owner("serve"))


def test_a_quick_boarding_is_told_on_the_owner_alone() -> None:
    told, pods = Told(), owned()
    told.world.board(*pods)
    told.world.bind(*pods)
    said = told.after(1)
    assert [(row.reason, row.owner) for row in said] == [(Reason.BOARDED, make_owner("serve"))]
    assert said[0].message == "Gang default/serve is aboard: 2 members bound in a."
    assert told.said(60) == []


def test_members_who_were_told_that_they_wait_are_told_that_they_are_aboard() -> None:
    told, pods = Told(), owned()
    told.world.board(pods[0])
    told.after()
    assert ("GangGathering", "llm-0") in told.said(SETTLED_SECONDS)
    told.world.board(*pods)
    told.world.bind(*pods)
    assert told.said() == [("GangBoarded", "llm-0"), ("GangBoarded", "serve")]


def test_a_boarding_that_lasts_is_told_on_owner_and_members_with_its_domain() -> None:
    told, pods = Told(), owned()
    told.world.board(*pods)
    assert told.said(LASTING_SECONDS - 0.1) == []
    said = told.after(0.1)
    assert [row.reason for row in said] == [Reason.GRANTED] * 3
    assert "2 members have a place in a and will be bound together" in said[0].message
    assert told.said(1) == []
    told.world.bind(*pods)
    assert told.said() == [("GangBoarded", name) for name in ("llm-0", "llm-1", "serve")]


def test_a_boarding_after_one_that_was_cancelled_says_why_that_was() -> None:
    told = Told({"a": 4, "b": 4})
    told.world.board(*owned())
    told.world.store.lose(told.world.registry.pods["u-llm-0"], "no disk")
    told.after(1)
    said = told.after(LASTING_SECONDS)
    assert {row.reason for row in said} == {Reason.REPLANNED}
    assert ": no disk); 2 members have a place in" in said[0].message


def test_a_gang_that_was_bound_in_part_is_not_called_aboard() -> None:
    told, pods = Told(), owned(3)
    told.world.board(*pods)
    told.world.bind(*pods[:2])
    told.world.update(make_loose("thief", node=told.world.seat(pods[2])))
    told.world.store.lose(told.world.registry.pods["u-llm-2"], "somebody took the room", certain=True)
    assert Reason.BOARDED not in {row.reason for row in told.after(1)}


def test_a_gang_that_is_gone_is_told_nothing() -> None:
    told, pods = Told(), owned()
    told.world.board(*pods)
    for pod in pods:
        told.world.pods.drop(pod.uid)
    assert told.said(LASTING_SECONDS) == []
