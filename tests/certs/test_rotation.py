"""Authorities follow one another: whatever is served at any moment, every API server can verify it."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from certs import issue, secret, trust
from certs.issue import Pair
from certs.rotation import Keys, Lives, advance

NOW = datetime(2026, 8, 1, tzinfo=UTC)
HOSTS = ("allaboard-webhook.allaboard-system.svc",)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
LIVES = Lives(ca=10 * HOUR, serving=3 * HOUR, spread=10 * MINUTE)


def verifies(serving: Pair, bundle: bytes, at: datetime) -> bool:
    """Whether a client that trusts the bundle accepts the server at that time."""
    subject = x509.DNSName(HOSTS[0])
    leaf = x509.load_pem_x509_certificate(serving.certificate)
    store = Store([x509.load_pem_x509_certificate(pem) for pem in issue.split(bundle)])
    try:
        PolicyBuilder().store(store).time(at).build_server_verifier(subject).verify(leaf, [])
    except VerificationError:
        return False
    return True


class Cluster:
    """Three replicas that look at odd times, API servers that hear late, and a judge."""

    def __init__(self, seed: int, lives: Lives, lag: timedelta) -> None:
        self.random = random.Random(seed)
        self.lives = lives
        self.lag = lag
        self.now = NOW
        self.keys: Keys | None = None
        self.told = [(NOW - 2 * lag, b"")]
        self.served: dict[int, Pair] = {}
        self.refused = 0
        self.authorities: set[bytes] = set()

    def turn(self, replica: int) -> None:
        self.keys = advance(self.keys, HOSTS, self.told[-1][1], self.now, self.lives)
        if self.keys.bundle != self.told[-1][1]:
            self.told.append((self.now, self.keys.bundle))
        self.served[replica] = self.keys.serving
        self.authorities.add(self.keys.ca.certificate)

    def known(self, at: datetime) -> bytes:
        """What API servers trusted at that time."""
        return next(bundle for time, bundle in reversed(self.told) if time <= at)

    def live(self, until: datetime) -> None:
        for replica in range(3):
            self.turn(replica)
        self.now += 2 * self.lag  # API servers hear of the first bundle before anybody counts
        while self.now < until:
            self.now += timedelta(seconds=self.random.uniform(1, 120))
            self.turn(self.random.randrange(3))
            for serving in self.served.values():
                for heard in (self.now, self.now - self.lag):
                    self.refused += not verifies(serving, self.known(heard), self.now)


@pytest.mark.parametrize("seed", range(3))
def test_no_replica_ever_serves_what_a_late_api_server_would_refuse(seed: int) -> None:
    cluster = Cluster(seed, LIVES, lag=5 * MINUTE)
    cluster.live(NOW + 40 * HOUR)
    assert cluster.refused == 0
    assert len(cluster.authorities) >= 5


def test_the_judge_notices_an_authority_that_signs_before_others_heard_of_it() -> None:
    cluster = Cluster(0, replace(LIVES, spread=timedelta()), lag=5 * MINUTE)
    cluster.live(NOW + 20 * HOUR)
    assert cluster.refused > 0


def test_a_successor_that_nobody_was_told_of_never_signs() -> None:
    keys = advance(None, HOSTS, b"", NOW, LIVES)
    before = keys.ca.certificate
    for minute in range(0, 590, 5):
        keys = advance(keys, HOSTS, before, NOW + minute * MINUTE, LIVES)
    assert keys.successor is not None
    assert keys.ca.certificate == before


def test_where_nothing_is_due_nothing_changes() -> None:
    keys = advance(None, HOSTS, b"", NOW, LIVES)
    assert advance(keys, HOSTS, keys.bundle, NOW + HOUR, LIVES) is keys


def test_a_serving_certificate_is_renewed_by_the_same_authority() -> None:
    keys = advance(None, HOSTS, b"", NOW, LIVES)
    later = advance(keys, HOSTS, keys.bundle, NOW + 2 * HOUR + MINUTE, LIVES)
    assert later.serving != keys.serving
    assert later.ca == keys.ca


def test_a_serving_certificate_that_ends_with_its_authority_is_not_made_again_and_again() -> None:
    keys = advance(None, HOSTS, b"", NOW, LIVES)
    late = advance(keys, HOSTS, b"", NOW + 9 * HOUR, LIVES)  # nobody is told of the successor
    later = advance(late, HOSTS, b"", NOW + 9 * HOUR + 30 * MINUTE, LIVES)
    assert later.serving == late.serving


def test_keys_that_are_lost_are_made_anew_and_what_others_still_serve_stays_trusted() -> None:
    lost = advance(None, HOSTS, b"", NOW, LIVES)
    new = advance(None, HOSTS, lost.bundle, NOW + HOUR, LIVES)
    assert new.ca != lost.ca
    assert verifies(lost.serving, new.bundle, NOW + HOUR)
    expired = advance(new, HOSTS, new.bundle, NOW + 5 * HOUR, LIVES)
    assert lost.ca.certificate in expired.retired
    assert advance(expired, HOSTS, expired.bundle, NOW + 10 * HOUR + MINUTE, LIVES).retired == ()


def test_an_authority_that_is_not_ours_is_never_kept_in_the_bundle() -> None:
    foreign = issue.new_serving(issue.new_ca(NOW), HOSTS, NOW).certificate
    assert foreign not in advance(None, HOSTS, foreign, NOW, LIVES).bundle


def test_after_a_year_switched_off_everything_is_made_anew() -> None:
    keys = advance(None, HOSTS, b"", NOW)
    later = NOW + timedelta(days=400)
    new = advance(keys, HOSTS, keys.bundle, later)
    assert verifies(new.serving, new.bundle, later)
    assert new.retired == ()


SECRET: dict[str, Any] = {
    "type": secret.TYPE,
    "metadata": {"name": "s", "namespace": "n", "resourceVersion": "7"},
}


def test_the_keys_in_a_secret_are_those_that_were_put_there() -> None:
    first = advance(None, HOSTS, b"", NOW, LIVES)
    announced = advance(first, HOSTS, first.bundle, NOW + 7 * HOUR, LIVES)
    published = advance(announced, HOSTS, announced.bundle, NOW + 7 * HOUR, LIVES)
    succeeded = advance(published, HOSTS, published.bundle, NOW + 8 * HOUR, LIVES)
    assert published.published is not None
    assert succeeded.retired
    for keys in (first, announced, published, succeeded):
        stored = secret.encode(SECRET, keys)
        assert secret.decode(stored) == keys
        assert stored["metadata"]["resourceVersion"] == "7"


@pytest.mark.parametrize("damage", ["%", "", "AAAA"])
@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "tls.crt", "tls.key", "successor.key", "published"])
def test_a_damaged_secret_holds_no_keys(name: str, damage: str) -> None:
    keys = advance(None, HOSTS, b"", NOW, LIVES)
    keys = advance(keys, HOSTS, keys.bundle, NOW + 7 * HOUR, LIVES)
    stored = secret.encode(SECRET, advance(keys, HOSTS, keys.bundle, NOW + 7 * HOUR, LIVES))
    stored["data"][name] = damage
    decoded = secret.decode(stored)
    assert decoded is None or (name == "published" and damage == "" and decoded.published is None)


def test_a_secret_of_others_is_refused_with_what_to_do() -> None:
    with pytest.raises(secret.ForeignSecretError, match=r"secret n/s: type 'kubernetes.io/tls' is not ours"):
        secret.decode({**SECRET, "type": "kubernetes.io/tls"})


def registration(*bundles: str) -> dict[str, Any]:
    entries = [{"name": str(i), "clientConfig": {"caBundle": b} if b else {}} for i, b in enumerate(bundles)]
    return {"metadata": {"resourceVersion": "5"}, "webhooks": entries}


def test_every_entry_that_is_behind_is_told_and_only_if_nothing_changed_meanwhile() -> None:
    assert trust.told(registration("YQ==", "YQ==")) == b"a"
    assert trust.told(registration("YQ==", "")) == trust.told(registration("%")) == b""
    assert trust.operations(registration("YQ==", "YQ=="), b"a") == []
    assert trust.operations(registration("YQ==", ""), b"a") == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "5"},
        {"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": "YQ=="},
    ]
