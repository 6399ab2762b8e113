"""Clients of Kafka: how one is made, and what its failures mean. A secret of the settings is in no message.

librdkafka tries again where an answer would help: a wrong password or certificate shows as a timeout. What went wrong
it says beside, through a callback; those complaints are kept for each client and make the error.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException

from pipeline.errors import BinlakeError, ConfigError, TransientError
from pipeline.storage.redaction import redact

#: The stream's consumer group. It commits nothing there, but the client asks for the group's coordinator all the same,
#: so a broker with access control must allow READ on it (measured).
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
    """What a client said through its error callback, the newest few."""

    def __init__(self) -> None:
        self._kept: deque[KafkaError] = deque(maxlen=_KEPT)

    def __call__(self, error: KafkaError) -> None:
        """Keep one; the client calls this."""
        self._kept.append(error)

    def take(self) -> list[KafkaError]:
        """All there are; they are forgotten."""
        found = list(self._kept)
        self._kept.clear()
        return found


def make_consumer(config: Mapping[str, object], **ours: object) -> tuple[Consumer, Complaints]:
    """A consumer with the settings' properties and ours, which win.

    Raises ConfigError where the client refuses them.
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
) -> BinlakeError:
    """The error by its class: the settings' fault, a right that lacks, or something that may pass.

    Args:
        config: the client's properties.
        error: what it failed with.
        complaints: what it said meanwhile.
        what: what it could not do.
        where: facts that place it; ``topic`` is named in the advice.
    """
    causes = [error, *complaints]
    text = f"{what}: {words(causes, config)}"
    advice = _advice(config, {_inner(c).code() for c in causes}, text, where.get("topic"))
    if advice is None:
        do_next = "look at kafka.bootstrap_servers, security.protocol, the network and the brokers"
        return TransientError(text, do_next=do_next, **where)
    return ConfigError(text, do_next=advice, **where)


def words(causes: Iterable[KafkaError | KafkaException], config: Mapping[str, object]) -> str:
    """What they say, each once, without the configuration's secrets."""
    said = dict.fromkeys(str(_inner(cause).str()) for cause in causes)
    return redact("; ".join(list(said)[:_TOLD]), secrets_of(config))


def secrets_of(config: Mapping[str, object]) -> list[str]:
    """The values that may not be printed: whole, and the lines of a PEM text."""
    found = [str(value) for name, value in config.items() if any(word in name.lower() for word in _SECRETS)]
    return found + [line for value in found for line in value.splitlines()]


def _advice(config: Mapping[str, str], codes: set[int], text: str, topic: object) -> str | None:
    """What to do about a failure that is the settings' or the rights' fault; None for one that may pass."""
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
    """What to do about properties that the client refuses."""
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
