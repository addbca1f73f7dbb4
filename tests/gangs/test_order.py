"""Who is looked at first: priority, then age, then name."""

from itertools import permutations

from gangs.muster import Muster, muster
from gangs.order import in_order
from tests.builders import make_pod


def gang(name: str, created: float = 0.0, priority: int = 0) -> Muster:
    pod = make_pod(name, gang=name, created=created, priority=priority)
    found = muster(pod.key, [pod])
    assert found is not None
    return found


def test_priority_goes_before_age_and_age_before_name() -> None:
    urgent = gang("z-urgent", created=9, priority=10)
    old, twin_a, twin_b = gang("y-old", created=1), gang("a", created=2), gang("b", created=2)
    idle = gang("idle", created=0, priority=-1)
    expected = [urgent, old, twin_a, twin_b, idle]
    assert all(in_order(gangs) == expected for gangs in permutations(expected))


def test_a_gang_is_as_urgent_as_its_most_urgent_member_and_as_old_as_its_oldest() -> None:
    pods = [make_pod("a", created=5, priority=1), make_pod("b", created=2, priority=7)]
    found = muster(pods[0].key, pods)
    assert found is not None
    assert (found.priority, found.created) == (7, 2)
