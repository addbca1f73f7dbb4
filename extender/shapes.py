"""What a Pod asks of a node at this moment: its own requests, devices, and where volumes and claims tie it.

A bound Pod asks for no devices any more, nor for extended resources that came from devices: its claims
hold them. Equal Pods get the same Shape, which is how the planner compares them; those without volumes and
claims get the one that was read from their spec.
"""

from dataclasses import replace
from weakref import WeakKeyDictionary

from extender.claims import Claims
from extender.volumes import Volumes
from gangs.nodes import Shape, Term
from gangs.pods import Pod

_Beyond = tuple[tuple[str, ...], tuple[tuple[str, int], ...], tuple[tuple[Term, ...], ...]]


class Shapes:
    """Called with a Pod, gives its shape."""

    def __init__(self, volumes: Volumes, claims: Claims) -> None:
        self._volumes = volumes
        self._claims = claims
        self._known: WeakKeyDictionary[Shape, dict[_Beyond, Shape]] = WeakKeyDictionary()

    def __call__(self, pod: Pod) -> Shape:
        """The Pod's shape now."""
        if not pod.claims and not pod.device_claims:
            return pod.shape
        ties = (*self._volumes.ties(pod), *self._claims.ties(pod))
        devices = () if pod.seated else tuple(sorted(self._claims.requests(pod).items()))
        covered = pod.covered if pod.seated or self._claims.allocated(pod) else ()
        if not ties and not devices and not covered:
            return pod.shape
        return self._of(pod.shape, (covered, devices, ties))

    def _of(self, shape: Shape, beyond: _Beyond) -> Shape:
        known = self._known.setdefault(shape, {})
        if beyond not in known:
            covered, devices, ties = beyond
            own = {name: value for name, value in shape.requests.items() if name not in covered}
            known[beyond] = replace(shape, requests={**own, **dict(devices)}, ties=ties)
        return known[beyond]
