"""A certificate authority of one's own: the keys and certificates of a broker and its clients, as PEM files."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from hudilake.clock import now_ms

STORE_PASSWORD = "store-pass-0815"
_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Identity:
    """A certificate and its private key (PKCS#8); both in one PEM file, and in one PKCS#12 file."""

    certificate: Path
    key: Path
    both: Path
    store: Path


class Authority:
    """An authority that keeps what it makes in ``directory``; its own certificate is ``ca.pem`` there."""

    def __init__(self, directory: Path, name: str = "binlake tests") -> None:
        self._directory, self._name = directory, _named(name)
        directory.mkdir(parents=True, exist_ok=True)
        self._key = _new_key()
        certificate = self._signed(self._name, self._key, authority=True)
        self.file = directory / "ca.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def identity(self, name: str, password: str | None = None) -> Identity:
        """A certificate for ``name`` on loopback; the key is encrypted if there is a password."""
        key = _new_key()
        signed = self._signed(_named(name), key, authority=False)
        certificate = signed.public_bytes(serialization.Encoding.PEM)
        lock: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            lock = serialization.BestAvailableEncryption(password.encode())
        private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
        lock = serialization.BestAvailableEncryption(STORE_PASSWORD.encode())
        store = pkcs12.serialize_key_and_certificates(name.encode(), key, signed, None, lock)
        files = [self._directory / f"{name}.{kind}" for kind in ("crt.pem", "key.pem", "both.pem", "p12")]
        for file, content in zip(files, (certificate, private, private + certificate, store), strict=True):
            file.write_bytes(content)
            file.chmod(0o600)
        return Identity(*files)

    def _signed(self, name: x509.Name, key: rsa.RSAPrivateKey, *, authority: bool) -> x509.Certificate:
        now = datetime.datetime.fromtimestamp(now_ms() / 1000, datetime.UTC)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self._name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - _DAY).not_valid_after(now + 3650 * _DAY)
        builder = builder.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)
