"""librdkafka's names given to Kafka's Java client: translated, left out where they only tune, refused otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlake.source.java_client import java_properties
from hudilake.errors import ConfigError
from tests.services.certificates import Authority

SECRET = 's"e\\cret'


def test_passwords_become_a_jaas_entry() -> None:
    found = java_properties(
        {
            "bootstrap.servers": "a:1",
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "me",
            "sasl.password": SECRET,
            "ssl.endpoint.identification.algorithm": "none",
            "socket.timeout.ms": "5000",
            "log_level": "2",
            "group.id": "g",
        }
    )
    entry = found.pop("sasl.jaas.config")
    assert entry == (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="s\\"e\\\\cret";'
    )
    assert found == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "ssl.endpoint.identification.algorithm": "",
        "request.timeout.ms": "5000",
    }


def test_certificates_and_keys_travel_as_text(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    me = authority.identity("me")
    found = java_properties(
        {
            "ssl.ca.location": str(authority.file),
            "ssl.certificate.location": str(me.certificate),
            "ssl.key.location": str(me.key),
        }
    )
    assert found == {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.file.read_text(),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": me.certificate.read_text(),
        "ssl.keystore.key": me.key.read_text(),
    }


def test_a_locked_key_is_opened_by_whoever_can(tmp_path: Path) -> None:
    me = Authority(tmp_path).identity("me", "pw-of-key")
    given = {"ssl.certificate.pem": "c", "ssl.key.location": str(me.key), "ssl.key.password": "pw-of-key"}
    assert java_properties(given)["ssl.key.password"] == "pw-of-key"
    asked: list[tuple[str, str]] = []
    found = java_properties(given, lambda key, password: asked.append((key, password)) or "open")  # type: ignore[func-returns-value]
    assert asked == [(me.key.read_text(), "pw-of-key")]
    assert found["ssl.keystore.key"] == "open"
    assert "ssl.key.password" not in found


def test_a_key_store_goes_by_its_path() -> None:
    found = java_properties({"ssl.keystore.location": "/me.p12", "ssl.keystore.password": SECRET})
    assert found == {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": "/me.p12",
        "ssl.keystore.password": SECRET,
    }


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"sasl.mechanism": "GSSAPI", "sasl.kerberos.keytab": "k"}, "GSSAPI"),
        ({"sasl.mechanism": "PLAIN", "sasl.username": "me"}, "no password"),
        ({"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.client.secret": SECRET}, "OAUTHBEARER"),
        ({"enable.ssl.certificate.verification": "false"}, "always verifies"),
        ({"ssl.cipher.suites": "AES"}, "ssl.cipher.suites"),
        ({"ssl.crl.location": "/crl"}, "ssl.crl.location"),
        ({"ssl.ca.location": "/nowhere/ca.pem"}, "ssl.ca.location cannot be read"),
        ({"ssl.certificate.pem": "x"}, "no key"),
        ({"ssl.certificate.pem": "x", "ssl.key.pem": "-----BEGIN RSA PRIVATE KEY-----"}, "PKCS#8 only"),
    ],
)
def test_what_java_cannot_take_is_refused_with_what_to_do(properties: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        java_properties(properties)
    assert caught.value.do_next
    assert SECRET not in str(caught.value)


def test_a_directory_of_certificates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.ca\.location cannot be read"):
        java_properties({"ssl.ca.location": str(tmp_path)})
    (tmp_path / "ca.der").write_bytes(b"\x30\x82")
    with pytest.raises(ConfigError, match=r"ssl\.ca\.location"):
        java_properties({"ssl.ca.location": str(tmp_path / "ca.der")})
