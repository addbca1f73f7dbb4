"""A certificate authority of our own and the serving certificates that it signs. Pure: PEM in, PEM out.

The API server trusts the authority (caBundle); the serving certificate may be replaced at any time
without telling it.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFE: Final = timedelta(days=365)
SERVING_LIFE: Final = timedelta(days=90)
# Other machines' clocks may be behind ours.
_CLOCK_SKEW: Final = timedelta(minutes=5)
_CA_NAME: Final = "allaboard CA"
_SERVING_NAME: Final = "allaboard webhook"
_BLOCK: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\s*", re.DOTALL)


class UnusableError(Exception):
    """A PEM text is no certificate or key of the kind that we issue."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


def new_ca(now: datetime, life: timedelta = CA_LIFE) -> Pair:
    """A self-signed authority, which may sign serving certificates and nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(_CA_NAME)
    usage = _key_usage(signs_certificates=True)
    builder = (
        _builder(name, name, key.public_key(), now, now + life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    return _signed(builder, key, key)


def new_serving(ca: Pair, hosts: Sequence[str], now: datetime, life: timedelta = SERVING_LIFE) -> Pair:
    """A serving certificate for these DNS names and IP addresses. Raises UnusableError for a bad CA."""
    authority, ca_key = load(ca)
    key = ec.generate_private_key(ec.SECP256R1())
    until = min(now + life, authority.not_valid_after_utc)
    builder = (
        _builder(_name(_SERVING_NAME), authority.subject, key.public_key(), now, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(h) for h in hosts]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
    )
    return _signed(builder, key, ca_key)


def load(pair: Pair) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Read a pair and check that its halves belong together. Raises UnusableError."""
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = load_pem_private_key(pair.key, password=None)
    except (ValueError, TypeError) as error:
        raise UnusableError(str(error)) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UnusableError("the key is not an elliptic curve key")
    if key.public_key() != certificate.public_key():
        raise UnusableError("the key is not that of the certificate")
    return certificate, key


def lasts(pair: Pair, now: datetime, life: timedelta) -> bool:
    """Whether the pair is sound, valid now and still has a third of its life before it."""
    return valid(pair, now) and now < expiry(pair) - life / 3


def valid(pair: Pair, now: datetime) -> bool:
    """Whether the pair is sound and valid now."""
    try:
        certificate, _ = load(pair)
    except UnusableError:
        return False
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def expiry(pair: Pair) -> datetime:
    """Until when the certificate is valid. Raises UnusableError."""
    return load(pair)[0].not_valid_after_utc


def split(bundle: bytes) -> tuple[bytes, ...]:
    """The certificates of a bundle, each as PEM; those that can't be read are left out."""
    found = []
    for block in _BLOCK.findall(bundle):
        with suppress(ValueError):
            found.append(x509.load_pem_x509_certificate(block).public_bytes(Encoding.PEM))
    return tuple(found)


def trustworthy(certificate: bytes, now: datetime) -> bool:
    """Whether this is an authority of ours that hasn't expired."""
    try:
        found = x509.load_pem_x509_certificate(certificate)
    except ValueError:
        return False
    return found.subject == _name(_CA_NAME) and now < found.not_valid_after_utc


def serves(pair: Pair, ca: Pair, hosts: Sequence[str]) -> bool:
    """Whether the pair is signed by this authority and good for all of these hosts."""
    try:
        certificate, _ = load(pair)
        authority, _ = load(ca)
        certificate.verify_directly_issued_by(authority)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (UnusableError, InvalidSignature, ValueError, TypeError, x509.ExtensionNotFound):
        return False
    return all(_general_name(host) in names for host in hosts)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _signed(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey
) -> Pair:
    certificate = builder.sign(signer, hashes.SHA256())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Pair(certificate.public_bytes(Encoding.PEM), private)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
