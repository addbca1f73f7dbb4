"""Keys and certificates of one local cluster, made anew with each cluster.

One CA signs one serving certificate (for 127.0.0.1, used by every component that serves) and one
client certificate in the group system:masters (used by the user and by every component). A real
cluster would keep these apart; this one lives for an afternoon on one machine.
"""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME: Final = timedelta(days=365)
_CLOCK_SKEW: Final = timedelta(hours=1)
_SERVICE_ADDRESS: Final = "10.96.0.1"  # `kubernetes` in the default Service range


class Authority:
    """A certificate authority whose key never leaves this process."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _subject(name)
        builder = _builder(self._subject, self._subject, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
        self._certificate = builder.sign(self._key, hashes.SHA256())

    @property
    def pem(self) -> bytes:
        """The CA certificate."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def serving(self) -> tuple[bytes, bytes]:
        """Certificate and key (PEM) of a server on this machine."""
        names = x509.SubjectAlternativeName(
            [
                x509.DNSName("localhost"),
                x509.DNSName("kubernetes.default.svc"),
                x509.IPAddress(ip_address("127.0.0.1")),
                x509.IPAddress(ip_address(_SERVICE_ADDRESS)),
            ]
        )
        return self._issue(_subject("allaboard-local"), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, user: str, group: str) -> tuple[bytes, bytes]:
        """Certificate and key (PEM) of a client; Kubernetes reads user and group from the subject."""
        return self._issue(_subject(user, group), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(
        self, subject: x509.Name, purpose: x509.ObjectIdentifier, names: x509.SubjectAlternativeName | None
    ) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._subject, key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM), private_pem(key)


def service_account_keys() -> tuple[bytes, bytes]:
    """Private and public key (PEM) by which service account tokens are signed and checked."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private_pem(key), public


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key, unencrypted; EC's own format, which kube-apiserver wants for service account keys."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def kubeconfig(context: str, server: str, ca: bytes, certificate: bytes, key: bytes) -> str:
    """A kubeconfig that holds everything itself, so that it may be copied elsewhere."""
    cluster = {"server": server, "certificate-authority-data": b64encode(ca).decode()}
    user = {
        "client-certificate-data": b64encode(certificate).decode(),
        "client-key-data": b64encode(key).decode(),
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": cluster}],
        "users": [{"name": context, "user": user}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
        "current-context": context,
    }
    return yaml.safe_dump(document, sort_keys=False)


def write_all(folder: Path, kubeconfig_path: Path, context: str, server: str) -> None:
    """Make everything that a cluster at server needs, in folder, and its admin kubeconfig."""
    authority = Authority(context)
    serving, serving_key = authority.serving()
    signing, verifying = service_account_keys()
    admin = authority.client("allaboard-local-admin", "system:masters")
    files = {
        "ca.crt": authority.pem,
        "serving.crt": serving,
        "serving.key": serving_key,
        "service-account.key": signing,
        "service-account.pub": verifying,
    }
    for name, content in files.items():
        _write_private(folder / name, content)
    _write_private(kubeconfig_path, kubeconfig(context, server, authority.pem, *admin).encode())


def _write_private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _subject(user: str, group: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - _CLOCK_SKEW).not_valid_after(now + _LIFETIME)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _key_usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
