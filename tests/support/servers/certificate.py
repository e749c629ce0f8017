"""A self-signed certificate, made on demand."""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def self_signed(
    address: str, lasts: timedelta = timedelta(days=1), trusted: list[bytes] | None = None
) -> ssl.SSLContext:
    """A server's TLS context for a loopback address; ``lasts`` from now, negative: it has ended.

    The certificate is added to ``trusted``, as PEM, for a client that is to trust it.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + lasts)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), False)
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    if trusted is not None:
        trusted.append(public)
    pem = public + key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory(prefix="tls-") as folder:
        path = Path(folder) / "both.pem"
        path.write_bytes(pem)
        context.load_cert_chain(path)
    return context


class Authority:
    """A certificate authority of our own, as PEM files in ``folder``.

    authority = Authority(tmp_path)
    authority.ca                          # its certificate
    authority.issue("127.3.0.1")          # (certificate, key) of a server; a client's by any name
    """

    def __init__(self, folder: Path, name: str = "test authority") -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._sign(self._name, self._key, x509.BasicConstraints(True, None))
        self.ca = folder / f"{name.replace(' ', '-')}.pem"
        self.ca.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, password: str = "") -> tuple[Path, Path]:
        """Certificate and key for an address or for a client; the key encrypted if there is a
        ``password``."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        try:
            extension: x509.ExtensionType = x509.SubjectAlternativeName(
                [x509.IPAddress(ip_address(name))]
            )
        except ValueError:
            extension = x509.BasicConstraints(False, None)
        certificate, key_file = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        signed = self._sign(subject, key, extension)
        certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            encryption = serialization.BestAvailableEncryption(password.encode())
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
            )
        )
        key_file.chmod(0o600)
        return certificate, key_file

    def context(self, address: str) -> ssl.SSLContext:
        """The TLS context of a server at a loopback address."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue(address))
        return context

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            .sign(self._key, hashes.SHA256())
        )
