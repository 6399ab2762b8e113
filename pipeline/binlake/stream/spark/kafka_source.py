"""Spark's Kafka source for a stream: it triggers and plans the batches, and with ``kafka.fetch: spark`` brings records.

Its options hold secrets and decrypted keys; ``session.REDACTED`` makes Spark hide them by their names.
"""

from __future__ import annotations

import base64
import re
from functools import partial
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from binlake.settings import Settings
from binlake.source.client import GROUP
from binlake.source.java_client import java_properties
from binlake.source.offsets import Offsets
from hudilake.errors import ConfigError


def kafka_source(spark: SparkSession, settings: Settings, start: Offsets) -> DataFrame:
    """The stream's topics from ``start`` on. Raises ConfigError for properties that Spark's client does not support."""
    kafka = settings.kafka
    config = kafka.client_properties()
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("startingOffsets", start.to_text())
        .option("failOnDataLoss", "true")
        .option("maxOffsetsPerTrigger", str(settings.batch.max_events))
        .option("kafka.isolation.level", "read_committed")
        .option("groupIdPrefix", config.get("group.id", GROUP))
    )
    for name, value in java_properties(config, partial(unlocked, spark.sparkContext)).items():
        reader = reader.option(f"kafka.{name}", value)
    if kafka.read_pattern:
        return reader.option("subscribePattern", kafka.read_pattern).load()
    return reader.option("subscribe", ",".join(kafka.read_topics)).load()


_BODY = re.compile(r"-----BEGIN ENCRYPTED PRIVATE KEY-----(.+?)-----END", re.DOTALL)
_DECRYPT = 2  # javax.crypto.Cipher.DECRYPT_MODE


def unlocked(context: SparkContext, pem: str, password: str) -> str:
    """The decrypted key of an encrypted PKCS#8 text, as PEM. Raises ConfigError if the password does not decrypt it."""
    encrypted = _BODY.search(pem)
    gateway: Any = context._gateway
    try:
        opened = _open(gateway, base64.b64decode(encrypted[1] if encrypted else ""), password)
    except Py4JJavaError as error:
        raise ConfigError(
            f"the private key cannot be opened: {error.java_exception.getClass().getSimpleName()}",
            do_next="correct ssl.key.password in kafka.properties, or the key",
        ) from None
    body = base64.encodebytes(opened).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\n"


def _open(gateway: Any, der: bytes, password: str) -> bytes:  # noqa: ANN401 - py4j has no types
    crypto = gateway.jvm.javax.crypto
    info = crypto.EncryptedPrivateKeyInfo(bytearray(der))
    parameters = info.getAlgParameters()
    name = parameters.toString() if info.getAlgName() == "PBES2" else info.getAlgName()
    letters = gateway.new_array(gateway.jvm.char, len(password))
    for i, letter in enumerate(password):
        letters[i] = letter
    key = crypto.SecretKeyFactory.getInstance(name).generateSecret(crypto.spec.PBEKeySpec(letters))
    cipher = crypto.Cipher.getInstance(name)
    cipher.init(_DECRYPT, key, parameters)
    return bytes(info.getKeySpec(cipher).getEncoded())
