"""How authorities follow one another without a request that somebody can't verify. Pure.

    fresh ──► in use ──► a third of its life left: a successor is made, and told to the API servers
                 ▲                                          │ all have had time to hear of it
                 └── the successor signs, its predecessor stays trusted until it expires ◄──┘

Whoever serves may load a new certificate late, and whoever verifies may hear late of a new authority;
both are harmless, because at each moment both authorities are trusted that may be met.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from certs import issue
from certs.issue import Pair

_MOST_RETIRED: Final = 4


@dataclass(frozen=True, slots=True)
class Lives:
    """How long things last. spread: until every API server has surely heard of a new authority.

    spread also covers that clocks of replicas differ, which certificates themselves forgive by 5 minutes.
    """

    ca: timedelta = issue.CA_LIFE
    serving: timedelta = issue.SERVING_LIFE
    spread: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Keys:
    """All that replicas share.

    ca: signs. serving: signed by it. successor: trusted already, and signs next. published: since when
    the successor is known to have been told to the API servers. retired: certificates of predecessors.
    """

    ca: Pair
    serving: Pair
    successor: Pair | None = None
    published: datetime | None = None
    retired: tuple[bytes, ...] = ()

    @property
    def bundle(self) -> bytes:
        """What API servers have to trust (PEM), whoever signs first."""
        successor = (self.successor.certificate,) if self.successor else ()
        return b"".join((self.ca.certificate, *successor, *self.retired))


def advance(
    keys: Keys | None, hosts: Sequence[str], told: bytes, now: datetime, lives: Lives | None = None
) -> Keys:
    """The keys as they should be now; the same ones where nothing is to do.

    keys: None where there are none, or none that can be read. told: the bundle that API servers have.
    Each call takes what steps are due, so calling it every few seconds from several replicas is right as
    long as only one of them succeeds in storing what it returns.
    """
    lives = lives or Lives()
    if keys is None or not issue.valid(keys.ca, now):
        return _fresh(hosts, told, now, lives)
    keys = _succeed(_announce(keys, told, now, lives), hosts, now, lives)
    if _wants_serving(keys, hosts, now, lives):
        keys = replace(keys, serving=issue.new_serving(keys.ca, hosts, now, lives.serving))
    retired = tuple(pem for pem in keys.retired if issue.trustworthy(pem, now))
    return replace(keys, retired=retired) if retired != keys.retired else keys


def _fresh(hosts: Sequence[str], told: bytes, now: datetime, lives: Lives) -> Keys:
    """A new authority; the ones of ours that were trusted stay so, as others may still serve by them."""
    ca = issue.new_ca(now, lives.ca)
    retired = tuple(pem for pem in issue.split(told) if issue.trustworthy(pem, now))[:_MOST_RETIRED]
    return Keys(ca, issue.new_serving(ca, hosts, now, lives.serving), retired=retired)


def _announce(keys: Keys, told: bytes, now: datetime, lives: Lives) -> Keys:
    if keys.successor is None or not issue.valid(keys.successor, now):
        if issue.lasts(keys.ca, now, lives.ca):
            return keys
        return replace(keys, successor=issue.new_ca(now, lives.ca), published=None)
    if keys.published is None and keys.successor.certificate in issue.split(told):
        return replace(keys, published=now)
    return keys


def _succeed(keys: Keys, hosts: Sequence[str], now: datetime, lives: Lives) -> Keys:
    if keys.successor is None or keys.published is None or now - keys.published < lives.spread:
        return keys
    serving = issue.new_serving(keys.successor, hosts, now, lives.serving)
    retired = (keys.ca.certificate, *keys.retired)[:_MOST_RETIRED]
    return Keys(keys.successor, serving, retired=retired)


def _wants_serving(keys: Keys, hosts: Sequence[str], now: datetime, lives: Lives) -> bool:
    if not issue.valid(keys.serving, now) or not issue.serves(keys.serving, keys.ca, hosts):
        return True
    # One that ends with its authority can't be had for longer.
    ends_with_ca = issue.expiry(keys.serving) >= issue.expiry(keys.ca)
    return not ends_with_ca and not issue.lasts(keys.serving, now, lives.serving)
