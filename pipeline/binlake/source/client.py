"""Clients of Kafka: their creation, and the classification of their failures. No message contains a secret.

librdkafka retries instead of failing, so a wrong password or certificate appears as a timeout. It reports the cause
separately, through a callback. These complaints are kept for each client and become part of the error.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException

from hudilake.errors import ConfigError, LakeError, TransientError
from hudilake.storage.redaction import redact

#: The stream's consumer group. The stream commits nothing there, but the client asks for the group's coordinator, so a
#: broker with access control must allow READ on it (measured).
GROUP = "binlake-fetch"

_KEPT = 20
_TOLD = 3
_SECRETS = ("password", "secret", "token", "jaas", "key.pem")

_BAD_FILE = re.compile(r"(ssl\.[a-z.]+) failed")
_NO_LOGIN = {KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._AUTHENTICATION}
_MISCONFIGURED = {KafkaError._INVALID_ARG, KafkaError._UNSUPPORTED_FEATURE}
_RIGHTS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "allow READ on the topic{topic}",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "allow READ on the group {group}",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "allow DESCRIBE on the cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "allow DESCRIBE on the transactional id",
}


class Complaints:
    """The newest few errors that a client reported through its error callback."""

    def __init__(self) -> None:
        self._kept: deque[KafkaError] = deque(maxlen=_KEPT)

    def __call__(self, error: KafkaError) -> None:
        """Keep one error; the client calls this."""
        self._kept.append(error)

    def take(self) -> list[KafkaError]:
        """Return and forget all errors."""
        errors = list(self._kept)
        self._kept.clear()
        return errors


def make_consumer(config: Mapping[str, object], **ours: object) -> tuple[Consumer, Complaints]:
    """A consumer with the settings' properties and binlake's own, which take precedence.

    Raises ConfigError where the client refuses the properties.
    """
    complaints = Complaints()
    try:
        return Consumer({"group.id": GROUP, **config, **ours, "error_cb": complaints}), complaints
    except KafkaException as error:
        text = f"the Kafka client refuses the settings: {words([error], config)}"
        raise ConfigError(text, do_next=config_advice(text)) from None


def failure(
    config: Mapping[str, str],
    error: KafkaException | KafkaError,
    complaints: Iterable[KafkaError],
    what: str,
    **where: object,
) -> LakeError:
    """The error of the right class: a fault of the settings, a missing right, or a failure that may pass.

    Args:
        config: the client's properties.
        error: the client's error.
        complaints: the errors that it reported meanwhile.
        what: the operation that failed.
        where: facts about the place; ``topic`` is named in the advice.
    """
    causes = [error, *complaints]
    text = f"{what}: {words(causes, config)}"
    advice = _advice(config, {_inner(c).code() for c in causes}, text, where.get("topic"))
    if advice is None:
        do_next = "look at kafka.bootstrap_servers, security.protocol, the network and the brokers"
        return TransientError(text, do_next=do_next, **where)
    return ConfigError(text, do_next=advice, **where)


def words(causes: Iterable[KafkaError | KafkaException], config: Mapping[str, object]) -> str:
    """The texts of the causes, each once, without the configuration's secrets."""
    said = dict.fromkeys(str(_inner(cause).str()) for cause in causes)
    return redact("; ".join(list(said)[:_TOLD]), secrets_of(config))


def secrets_of(config: Mapping[str, object]) -> list[str]:
    """The values that must not be printed: each value, and the lines of a PEM text."""
    secrets = [str(value) for name, value in config.items() if any(word in name.lower() for word in _SECRETS)]
    return secrets + [line for value in secrets for line in value.splitlines()]


def _advice(config: Mapping[str, str], codes: set[int], text: str, topic: object) -> str | None:
    """Advice for a failure that the settings or missing rights cause; None for one that may pass."""
    group = config.get("group.id", GROUP)
    rights = [right for code, right in _RIGHTS.items() if code in codes]
    if rights:
        named = f" {topic}" if topic else "s"
        return f"give the user its rights on the brokers: {' and '.join(rights).format(topic=named, group=group)}"
    if codes & _NO_LOGIN:
        return "correct sasl.mechanism, sasl.username and sasl.password in kafka.properties"
    if KafkaError._SSL in codes or "SSL alert" in text:
        return _tls_advice(text)
    if "security.protocol" in text:
        return "correct security.protocol in kafka.properties: the brokers' port speaks another one"
    return config_advice(text) if codes & _MISCONFIGURED else None


def config_advice(text: str) -> str:
    """Advice for properties that the client refuses."""
    named = _BAD_FILE.search(text)
    if named is None:
        return "correct kafka.properties"
    return f"correct {named[1]} in kafka.properties: a PEM file that can be read, and for a key its ssl.key.password"


def _tls_advice(text: str) -> str:
    if "alert" in text:
        return "the brokers refused our certificate: correct ssl.certificate.location and ssl.key.location"
    if "verif" in text:
        return "correct ssl.ca.location in kafka.properties: the certificate of the authority that signed the brokers'"
    return "correct ssl.* and security.protocol in kafka.properties"


def _inner(error: KafkaError | KafkaException) -> KafkaError:
    inner: KafkaError = error.args[0] if isinstance(error, KafkaException) else error
    return inner
