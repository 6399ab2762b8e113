"""A broker with passwords and access control: what may not be read must be told before the stream starts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from binlake.cli.commands.stream.check import run_checks
from binlake.cli.commands.stream.check_result import Check, CheckOutcome
from binlake.settings import Settings
from binlake.source.client import GROUP
from embedded.kafka import EmbeddedKafka
from embedded.process import free_ports

pytestmark = [pytest.mark.full, pytest.mark.kafka]

USERS = {
    "admin": "admin-pw",
    "reader": "reader-pw",
    "looker": "looker-pw",
    "lonely": "lonely-pw",
    "nobody": "nobody-pw",
}
SECRET = "reader-pw"


def properties(controller: int, inner: int, clients: int) -> dict[str, str]:
    protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT"
    outer = f"PLAINTEXT://127.0.0.1:{inner},CLIENTS://127.0.0.1:{clients}"
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": protocols,
        "listeners": f"{outer},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": outer,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": f"{module} required {users};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
        "auto.create.topics.enable": "false",
    }


def login(servers: str, user: str, password: str | None = None) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password or USERS[user],
    }


def allow(user: str, operation: AclOperation, kind: ResourceType = ResourceType.TOPIC) -> AclBinding:
    name, literal = "p.shop.orders" if kind is ResourceType.TOPIC else GROUP, ResourcePatternType.LITERAL
    return AclBinding(kind, name, literal, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    controller, inner, clients = free_ports(3)
    broker = EmbeddedKafka(tmp_path_factory.mktemp("guarded"), properties=properties(controller, inner, clients))
    with broker:
        address = f"127.0.0.1:{clients}"
        admin = AdminClient(login(address, "admin"))
        admin.create_topics([NewTopic("p.shop.orders", 2, 1)])["p.shop.orders"].result()
        rules = [allow(user, AclOperation.READ) for user in ("reader", "lonely")]
        rules += [allow("looker", AclOperation.DESCRIBE)]
        rules += [allow(user, AclOperation.READ, ResourceType.GROUP) for user in ("reader", "looker")]
        for made in admin.create_acls(rules).values():
            made.result()
        producer = Producer(login(address, "admin"))
        producer.produce("p.shop.orders", key=b"{}")
        producer.flush(30)
        yield address


def check_as(servers: str, lake: Path, user: str, password: str | None = None) -> list[Check]:
    keys = {k: v for k, v in login(servers, user, password).items() if k != "bootstrap.servers"}
    lines = "".join(f"    {k}: '{v}'\n" for k, v in keys.items())
    text = f"name: shop\nlake: {{uri: 'file://{lake}'}}\nkafka:\n  bootstrap_servers: '{servers}'\n"
    text += f"  topics: [p.shop.orders]\n  properties:\n{lines}"
    return run_checks(Settings.parse(text), kafka_timeout_s=3)


def failed(checks: list[Check]) -> dict[str, int]:
    return {c.name: c.error.exit_code for c in checks if c.error is not None}


def test_a_user_with_the_right_to_read_passes(servers: str, tmp_path: Path) -> None:
    checks = check_as(servers, tmp_path, "reader")
    assert failed(checks) == {}, [c.detail for c in checks]
    assert next(c for c in checks if c.name == "read rights").verdict is CheckOutcome.OK


def test_the_right_to_look_is_not_the_right_to_read(servers: str, tmp_path: Path) -> None:
    checks = check_as(servers, tmp_path, "looker")
    assert failed(checks) == {"read rights": 2}, [c.detail for c in checks]


def test_the_groups_right_is_needed_too_and_named(servers: str, tmp_path: Path) -> None:
    checks = check_as(servers, tmp_path, "lonely")
    assert failed(checks) == {"read rights": 2}, [c.detail for c in checks]
    error = next(c.error for c in checks if c.error is not None)
    assert f"the group {GROUP}" in error.do_next


def test_a_topic_that_may_not_be_seen_is_not_there(servers: str, tmp_path: Path) -> None:
    assert failed(check_as(servers, tmp_path, "nobody")) == {"topics": 2}


def test_a_wrong_password_is_the_settings_fault_and_is_not_printed(servers: str, tmp_path: Path) -> None:
    checks = check_as(servers, tmp_path, "reader", "not-" + SECRET)
    assert failed(checks) == {"Kafka": 2}
    assert SECRET not in repr(checks)
