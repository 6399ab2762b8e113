"""Client properties under the names of Kafka's Java client, which Spark uses; the settings have librdkafka's names.

On Spark 3.5 its Kafka source plans every batch, whichever way the records are fetched, so a property that it cannot
take cannot be used at all. Certificates and keys are sent as text, because a path would have to exist on every
executor. A property that matters for security and has no equivalent in Java is refused. One that only tunes librdkafka
is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from hudilake.errors import ConfigError

_SAME = frozenset(
    {
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "check.crcs",
        "connections.max.idle.ms",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "max.partition.fetch.bytes",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
    }
)
_RENAMED = {
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "socket.connection.setup.timeout.ms": "socket.connection.setup.timeout.ms",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.timeout.ms": "request.timeout.ms",
}
#: Properties that binlake sets, or that concern librdkafka alone: Spark's reader has others.
_LEFT_OUT = re.compile(
    r"bootstrap\.servers|group\.id|isolation\.level|log_level|debug|log\..*|queued\..*|statistics\..*|topic\.metadata\..*|"
    r"metadata\.(?!max\.age\.ms).*|api\.version\..*|broker\.(address|version)\..*|socket\.(keepalive|nagle|max).*|"
    r"enable\.(sparse\.connections|metrics\.push|random\.seed)|fetch\.(error\.backoff|queue\.backoff)\.ms|receive\.message\.max\.bytes|"
    r"message\.(max|copy\.max)\.bytes|max\.in\.flight.*|allow\.auto\.create\.topics"
)
_MECHANISMS = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
}
_PKCS8 = re.compile(r"-----BEGIN (ENCRYPTED )?PRIVATE KEY-----")
_OTHER_KEY = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----")
#: Converts an encrypted private key (PEM) and its password into the key in clear text.
Unlock = Callable[[str, str], str]


def java_properties(properties: Mapping[str, str], unlock: Unlock | None = None) -> dict[str, str]:
    """The properties for Kafka's Java client, without the brokers.

    Args:
        properties: under librdkafka's names.
        unlock: decrypts a private key, because Java 17's Kafka client supports old encryptions only; without it the key
            and its password are passed on unchanged.

    Raises:
        ConfigError: one of them cannot be given to the Java client, or names a file that cannot be read.
    """
    left = {name: value for name, value in properties.items() if not _LEFT_OUT.fullmatch(name)}
    result = {name: left.pop(name) for name in list(left) if name in _SAME}
    result |= {_RENAMED[name]: left.pop(name) for name in list(left) if name in _RENAMED}
    if protocol := left.pop("security.protocol", None):
        result["security.protocol"] = protocol.upper()
    result |= _login(left) | _trust(left) | _key_store(left) | _identity(left, unlock)
    if left:
        raise ConfigError(
            f"Spark's Kafka client has no property for {', '.join(sorted(left))}",
            do_next="leave it out of kafka.properties; Spark's Kafka source plans the batches with them",
        )
    return result


def _login(left: dict[str, str]) -> dict[str, str]:
    """SASL: user and password become a JAAS entry."""
    plural = left.pop("sasl.mechanisms", None)
    mechanism = left.pop("sasl.mechanism", plural)
    user, password = left.pop("sasl.username", None), left.pop("sasl.password", None)
    if mechanism is None and user is None:
        return {}
    module = _MECHANISMS.get(mechanism or "")
    if module is None or user is None or password is None:
        raise ConfigError(
            f"Spark's Kafka client is given sasl.mechanism {mechanism or '(none)'}, "
            f"{'a' if user is not None else 'no'} user and {'a' if password is not None else 'no'} password",
            do_next=f"set sasl.username, sasl.password and sasl.mechanism, one of {', '.join(_MECHANISMS)}",
        )
    entry = f"org.apache.kafka.common.security.{module} required"
    entry += f" username={json.dumps(user, ensure_ascii=False)} password={json.dumps(password, ensure_ascii=False)};"
    return {"sasl.mechanism": str(mechanism), "sasl.jaas.config": entry}


def _trust(left: dict[str, str]) -> dict[str, str]:
    """The trusted certificates, and whether the broker's name must match its own."""
    result: dict[str, str] = {}
    if (verify := left.pop("enable.ssl.certificate.verification", "true")) != "true":
        raise ConfigError(
            f"Spark's Kafka client always verifies certificates (enable.ssl.certificate.verification is {verify})",
            do_next="set ssl.ca.location to the authority's certificate, or the broker's own",
        )
    if (algorithm := left.pop("ssl.endpoint.identification.algorithm", None)) is not None:
        result["ssl.endpoint.identification.algorithm"] = "" if algorithm == "none" else algorithm
    authorities = _text(left, "ssl.ca.pem", "ssl.ca.location")
    if authorities is not None:
        result |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities}
    return result


def _key_store(left: dict[str, str]) -> dict[str, str]:
    """The client's certificate and key in one PKCS#12 file, which must exist where Spark runs."""
    location, password = left.pop("ssl.keystore.location", None), left.pop("ssl.keystore.password", None)
    if location is None:
        return {}
    result = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": location}
    return result | ({"ssl.keystore.password": password} if password is not None else {})


def _identity(left: dict[str, str], unlock: Unlock | None) -> dict[str, str]:
    """The client's certificate and key, for mutual TLS."""
    certificate = _text(left, "ssl.certificate.pem", "ssl.certificate.location")
    key, password = _text(left, "ssl.key.pem", "ssl.key.location"), left.pop("ssl.key.password", None)
    if certificate is None and key is None:
        return {}
    if certificate is None or key is None:
        what = "a key but no certificate" if certificate is None else "a certificate but no key"
        raise ConfigError(f"there is {what}", do_next="set ssl.certificate.location and ssl.key.location")
    pkcs8_match = _PKCS8.search(key)
    if pkcs8_match is None:
        kind = other[1].strip() if (other := _OTHER_KEY.search(key)) else "unknown"
        raise ConfigError(
            f"Spark's Kafka client reads private keys in PKCS#8 only; this one is of kind {kind}",
            do_next="convert it: openssl pkcs8 -topk8 -in OLD -out NEW",
        )
    result = {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": certificate, "ssl.keystore.key": key}
    if pkcs8_match[1] and password is not None:
        result |= {"ssl.key.password": password} if unlock is None else {"ssl.keystore.key": unlock(key, password)}
    return result


def _text(left: dict[str, str], inline: str, location: str) -> str | None:
    """A PEM text, given directly or by its file."""
    text, path = left.pop(inline, None), left.pop(location, None)
    if text is not None or path is None:
        return text
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(
            f"{location} cannot be read as a PEM file: {why}",
            do_next=f"correct {location} in kafka.properties: name a PEM file",
            path=path,
        ) from None
    if "-----BEGIN " not in text:
        raise ConfigError(
            f"{location} is not a PEM file",
            do_next=f"correct {location} in kafka.properties: name a PEM file",
            path=path,
        )
    return text
