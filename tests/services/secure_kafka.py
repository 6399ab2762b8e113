"""A broker that lets nobody in without a password or a certificate, and nobody read without the right to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from embedded.kafka import EmbeddedKafka
from embedded.process import HOST, free_ports
from tests.services.certificates import STORE_PASSWORD, Authority, Identity

USER, PASSWORD = "reader", 'pass;"wörd\\ 9fX'
KEY_PASSWORD = "key-pass-4711"
_ITERATIONS = 4096


@dataclass(frozen=True)
class SecureBroker:
    """A running broker. ``passwords`` takes a user and a password over TLS, ``certificates`` a certificate, ``plain``
    whoever comes, as the administrator. ``client``: the reader's certificate; ``stranger``: one nobody signed."""

    plain: str
    passwords: str
    certificates: str
    authority: Authority
    client: Identity
    locked_client: Identity
    stranger: Authority

    def login(self, mechanism: str, password: str = PASSWORD, user: str = USER) -> dict[str, str]:
        """Client properties (librdkafka's names) of a user with a password."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": str(self.authority.file),
        }

    def certificate(self, *, locked: bool = False) -> dict[str, str]:
        """Client properties of mutual TLS."""
        mine = self.locked_client if locked else self.client
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.authority.file),
            "ssl.certificate.location": str(mine.certificate),
            "ssl.key.location": str(mine.key),
            **({"ssl.key.password": KEY_PASSWORD} if locked else {}),
        }

    def key_store(self) -> dict[str, str]:
        """Client properties of mutual TLS, from a PKCS#12 file."""
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.authority.file),
            "ssl.keystore.location": str(self.client.store),
            "ssl.keystore.password": STORE_PASSWORD,
        }

    def allow_reading(self, topics: Sequence[str], group: str) -> None:
        """Give the reader, by all its names, the right to read topics and to be of a group; nothing else."""
        wanted = [(ResourceType.TOPIC, topic) for topic in topics] + [(ResourceType.GROUP, group)]
        rules = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, who, "*", AclOperation.READ, AclPermissionType.ALLOW)
            for kind, name in wanted
            for who in (f"User:{USER}", f"User:CN={USER}", f"User:CN={USER}-locked")
        ]
        admin = AdminClient({"bootstrap.servers": self.plain})
        for made in admin.create_acls(rules).values():
            made.result()


@contextlib.contextmanager
def start_secure_broker(place: Path) -> Iterator[SecureBroker]:
    """Run the broker for the length of the block."""
    controller, plain, passwords, certificates = free_ports(4)
    authority = Authority(place / "pki")
    server = authority.identity("broker")
    broker = SecureBroker(
        plain=f"{HOST}:{plain}",
        passwords=f"{HOST}:{passwords}",
        certificates=f"{HOST}:{certificates}",
        authority=authority,
        client=authority.identity(USER),
        locked_client=authority.identity(USER + "-locked", KEY_PASSWORD),
        stranger=Authority(place / "stranger", "nobody"),
    )
    listeners = {"PLAINTEXT": plain, "PASSWORDS": passwords, "CERTIFICATES": certificates}
    with EmbeddedKafka(place / "broker", properties=_properties(listeners, controller, server, authority)):
        admin = AdminClient({"bootstrap.servers": broker.plain})
        kinds = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        users = [
            UserScramCredentialUpsertion(USER, ScramCredentialInfo(kind, _ITERATIONS), PASSWORD.encode())
            for kind in kinds
        ]
        for user in users:
            for done in admin.alter_user_scram_credentials([user]).values():
                done.result()
        yield broker


def _properties(
    listeners: Mapping[str, int], controller: int, server: Identity, authority: Authority
) -> dict[str, str]:
    outer = ",".join(f"{name}://{HOST}:{port}" for name, port in listeners.items())
    protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PASSWORDS:SASL_SSL,CERTIFICATES:SSL"
    modules = "org.apache.kafka.common.security"
    quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    plain = f'{modules}.plain.PlainLoginModule required user_{USER}="{quoted}";'
    login = "listener.name.passwords"
    return {
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listener.security.protocol.map": protocols,
        "listeners": f"{outer},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": outer,
        f"{login}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        f"{login}.plain.sasl.jaas.config": _escaped(plain),
        f"{login}.scram-sha-256.sasl.jaas.config": f"{modules}.scram.ScramLoginModule required;",
        f"{login}.scram-sha-512.sasl.jaas.config": f"{modules}.scram.ScramLoginModule required;",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(server.both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "listener.name.certificates.ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "auto.create.topics.enable": "false",
    }


def _escaped(value: str) -> str:
    """As a Java properties file wants it: its own escapes, and ASCII alone."""
    return value.replace("\\", "\\\\").encode("ascii", "backslashreplace").decode().replace("\\x", "\\u00")
