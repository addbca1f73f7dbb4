"""Certificates: trusted by the authority's holder, reused while sound, replaced in time."""

import ssl
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store

from certs import Serving, ensure, issue

NOW = datetime(2026, 8, 1, tzinfo=UTC)
HOSTS = ("allaboard-webhook.allaboard.svc", "127.0.0.1")


def verify(serving: Serving, host: str, at: datetime) -> None:
    """Raises unless a client that trusts the bundle accepts the certificate for the host at that time."""
    ca = x509.load_pem_x509_certificate(serving.ca_bundle)
    leaf = x509.load_pem_x509_certificate(serving.cert_file.read_bytes())
    subject = x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
    PolicyBuilder().store(Store([ca])).time(at).build_server_verifier(subject).verify(leaf, [])


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("at", [NOW - timedelta(minutes=4), NOW, NOW + timedelta(days=89)])
def test_whoever_trusts_the_bundle_accepts_the_server(tmp_path: Path, host: str, at: datetime) -> None:
    verify(ensure(tmp_path, HOSTS, NOW), host, at)


@pytest.mark.parametrize(
    ("host", "at"), [("example.com", NOW), ("127.0.0.2", NOW), (HOSTS[0], NOW + timedelta(days=91))]
)
def test_another_host_or_a_later_day_is_not_accepted(tmp_path: Path, host: str, at: datetime) -> None:
    serving = ensure(tmp_path, HOSTS, NOW)
    with pytest.raises(x509.verification.VerificationError):
        verify(serving, host, at)


def test_openssl_takes_certificate_and_key(tmp_path: Path) -> None:
    serving = ensure(tmp_path, HOSTS, NOW)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(serving.cert_file, serving.key_file)


def test_keys_are_their_owners_alone(tmp_path: Path) -> None:
    ensure(tmp_path, HOSTS, NOW)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"ca.crt": 0o644, "ca.key": 0o600, "tls.crt": 0o644, "tls.key": 0o600}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def changed(folder: Path, hosts: tuple[str, ...], now: datetime) -> set[str]:
    """Names of the files that calling again replaces."""
    before = files(folder)
    ensure(folder, hosts, now)
    after = files(folder)
    return {name for name in after if after[name] != before.get(name)}


@pytest.mark.parametrize(
    ("hosts", "days", "expected"),
    [
        (HOSTS, 0, set()),
        (HOSTS[:1], 0, set()),
        (HOSTS, 59, set()),
        (HOSTS, 61, {"tls.crt", "tls.key"}),
        ((*HOSTS, "::1"), 0, {"tls.crt", "tls.key"}),
        (HOSTS, 250, {"ca.crt", "ca.key", "tls.crt", "tls.key"}),
        (HOSTS, -1, {"ca.crt", "ca.key", "tls.crt", "tls.key"}),
    ],
)
def test_what_is_sound_is_kept_and_the_rest_replaced(
    tmp_path: Path, hosts: tuple[str, ...], days: int, expected: set[str]
) -> None:
    ensure(tmp_path, HOSTS, NOW)
    assert changed(tmp_path, hosts, NOW + timedelta(days=days)) == expected


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


@pytest.mark.parametrize("damage", [truncate, Path.unlink, lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
def test_what_is_damaged_is_replaced(tmp_path: Path, name: str, damage: Callable[[Path], object]) -> None:
    ensure(tmp_path, HOSTS, NOW)
    damage(tmp_path / name)
    serving = ensure(tmp_path, HOSTS, NOW)
    verify(serving, HOSTS[0], NOW)
    issue.load(issue.Pair(serving.cert_file.read_bytes(), serving.key_file.read_bytes()))


def test_a_key_of_another_certificate_is_noticed(tmp_path: Path) -> None:
    ensure(tmp_path, HOSTS, NOW)
    (tmp_path / "tls.key").write_bytes(issue.new_ca(NOW).key)
    assert changed(tmp_path, HOSTS, NOW) == {"tls.crt", "tls.key"}


def test_a_certificate_of_another_authority_is_replaced(tmp_path: Path) -> None:
    ensure(tmp_path, HOSTS, NOW)
    other = issue.new_ca(NOW)
    (tmp_path / "ca.crt").write_bytes(other.certificate)
    (tmp_path / "ca.key").write_bytes(other.key)
    assert changed(tmp_path, HOSTS, NOW) == {"tls.crt", "tls.key"}
